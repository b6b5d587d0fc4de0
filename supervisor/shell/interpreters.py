"""Shells and language interpreters: what they are given to run, and from where. Pure. Called from ``launch``."""

import re

from supervisor.model.reading import OpaqueKind, Role, Word
from supervisor.shell.awk import awk_acts
from supervisor.shell.inner import deeper, run_text
from supervisor.shell.options import find_options, table
from supervisor.shell.place import NO_FEED, Call, Desk, Place, Source
from supervisor.shell.unreadable import Unreadable

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "rbash", "yash", "posh"})
AWKS = frozenset({"awk", "gawk", "mawk", "nawk", "original-awk"})
_INTERPRETER = re.compile(
    r"(python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|tclsh|wish|expect|Rscript|R|osascript|pwsh|powershell|irb"
    r"|jshell|groovy|scala|kotlin|elixir|erl|escript|ghci?|runghc|guile|racket|sbcl|ocaml|julia|octave|fish|csh|tcsh|ts-node"
    r"|tsx|npx|bunx|jjs|raku|crystal|nu|xonsh|elvish|rc|es|gdb|m4)(?:[0-9]+(?:\.[0-9]+)*t?)?"
)
_ONLY_TELLS = frozenset({"--version", "--help", "-V", "-VV", "-h"})
_SHORT_VERSION = frozenset({"node", "nodejs", "perl", "ruby", "php", "lua", "deno", "bun"})
_HARMLESS_MODULES = frozenset({"json.tool"})
_SHELL_OPTIONS = table(
    "abefhiklmnprstuvxcBCDEHPTo:O:",
    "login norc noprofile posix verbose restricted noediting debugger dump-strings dump-po-strings"
    " rcfile= init-file= version help",
)
_AWK_OPTIONS = table(
    "F:v:f:e:E:i:l:bcCd?D?gh?I?kLMnNoOp?PrsStV",
    "field-separator= assign= file= source= exec= include= load= posix re-interval traditional sandbox csv version help"
    " non-decimal-data",
)


def is_interpreter(name: str) -> bool:
    return _INTERPRETER.fullmatch(name) is not None


def run_shell_program(desk: Desk, call: Call, place: Place) -> None:
    """``sh -c TEXT`` is read; a script file, or text that comes from elsewhere, is not."""
    program = call.words[0].text.rpartition("/")[2]
    arguments = tuple(_plus_as_minus(word) for word in call.words[1:])
    found = find_options(arguments, _SHELL_OPTIONS, program=program)
    if found.has("--version", "--help"):
        desk.report(call, place)
        return
    if found.has("--rcfile", "--init-file", "-i"):
        raise Unreadable(OpaqueKind.SCRIPT_FILE, _text(call), "an interactive shell reads its start files first")
    inside = deeper(place, program)
    if found.rest and found.rest[0].text == "-":
        raise Unreadable(
            OpaqueKind.WRAPPER_ARGUMENT, _text(call), "shells disagree on what a lone dash before a script means"
        )
    if found.has("-c"):
        if not found.rest:
            raise Unreadable(OpaqueKind.UNKNOWN_WRAPPER_OPTION, "-c", f"the option -c of {program} lacks its text")
        desk.report(call, place, Role.WRAPPER)
        run_text(desk, found.rest[0], inside, call.feed)
        return
    if found.rest and not found.has("-s"):
        raise Unreadable(OpaqueKind.SCRIPT_FILE, _text(call), "a shell runs a file that was not read")
    if call.feed.source is Source.TEXT and call.feed.text is not None:
        desk.report(call, place, Role.WRAPPER)
        run_text(desk, call.feed.text, inside, NO_FEED)
        return
    raise _from_input(call, "a shell runs")


def run_interpreter(desk: Desk, call: Call, place: Place) -> None:
    """Code in another language is never looked into."""
    name = call.words[0].text.rpartition("/")[2]
    arguments = call.words[1:]
    first = arguments[0].text if arguments else ""
    family = re.sub(r"[0-9.]+t?$", "", name)
    tells = first in _ONLY_TELLS or (first == "-v" and family in _SHORT_VERSION)
    if len(arguments) == 1 and arguments[0].static and tells:
        desk.report(call, place)
        return
    if family == "python" and _runs_harmless_module(arguments):
        desk.report(call, place)
        return
    if not arguments or first == "-":
        raise _from_input(call, "an interpreter runs")
    if first.startswith("-"):
        raise Unreadable(OpaqueKind.INLINE_CODE, _text(call), f"{name} is given code that is not read")
    raise Unreadable(OpaqueKind.SCRIPT_FILE, _text(call), f"{name} runs a file that was not read")


def run_awk(desk: Desk, call: Call, place: Place) -> None:
    """An awk program that only reads and prints is an ordinary argument."""
    name = call.words[0].text.rpartition("/")[2]
    found = find_options(call.words[1:], _AWK_OPTIONS, program=name)
    if found.has("--version", "--help", "-V", "-h"):
        desk.report(call, place)
        return
    if found.has("-f", "--file", "-E", "--exec", "-i", "--include", "-l", "--load", "-D", "-d", "-p", "-o"):
        raise Unreadable(OpaqueKind.SCRIPT_FILE, _text(call), f"{name} runs or writes a file that was not read")
    source = found.value("-e", "--source") or (found.rest[0] if found.rest else None)
    if source is None or not source.static:
        raise Unreadable(OpaqueKind.DYNAMIC_SCRIPT, _text(call), f"the program of {name} is only known at run time")
    if awk_acts(source.text) or len([name for name, _ in found.options if name in ("-e", "--source")]) > 1:
        raise Unreadable(OpaqueKind.INLINE_CODE, source.text, f"this {name} program can do more than read and print")
    desk.report(call, place)


def _runs_harmless_module(arguments: tuple[Word, ...]) -> bool:
    """``python -m json.tool`` with at most an input file: a second file would be written."""
    texts = [word.text for word in arguments]
    while texts and texts[0] in ("-I", "-S", "-E", "-s", "-B", "-u"):
        texts.pop(0)
    files = [text for text in texts[2:] if not text.startswith("-")]
    known = all(word.static for word in arguments) and texts[:1] == ["-m"] and texts[1:2] != []
    return known and texts[1] in _HARMLESS_MODULES and len(files) < 2


def _from_input(call: Call, subject: str) -> Unreadable:
    feed = call.feed
    match feed.source:
        case Source.PIPED if feed.decoded:
            return Unreadable(OpaqueKind.ENCODED, _text(call), f"{subject} decoded text that comes through a pipe")
        case Source.PIPED:
            return Unreadable(OpaqueKind.PIPED_INTO_SHELL, _text(call), f"{subject} text that comes through a pipe")
        case Source.FILE:
            return Unreadable(OpaqueKind.SCRIPT_FILE, _text(call), f"{subject} a file that was not read")
        case Source.TEXT:
            return Unreadable(OpaqueKind.INLINE_CODE, _text(call), f"{subject} code that is not read")
        case Source.INHERITED:
            return Unreadable(OpaqueKind.STDIN_SCRIPT, _text(call), f"{subject} whatever its standard input brings")


def _plus_as_minus(word: Word) -> Word:
    """``+x`` switches an option off; for telling options from words it is one."""
    if word.static and re.fullmatch(r"\+[A-Za-z]+", word.text):
        return Word(text="-" + word.text[1:])
    return word


def _text(call: Call) -> str:
    return " ".join(word.text for word in call.words)
