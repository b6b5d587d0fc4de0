"""Which paths a word names. Pure. Called from ``matching``, ``off_limits`` and ``file_tools``.

A word of a command may hold shell patterns, and values nobody knows yet. For what would be allowed it has to name one
path for certain; for what is shut, every path is looked at that the word or a part of it could name.
"""

import posixpath
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from supervisor.model.reading import Word

_BETWEEN: Final = re.compile(r"[\s=:,@'\"()<>;|&{}]+")
_HOME: Final = re.compile(r"\$(?:HOME\b|\{HOME\})")
_HERE: Final = re.compile(r"\$(?:PWD\b|\{PWD\})")
_UNKNOWN: Final = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|`[^`]*`|\$[A-Za-z_0-9@*#?!-]+|<\([^)]*\)|\{\}")
_CLASS: Final = re.compile(r"\[[^\]/]+\]")
_ANOTHER_ROOT: Final = re.compile(r"/proc/[^/]+(?:/task/[^/]+)?/(root|cwd)(?=/|$)")
_OPEN_FILE: Final = re.compile(r"/(?:proc/.+|dev/+)/?fd/+[^/]+/+(.+)")  # what is open may be a directory
_REMEMBERED: Final = re.compile(r"~[-+]?[0-9]*(?<!~)(?=/|$)")
_SAME_PLACE: Final = re.compile(r"/(?:\.?/)+")
_HIDDEN_GLOB: Final = re.compile(r"(?:^|/)\.[^/]*[*?\[]")
_SOMETHING: Final = "\ufffd"  # stands for a value that is not known, where that value does not matter


class Standing(NamedTuple):
    """Where relative names start: the agent's directory, and wherever the text goes. ``work_dir`` is ``<work>``."""

    work_dir: str
    home: str
    bases: tuple[str, ...]


class NamedPath(NamedTuple):
    """A path that a word may name. ``glob``: it holds ``*`` and ``?`` for what is not known of it."""

    text: str
    glob: bool


def certain_path(word: Word, standing: Standing) -> str | None:
    """The one path that a word names, with its shell patterns; ``None`` if that is not certain."""
    if word.dynamic or word.splits or not word.text or "\0" in word.text or _HIDDEN_GLOB.search(word.text):
        return None
    if (len(standing.bases) != 1 and word.text[0] not in "/~") or _REMEMBERED.match(word.text):
        return None
    path = _absolute(word.text, standing.bases[0], standing.home)
    return None if path.startswith(("/proc/", "/dev/")) or _ANOTHER_ROOT.search(word.text) else path


def paths_named(word: Word, standing: Standing) -> Iterator[NamedPath]:
    """Every path that a word, or a part of it, may name."""
    if not word.dynamic:
        for piece in pieces(word.text):
            text = _CLASS.sub("?", piece) if word.glob else piece
            for path in starting(text, standing):
                yield NamedPath(path, word.glob and ("*" in text or "?" in text))
        return
    known = _HERE.sub(standing.bases[0], _HOME.sub(standing.home, word.text))
    for piece in pieces(_UNKNOWN.sub(_SOMETHING, known)):
        for path in starting(piece, standing):
            yield NamedPath(path, glob=False)
            # An unknown beginning can be any path at all: nothing is learnt from it.
            if _SOMETHING in piece and piece.lstrip("/.~")[:1] != _SOMETHING:
                yield NamedPath(path.replace(_SOMETHING, "**"), glob=True)


@lru_cache(maxsize=2048)
def pieces(text: str) -> tuple[str, ...]:
    """A word and those parts of it that may be names on their own: ``if=/dev/sda``, ``host:/path``, ``@file``."""
    parts = _BETWEEN.split(text)
    if len(parts) == 1:
        attached = _attached(text)
        return (text, attached) if attached else (text,) if text else ()
    found = [part for part in dict.fromkeys(parts) if part]
    return tuple(found + [attached for attached in map(_attached, found) if attached])


def _attached(text: str) -> str:
    """The path in ``-f/etc/shadow``."""
    if text[:1] == "-" and text[1:2] != "-":
        start = re.search(r"[/~]", text)
        return text[start.start() :] if start else ""
    return ""


def starting(text: str, standing: Standing) -> Iterator[str]:
    """The absolute paths that a name may mean."""
    if text[0] == "~" and _REMEMBERED.match(text):
        # ~+, ~- and ~2 are directories that the text has gone to.
        for base in standing.bases:
            yield _absolute(base + text[len(text.partition("/")[0]) :], base, standing.home)
    elif text[0] in "/~":
        yield _absolute(text, standing.work_dir, standing.home)
        if "/cwd" in text and text.startswith(("/proc/", "/dev/")):
            yield _absolute(text.replace("/cwd", "/root"), standing.work_dir, standing.home)  # where pid 1 is
        if (opened := _OPEN_FILE.match(text)) is not None:
            for base in standing.bases:
                yield _absolute(opened[1], base, standing.home)
        if text[0] == "~" and "/../" in text:
            # Nobody knows how deep the home of another user is.
            yield _absolute(text[text.index("/") :], standing.work_dir, standing.home)
    else:
        for base in standing.bases:
            yield _absolute(text, base, standing.home)


def directory(path: str, standing: Standing) -> str:
    """Where names start in a directory that may be named through a process."""
    return _absolute(path, standing.work_dir, standing.home) if _ANOTHER_ROOT.search(path) else path


@lru_cache(maxsize=4096)
def _absolute(text: str, base: str, home: str) -> str:
    if text[0] == "~":
        user, slash, rest = text[1:].partition("/")
        directory = home if not user else "/root" if user == "root" else f"/home/{user}"
        text = f"{directory}{slash}{rest}"
    text = _SAME_PLACE.sub("/", text if text[0] == "/" else f"{base}/{text}")
    if "/proc/" in text or "/fd" in text:
        path = _walked(text, base)
    elif "/." in text or text[-1] == "/" or text[0] != "/":
        path = posixpath.normpath(text)
    else:
        path = text
    if path.startswith("/var/run/") or path == "/var/run":
        path = path.removeprefix("/var")
    return path


def _walked(text: str, base: str) -> str:
    """The path without ``.`` and ``..``, taken step by step: some of the steps lead to another place."""
    # A base that is such a place itself would come back for ever.
    elsewhere = base if not _ANOTHER_ROOT.match(base) else ""
    path = ""
    for part in text.split("/"):
        if part == "..":
            path = path.rpartition("/")[0]
        elif part not in ("", "."):
            path = f"{path}/{part}"
        if path == "/dev/fd":
            path = "/proc/self/fd"
        elif (found := _ANOTHER_ROOT.fullmatch(path)) is not None:
            path = posixpath.normpath(elsewhere) if found[1] == "cwd" and elsewhere else ""
    return path or "/"
