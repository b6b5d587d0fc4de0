"""What has to hold for every text: reading never fails, and no way of writing a command hides it."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from shell_view import acting

from supervisor.model.reading import Command, OpaqueKind, Reading
from supervisor.shell import read_shell

SHELLISH = st.lists(
    st.sampled_from(
        [
            *"'\"`$(){}[];&|<>\\ \n\t#!=*?~@-+,.:%^/\r\x00",
            "$(",
            "${",
            "$((",
            "))",
            "<<E",
            "\nE\n",
            "<(",
            "$'",
            '$"',
            "&&",
            "||",
            "if ",
            "then ",
            "fi",
            "do ",
            "done",
            "case ",
            "in ",
            "esac",
            "for ",
            "while ",
            "function ",
            "[[ ",
            " ]]",
            "time ",
            "ls",
            "rm -rf",
            "sudo ",
            "sh -c ",
            "eval ",
            "ssh h ",
            "xargs ",
            "find . -exec ",
            "é",
            "x",
            "1",
            "A=",
            "f()",
            "{a,b}",
        ]
    ),
    max_size=40,
).map("".join)


@given(st.one_of(st.text(max_size=200), SHELLISH))
@settings(max_examples=400)
def test_reading_never_fails_on_any_text(text: str) -> None:
    reading = read_shell(text)
    assert isinstance(reading, Reading)
    assert OpaqueKind.INTERNAL not in {one.kind for one in reading.opaque}


@given(SHELLISH, st.sampled_from(["'", '"', "`", "$(", "(", "{ ", "if ", "case x in ", "<<NEVER", "\\"]))
@settings(max_examples=200)
def test_a_text_that_stays_open_is_opaque(text: str, opening: str) -> None:
    assert read_shell(f"ls {shlex.quote(text)}\n{opening}").opaque


@dataclass(frozen=True)
class Written:
    """A script, and whether it is one simple command that a word can be put in front of."""

    text: str
    simple: bool


ARGUMENTS = st.text(alphabet="abz09_./:=-%+@,é *$'\"\\;&|<>(){}[]#!~\n", min_size=0, max_size=8)
OPTIONS = st.sampled_from(["-r", "-rf", "--force", "--level=3", "-n5", "--", "-"])


def _single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _double(text: str) -> str:
    return '"' + "".join("\\" + c if c in '"\\$`' else c for c in text) + '"'


def _escaped(text: str) -> str:
    return "".join("'\n'" if c == "\n" else "\\" + c for c in text) or "''"


def _in_halves(text: str) -> str:
    middle = len(text) // 2
    return _single(text[:middle]) + _double(text[middle:])


def _ansi_c(text: str) -> str:
    return "$'" + "".join(f"\\x{byte:02x}" for byte in text.encode()) + "'"


QUOTINGS: list[Callable[[str], str]] = [_single, _double, _escaped, _in_halves, _ansi_c, shlex.quote]


@st.composite
def command_lines(draw: st.DrawFn) -> tuple[list[str], str]:
    """The words of a command, and one way to write them."""
    words = ["target", *draw(st.lists(st.one_of(ARGUMENTS, OPTIONS), max_size=4))]
    blank = draw(st.sampled_from([" ", "  ", "\t", " \\\n "]))
    return words, blank.join(draw(st.sampled_from(QUOTINGS))(word) for word in words)


def _prefix(words: str) -> Callable[[Written, Callable[[str], str]], Written]:
    def wrap(inner: Written, quote: Callable[[str], str]) -> Written:
        text = f"{words} {inner.text if inner.simple else 'sh -c ' + quote(inner.text)}"
        return Written(text, simple=words[0].islower() or words[0] == "/")

    return wrap


def _given_text(before: str, after: str = "") -> Callable[[Written, Callable[[str], str]], Written]:
    return lambda inner, quote: Written(f"{before} {quote(inner.text)}{after}", not before.endswith("<<<"))


def _around(before: str, after: str) -> Callable[[Written, Callable[[str], str]], Written]:
    return lambda inner, _: Written(f"{before}{inner.text}{after}", False)


def _in_backticks(inner: Written, _: Callable[[str], str]) -> Written:
    return Written("echo `" + "".join("\\" + c if c in "\\`$" else c for c in inner.text) + "\n`", False)


STARTING_WORDS = (
    "sudo",
    "sudo -u www -- ",
    "sudo A=1",
    "doas",
    "env",
    "env -i A=1",
    "env -u B -C /",
    "nohup",
    "setsid -w",
    "timeout 5",
    "timeout -s KILL --foreground 5",
    "nice",
    "nice -n 5",
    "ionice -c 3",
    "chrt -i 0",
    "taskset -c 0",
    "stdbuf -oL",
    "unbuffer",
    "time",
    "time -p",
    "exec",
    "command",
    "builtin",
    "busybox",
    "xargs -IMARK",
    "watch -x",
    "strace -f",
    "flock /tmp/l",
    "chroot /mnt",
    "nsenter -t 1 -m",
    "unshare -r",
    "systemd-run --scope",
    "gosu www",
    "docker exec -it web",
    "docker --context c exec -e A=1 -u root web",
    "docker run --rm -v /:/h img",
    "docker compose -f a.yml exec -T web",
    "podman exec web",
    "kubectl -n ns exec -it pod -c c --",
    "kubectl exec pod --",
    "oc exec pod --",
    "lxc exec box --",
    "runuser -u www --",
    "ip netns exec blue",
    "/usr/bin/sudo",
    "/usr/bin/env",
    "A=1",
    "A='x y' B=2",
    "</dev/null",
    "2>/dev/null",
    "coproc",
    "perf stat",
)
STARTING_TEXTS = (
    "sh -c",
    "bash -c",
    "bash -lc",
    "bash -e -o pipefail -c",
    "dash -c",
    "zsh -c",
    "/bin/sh -c",
    "eval",
    "eval --",
    "ssh web1",
    "ssh -p 22 -o BatchMode=yes ops@web1 --",
    "ssh web1 -t",
    "su -c",
    "su - www -c",
    "watch -n1",
    "env bash -c",
    "tmux new -d -s s",
    "script -qc",
    "bash <<<",
    "sudo bash -s <<<",
    "ssh web1 <<<",
)
WRAPPINGS = {
    **{words: _prefix(words) for words in STARTING_WORDS},
    **{text: _given_text(text) for text in STARTING_TEXTS},
    "trap": _given_text("trap", " EXIT"),
    "before": _around("", "\necho after"),
    "after": _around("echo before; ", "\n"),
    "and": _around("true && ", "\n"),
    "or": _around("false || ", "\n"),
    "pipe": _around("echo x | ", "\n"),
    "background": _around("sleep 1 & ", "\n"),
    "subshell": _around("( ", "\n)"),
    "group": _around("{ ", "\n}"),
    "negation": _around("! ", "\n"),
    "if": _around("if ", "\nthen :; fi"),
    "then": _around("if true; then ", "\nfi"),
    "else": _around("if true; then :; else ", "\nfi"),
    "while": _around("while ", "\ndo break; done"),
    "loop": _around("for i in 1 2; do ", "\ndone"),
    "case": _around("case x in y) ", "\n;; esac"),
    "function": _around("f() { ", "\n}; f"),
    "function_keyword": _around("function g { ", "\n}"),
    "substitution": _around("echo $( ", "\n)"),
    "quoted_substitution": _around('echo "a $( ', '\n) b"'),
    "default": _around('echo "${x:-$( ', '\n)}"'),
    "assignment": _around("x=$( ", "\n)"),
    "array": _around("x=(a $( ", "\n) b)"),
    "process_substitution": _around("cat <( ", "\n)"),
    "condition": _around("[[ -n $( ", "\n) ]]"),
    "target": _around("cat < $( ", "\n)"),
    "here_document": _around("bash <<'OVER'\n", "\nOVER\n"),
    "remote_here_document": _around("ssh web1 bash -s <<'OUT'\n", "\nOUT\n"),
    "expanded_here_document": _around("cat <<STOP\n$( ", "\n)\nSTOP\n"),
    "redirected_group": _around("{ ", "\n} > /dev/null 2>&1"),
    "backticks": _in_backticks,
}


@st.composite
def wrapped(draw: st.DrawFn) -> tuple[list[str], str]:
    """A command inside up to four wrappings, and its words."""
    words, text = draw(command_lines())
    written = Written(text, True)
    for name in draw(st.lists(st.sampled_from(sorted(WRAPPINGS)), max_size=4)):
        quote = draw(st.sampled_from([_single, _double, shlex.quote]))
        written = WRAPPINGS[name](written, quote)
    return words, written.text


def _is(command: Command, words: list[str]) -> bool:
    plain = read_shell(shlex.join(words)).commands[0]
    return (
        command.name == "target"
        and [one.text for one in command.argv] == words
        and command.options == plain.options
        and command.words == plain.words
    )


@given(wrapped())
@settings(max_examples=500)
def test_no_combination_of_wrappings_hides_a_command(case: tuple[list[str], str]) -> None:
    words, text = case
    reading = read_shell(text)
    found = any(_is(command, words) for command in reading.commands)
    assert found or reading.opaque, acting(reading)


HARMLESS = st.lists(st.text(alphabet="abz09_./:=%+@ é$;|&()<>*?", min_size=1, max_size=6), max_size=3)


@given(HARMLESS, st.lists(st.sampled_from(sorted(WRAPPINGS)), max_size=3, unique=True))
@settings(max_examples=300)
def test_a_static_command_stays_clear_in_every_wrapping(arguments: list[str], names: list[str]) -> None:
    words = ["target", *arguments]
    written = Written(shlex.join(words), True)
    for name in names:
        written = WRAPPINGS[name](written, shlex.quote)
    reading = read_shell(written.text)
    assert any(_is(command, words) for command in reading.commands)
    assert reading.opaque == ()
