"""Where a command would run, and what the parts of the reader ask of each other. Pure types without behaviour."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from supervisor.model.reading import Assignment, OpaqueKind, Redirect, Role, Word
from supervisor.shell.arithmetic import Numbers


class Source(StrEnum):
    """What a command finds on its standard input."""

    INHERITED = "inherited"
    PIPED = "piped"
    FILE = "file"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """Standard input; ``text`` is set if and only if the text itself stands in the script."""

    source: Source = Source.INHERITED
    text: Word | None = None
    decoded: bool = False  # a decoder stands before it in the pipeline


NO_FEED = Feed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The surroundings of a script or command. ``values`` are the variables whose value is certain."""

    via: tuple[str, ...] = ()
    host: str | None = None
    container: str | None = None
    user: str | None = None
    depth: int = 0
    feed: Feed = NO_FEED
    values: Mapping[str, str] = field(default_factory=dict)
    numbers: Numbers = field(default_factory=Numbers)


class Call(NamedTuple):
    """A command about to be started: its words, and what belongs to them."""

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    feed: Feed = NO_FEED


class Desk(Protocol):
    """Where findings are put down and further reading is asked for."""

    def report(self, call: Call, place: Place, role: Role = Role.PLAIN) -> None:
        """Put down a command."""

    def refuse(self, kind: OpaqueKind, text: str, sentence: str) -> None:
        """Put down something that cannot be seen through."""

    def script(self, text: str, place: Place) -> None:
        """Read a script that would run at this place."""

    def run(self, call: Call, place: Place) -> None:
        """Find out what starting this command would run."""
