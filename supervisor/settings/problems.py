"""What is wrong with a configuration, in words an operator can act on. No I/O. Raised by ``settings.load``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from supervisor.errors import ConfigError

KeyPath = tuple[str | int, ...]
"""Where a setting stands: ``("tiers", 0, "model")`` is the model of the first tier."""

_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing to correct. ``where`` is a file or the name of an environment variable; only a file has lines."""

    where: str
    what: str
    key: str = ""
    line: int | None = None
    suggestion: str | None = None

    def __str__(self) -> str:
        where = self.where if self.line is None else f"{self.where}:{self.line}"
        sentence = ": ".join(part for part in (where, self.key, self.what) if part)
        sentence += f'. Did you mean "{self.suggestion}"?' if self.suggestion else "."
        # One line whatever a key or a value holds, and nothing that a terminal would obey.
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in sentence)


class ConfigProblems(ConfigError):
    """Everything that is wrong with a configuration, one line each."""

    def __init__(self, problems: Sequence[Problem], *, remedy: str | None = None) -> None:
        super().__init__("\n".join(str(problem) for problem in problems), remedy=remedy)
        self.problems = tuple(problems)


class Unsuitable(ValueError):
    """A value that will not do, with the one that was most likely meant. Raised while a document is validated."""

    def __init__(self, what: str, *, suggestion: str | None) -> None:
        super().__init__(what)
        self.suggestion = suggestion


def key_name(path: KeyPath) -> str:
    """A setting as people name it; tiers and schedules count from 1."""
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in path)


def shown(value: object) -> str:
    """A value as the operator wrote it, cut short."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value[:_SHOWN_CHARACTERS]}…"' if len(value) > _SHOWN_CHARACTERS else f'"{value}"'
        case int() | float():
            return str(value)[:_SHOWN_CHARACTERS]
        case _:
            return kind(value)


def kind(value: object) -> str:
    """What sort of thing a value is, without showing it."""
    match value:
        case dict():
            return "a table"
        case list() | tuple():
            return "a list"
        case str():
            return "a string"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case _:
            return "a date or time"


def closest(wrong: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name that was most likely meant."""
    # Here, not above: only a configuration with a mistake pays for it.
    from difflib import get_close_matches

    by_lower_case = {name.lower(): name for name in known}
    found = get_close_matches(wrong.lower(), by_lower_case, n=1, cutoff=cutoff)
    return by_lower_case[found[0]] if found else None
