"""Find the line of a TOML text on which a setting stands. Pure. Called from ``settings.source`` for its messages.

``tomllib`` says what a text means but not where. The scanner here only has to place keys of a text that ``tomllib``
has already accepted; on anything it does not understand it goes on with the next symbol and never raises.
"""

import re
from bisect import bisect_right
from functools import lru_cache

from supervisor.settings.problems import KeyPath

_SYMBOL = re.compile(
    r"""
      \"{3} (?: \\. | [^\\] )*? \"{3,5}      # a basic string over several lines
    | '{3} .*? '{3,5}                        # a literal string over several lines
    | " (?: \\. | [^"\\\n] )* "
    | ' [^'\n]* '
    | \# [^\n]*
    | [A-Za-z0-9_+:-]+
    | [\[\]{},=.\n]
    """,
    re.VERBOSE | re.DOTALL,
)


def line_of(text: str, path: KeyPath) -> int | None:
    """The line of a setting, or of the nearest table around it that is written down."""
    lines = key_lines(text)
    return next((lines[path[:length]] for length in range(len(path), 0, -1) if path[:length] in lines), None)


@lru_cache(maxsize=2)
def key_lines(text: str) -> dict[KeyPath, int]:
    """The line of every key, table and list element, counted from 1."""
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        breaks = [match.start() for match in re.finditer("\n", text)]
        self._symbols = [
            (match.group(), bisect_right(breaks, match.start() - 1) + 1)
            for match in _SYMBOL.finditer(text)
            if not match.group().startswith("#")
        ]
        self._next = 0
        self._lines: dict[KeyPath, int] = {}
        self._elements: dict[KeyPath, int] = {}

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._next < len(self._symbols):
            symbol, line = self._symbols[self._next]
            if symbol == "\n":
                self._next += 1
            elif symbol == "[":
                table = self._header(line)
            else:
                self._assignment(table)
        return self._lines

    def _header(self, line: int) -> KeyPath:
        self._next += 1
        is_element = self._peek() == "["
        keys = self._keys(until="]")
        table = self._inside((), keys[:-1])
        if not keys:
            return table
        table = (*table, keys[-1])
        if is_element:
            self._elements[table] = self._elements.get(table, -1) + 1
            self._lines.setdefault(table, line)
            table = (*table, self._elements[table])
            self._skip("]")
        self._lines.setdefault(table, line)
        return table

    def _inside(self, table: KeyPath, keys: list[str]) -> KeyPath:
        """Follow keys downwards; in a list of tables they mean its latest element."""
        for key in keys:
            table = (*table, key)
            if table in self._elements:
                table = (*table, self._elements[table])
        return table

    def _assignment(self, table: KeyPath) -> None:
        _, line = self._symbols[self._next]
        keys = self._keys(until="=")
        path = table
        for key in keys:
            path = (*path, key)
            self._lines.setdefault(path, line)
        self._value(path)

    def _keys(self, *, until: str) -> list[str]:
        keys: list[str] = []
        while (symbol := self._take()) is not None and symbol not in (until, "\n"):
            if symbol not in (".", "["):
                keys.append(_bare(symbol))
        return keys

    def _value(self, path: KeyPath) -> None:
        match self._peek():
            case "{":
                self._next += 1
                while (symbol := self._peek()) is not None and symbol != "}":
                    if symbol in (",", "\n"):
                        self._next += 1
                    else:
                        self._assignment(path)
                self._next += 1
            case "[":
                self._next += 1
                self._list(path)
            case _:
                while (symbol := self._peek()) is not None and symbol not in (",", "\n", "]", "}"):
                    self._next += 1

    def _list(self, path: KeyPath) -> None:
        index = 0
        while (symbol := self._peek()) is not None and symbol != "]":
            if symbol in (",", "\n"):
                index += symbol == ","
                self._next += 1
            else:
                start = self._next
                self._lines.setdefault((*path, index), self._symbols[start][1])
                self._value((*path, index))
                if self._next == start:
                    self._next += 1
        self._next += 1

    def _peek(self) -> str | None:
        return self._symbols[self._next][0] if self._next < len(self._symbols) else None

    def _take(self) -> str | None:
        symbol = self._peek()
        self._next += 1
        return symbol

    def _skip(self, wanted: str) -> None:
        if self._peek() == wanted:
            self._next += 1


def _bare(symbol: str) -> str:
    return symbol[1:-1] if symbol[0] in "\"'" and len(symbol) > 1 else symbol
