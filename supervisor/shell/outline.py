"""The outline of a script that tree-sitter gets to see. Pure. Filled by ``scan``.

Tree-sitter's bash grammar is lenient inside words, conditions, redirections and here-documents, and there it can read a
text other than bash does without saying so. So it only sees an outline of the same length, in which every word that is
not plain is a row of ``W``, and so are the arguments of a command that stand side by side, together with the blanks
between them; comments and here-documents are blanks, sums are ones and every redirection is the simplest of its kind.
What remains is structure.
"""

import re

PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_STARTS_AGAIN = frozenset({"if", "then", "elif", "else", "fi", "while", "until", "do", "done", "esac", "{", "}"})
_HEADS = frozenset({"for", "select", "case", "function"})
RESERVED = _STARTS_AGAIN | _HEADS | {"in", "!", "[[", "]]"}
NEVER_PLAIN = RESERVED | {"time"}  # words that make more of a command than a program and its arguments
_TIMED = re.compile(r"time[ \t]+[^-\s;&|)#]")
_IN_CONDITION = frozenset({"==", "!=", "=~", "=", "!", "]]"})


class Outline:
    """Collects what has to look different from the source, and follows which words stand where a command starts."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._patches: list[tuple[int, int, str]] = []
        self._first = ""  # the word the current command started with, as far as that matters
        self._in_condition = False
        self._target = False
        self.at_start = True  # the next word is the first one of a command
        self.in_arguments = False  # an ordinary command has begun, and the next word is one of its arguments
        self.open_cases = 0

    def fill(self, start: int, end: int, character: str) -> None:
        self._patches.append((start, end, character))

    def begin(self, program: str) -> None:
        """An ordinary command has begun."""
        self._first = program
        self.at_start = False
        self.in_arguments = True

    def separator(self) -> None:
        """An operator or a line end: the next word starts a command."""
        if not self._in_condition:
            self._first = ""
            self._target = self.in_arguments = False
            self.at_start = True

    def redirect(self, start: int, operator: str) -> None:
        """Leave the direction of a redirection, and expect its target."""
        keep = start + (operator[0] == "&")
        self.fill(start, keep, " ")
        self.fill(keep + 1, start + len(operator), " ")
        if not self._in_condition:
            self._target = True
            self.at_start = self.in_arguments = False
            self._first = self._first or "W"

    def word(self, start: int, end: int, text: str, *, plain: bool) -> None:
        """A word: kept if tree-sitter has to know it, else made plain. ``plain`` says that it is already."""
        if self.in_arguments:
            if not plain or text in RESERVED:
                self.fill(start, end, "W")
        elif self._in_condition:
            self.at_start = text == "]]"
            self._in_condition = not self.at_start
            if text not in _IN_CONDITION and not plain:
                self.fill(start, end, "W")
        elif self._target:
            self._target = False
            self.in_arguments = self._first not in _HEADS
            self.fill(start, end, "W")
        elif self._first == "":
            self._starting(start, end, text, plain=plain)
        elif text == "{" and self._first == "function":
            self._first = ""
            self.at_start = True
        elif not plain:
            self.fill(start, end, "W")

    def render(self) -> str:
        source = self._source
        parts: list[str] = []
        position = 0
        for start, end, character in sorted(self._patches):
            parts += (source[position:start], character * (end - start))
            position = end
        parts.append(source[position:])
        return "".join(parts)

    def _starting(self, start: int, end: int, text: str, *, plain: bool) -> None:
        if text == "!" or (text == "time" and _TIMED.match(self._source, start)):
            # They change no structure, and tree-sitter takes "! if" and "time {" for commands.
            self.fill(start, end, " ")
        elif text == "[[":
            self._in_condition = True
            self.at_start = False
        elif text in _STARTS_AGAIN:
            self.open_cases -= text == "esac"
        else:
            self.open_cases += text == "case"
            self._first = text
            self.at_start = False
            self.in_arguments = text not in _HEADS
            if not plain:
                self.fill(start, end, "W")
