"""Checked reading of one TOML table, noting every problem with its place instead of stopping at the first. No I/O.

Used by ``rehearsal.scenario_file``.
"""

import math
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import TypeGuard


def _is_table(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


class Table:
    """One table of a file. Each accessor returns a usable value and notes in ``problems`` why the written one is not.

    ``place`` says in words where the table stands ("tier 2, turn 3"), ``prefix`` what precedes its keys ("tools[0].").
    """

    def __init__(self, raw: Mapping[str, object], *, problems: list[str], place: str = "", prefix: str = "") -> None:
        self._raw = raw
        self._problems = problems
        self._place = place
        self._prefix = prefix
        self._asked: set[str] = set()

    def move_to(self, place: str) -> None:
        """Name the place in words of its own, once the content says what it is; keys are then told from there."""
        self._place = place
        self._prefix = ""

    def complain(self, what: str, *, key: str = "") -> None:
        sentence = f"{self._prefix}{key} {what}" if key else what
        self._problems.append(f"{self._place}: {sentence}" if self._place else sentence)

    def has(self, key: str) -> bool:
        return key in self._raw

    def text(self, key: str) -> str | None:
        value = self._take(key)
        if value is None or (isinstance(value, str) and value.strip()):
            return value
        self.complain("must be text" if not isinstance(value, str) else "must not be empty", key=key)
        return None

    def required_text(self, key: str) -> str:
        if not self.has(key):
            self.complain("is missing", key=key)
        return self.text(key) or ""

    def whole(self, key: str, *, minimum: int, maximum: int | None = None, default: int | None = None) -> int:
        """A whole number; without a default the key is required. What cannot be used reads as 0."""
        value = self._take(key)
        if value is None and default is not None:
            return default
        if value is None:
            self.complain("is missing", key=key)
        elif not isinstance(value, int) or isinstance(value, bool):
            self.complain("must be a whole number", key=key)
        elif value < minimum or (maximum is not None and value > maximum):
            limits = f"{minimum} or more" if maximum is None else f"between {minimum} and {maximum}"
            self.complain(f"must be {limits}, not {value}", key=key)
        else:
            return value
        return 0

    def seconds(self, key: str) -> float | None:
        value = self._take(key)
        if value is None:
            return None
        if not _is_number(value) or value < 0:
            self.complain("must be a number of seconds, 0 or more", key=key)
            return None
        return float(value)

    def flag(self, key: str) -> bool:
        value = self._take(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        self.complain("must be true or false", key=key)
        return False

    def table(self, key: str) -> "Table | None":
        value = self._take(key)
        if value is None:
            return None
        if not _is_table(value):
            self.complain("must be a table", key=key)
            return None
        return Table(value, problems=self._problems, place=self._place, prefix=f"{self._prefix}{key}.")

    def tables(self, key: str) -> list["Table"]:
        value = self._take(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self.complain("must be a list of tables", key=key)
            return []
        found: list[Table] = []
        for index, item in enumerate(value):
            if _is_table(item):
                prefix = f"{self._prefix}{key}[{index}]."
                found.append(Table(item, problems=self._problems, place=self._place, prefix=prefix))
            else:
                self.complain("must be a table", key=f"{key}[{index}]")
        return found

    def document(self, key: str) -> Mapping[str, object] | None:
        """A table of any content that can be sent as JSON."""
        value = self._take(key)
        if value is None:
            return None
        if not _is_table(value):
            self.complain("must be a table", key=key)
            return None
        for path, what in _unsendable(value, key):
            self.complain(what, key=path)
        return value

    def refuse_unknown_keys(self) -> None:
        """To be called when everything known has been asked for."""
        for key in self._raw:
            if key not in self._asked:
                close = get_close_matches(key, sorted(self._asked), n=1)
                hint = f", did you mean {close[0]}?" if close else f"; known here: {', '.join(sorted(self._asked))}"
                self.complain(f"is not a known key{hint}", key=key)

    def _take(self, key: str) -> object:
        self._asked.add(key)
        return self._raw.get(key)


def _unsendable(value: object, path: str) -> Iterator[tuple[str, str]]:
    if _is_table(value):
        for key, item in value.items():
            yield from _unsendable(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unsendable(item, f"{path}[{index}]")
    elif not isinstance(value, str | bool) and not _is_number(value):
        yield path, "cannot be sent as JSON: write dates in quotes, and no inf or nan"
