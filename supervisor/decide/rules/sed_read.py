"""Whether a ``sed`` command only reads and prints. Pure. Called from ``matching``.

``sed`` can edit in place, write files and run commands, all from inside its script. Its scripts are read here command
by command; what is not surely harmless is refused.
"""

from typing import Final

from supervisor.decide.rules.arguments import arguments_of
from supervisor.model.reading import Command

_OPTIONS: Final = {
    **dict.fromkeys(
        [
            "-n",
            "-r",
            "-E",
            "-u",
            "-z",
            "-s",
            "--quiet",
            "--silent",
            "--regexp-extended",
            "--unbuffered",
            "--null-data",
            "--separate",
            "--posix",
            "--sandbox",
            "--debug",
            "--version",
            "--help",
        ],
        False,
    ),
    **dict.fromkeys(("-e", "--expression", "-l", "--line-length"), True),
}
_PLAIN: Final = frozenset("pPdDnNgGhHxzF=")
_WITH_NUMBER: Final = frozenset("lLqQ")
_WITH_LABEL: Final = frozenset(":btT")
_WITH_TEXT: Final = frozenset("aic")
_SUBSTITUTE_FLAGS: Final = frozenset("gpiImM0123456789")
_BLANKS: Final = " \t\n;"


def only_reads_sed(command: Command) -> bool:
    """Whether this ``sed`` neither writes nor runs anything."""
    given = arguments_of(command, _OPTIONS)
    if any(one.name not in _OPTIONS or one.unknown for one in given.options):
        return False
    if any(one.name in ("--version", "--help") for one in given.options):
        return not given.words
    scripts = [one.value for one in given.options if one.name in ("-e", "--expression")]
    words = [one.word for one in given.words]
    if not scripts:
        scripts, words = list(words[:1]), words[1:]
    if any(word.maybe_option for word in words) and not all(one.shielded for one in given.words):
        return False
    texts = [one.text for one in scripts if one is not None and one.static]
    return bool(scripts) and len(texts) == len(scripts) and _Script("\n".join(texts)).only_prints()


class _Refused(Exception):
    """The script does, or may do, more than print."""


class _Script:
    """A reader of sed scripts that stops at whatever is not harmless."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def only_prints(self) -> bool:
        try:
            while self._at < len(self._text):
                self._command()
        except _Refused:
            return False
        return True

    def _command(self) -> None:
        self._skip(_BLANKS)
        self._address()
        self._skip(" \t")
        if self._peek() == ",":
            self._at += 1
            self._skip(" \t")
            self._address()
        self._skip(" \t!")
        letter = self._take()
        if letter in _WITH_TEXT:
            self._text_lines()
        elif letter in _WITH_LABEL:
            self._while_not(_BLANKS + "}")
        elif letter in _WITH_NUMBER:
            self._skip(" \t0123456789")
        elif letter == "#":
            self._while_not("\n")
        elif letter in ("s", "y"):
            self._replacement(letter)
        elif letter not in _PLAIN and letter not in ("{", "}", ""):
            raise _Refused
        if letter not in ("{", "}", "#", "", *_WITH_TEXT):
            self._skip(" \t")
            if self._peek() not in ("", ";", "\n", "}", "#"):
                raise _Refused

    def _address(self) -> None:
        first = self._peek()
        if first == "$":
            self._at += 1
        elif first in ("/", "\\"):
            self._at += 1
            self._delimited(self._take() if first == "\\" else "/")
            self._skip("IM")
        else:
            self._skip("0123456789~+")

    def _replacement(self, letter: str) -> None:
        mark = self._take()
        if mark in ("", "\n", "\\", ";", " "):
            raise _Refused
        self._delimited(mark)
        self._delimited(mark, plain=True)
        if letter == "s":
            while self._peek() in _SUBSTITUTE_FLAGS and self._peek():
                self._at += 1

    def _delimited(self, mark: str, *, plain: bool = False) -> None:
        """Go past the next mark that is not escaped. A mark in brackets is taken differently by different versions."""
        if mark in ("", "\n", "\\"):
            raise _Refused
        start = self._at
        while (letter := self._take()) != mark:
            if letter == "":
                raise _Refused
            if letter == "\\":
                self._take()
        inside = self._text[start : self._at - 1]
        if not plain and inside.rfind("[") > inside.rfind("]"):
            raise _Refused

    def _text_lines(self) -> None:
        while (letter := self._take()) not in ("", "\n"):
            if letter == "\\":
                self._take()

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        letter = self._peek()
        self._at += 1
        return letter

    def _skip(self, letters: str) -> None:
        while self._peek() in letters and self._peek():
            self._at += 1

    def _while_not(self, letters: str) -> None:
        while self._peek() not in letters and self._peek():
            self._at += 1
