"""What a watcher is told while a cycle runs. No I/O. Emitted by ``climb``, drawn by ``cli`` and rehearsal."""

from collections.abc import Callable
from dataclasses import dataclass

from supervisor.model.cycle import Chain, Cycle
from supervisor.model.session import Session, Tokens
from supervisor.model.step import Finish, RunTier


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleStarted:
    """The cycle begins, or ``goes_on`` after it waited."""

    cycle: Cycle
    goes_on: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TierDecided:
    """The next tier is about to be recorded and started."""

    step: RunTier
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TierStarted:
    """The record is written; the process gets its prompt after every watcher has returned."""

    session: Session


@dataclass(frozen=True, slots=True, kw_only=True)
class TierActivity:
    """What a running tier is doing now."""

    session: Session
    doing: str
    tokens: Tokens
    cost_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TierEnded:
    session: Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something a person has to know, and mostly to do something about."""

    text: str
    needs_a_person: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleEnded:
    """The cycle is over or waits. One that was ``rehearsed`` never goes on: its records are thrown away."""

    chain: Chain
    finish: Finish
    rehearsed: bool = False


Progress = CycleStarted | TierDecided | TierStarted | TierActivity | TierEnded | Notice | CycleEnded
Watch = Callable[[Progress], None]
