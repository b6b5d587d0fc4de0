"""One cycle and its chain. No I/O. Read by every room."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from supervisor.model.report import Level
from supervisor.model.session import CostBasis, Session


class Trigger(StrEnum):
    """What started a cycle."""

    SCHEDULE = "schedule"
    MANUAL = "manual"
    API = "api"
    ALERT = "alert"
    RETRY = "retry"
    DEMO = "demo"


class CycleStatus(StrEnum):
    """Where a cycle is, or how it ended."""

    RUNNING = "running"
    HEALTHY = "healthy"
    RESOLVED = "resolved"
    UNRESOLVED = "unresolved"
    BLOCKED = "blocked"
    PAUSED = "paused"
    FAILED = "failed"
    STOPPED = "stopped"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One firing. ``reason`` is a short name, ``detail`` the sentence for a person.

    ``max_tier`` and ``request`` are what was asked for, so that whoever goes on with it does the same.
    """

    id: int
    schedule: str
    trigger: Trigger
    status: CycleStatus
    dry_run: bool
    started_at: datetime
    reason: str | None = None
    detail: str | None = None
    incident: int | None = None
    max_tier: int | None = None
    request: Mapping[str, object] = field(default_factory=dict)
    stop_asked_by: str | None = None
    archived_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def duration_seconds(self) -> float | None:
        return None if self.ended_at is None else max(0.0, (self.ended_at - self.started_at).total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A cycle with the records of its processes, oldest first.

    Read from a record, it also has those of the ``others`` that the same work went on in. The figures are of them all.
    """

    cycle: Cycle
    sessions: tuple[Session, ...]
    others: tuple[Cycle, ...] = ()

    @property
    def cycles(self) -> tuple[Cycle, ...]:
        """All of them, oldest first."""
        return tuple(sorted((self.cycle, *self.others), key=lambda cycle: cycle.id))

    @property
    def own(self) -> "Chain":
        """The cycle with its own records only."""
        return Chain(cycle=self.cycle, sessions=tuple(s for s in self.sessions if s.cycle_id == self.cycle.id))

    @property
    def cost_usd(self) -> float | None:
        """The sum of what is known; ``None`` when nothing is. Where nothing ran it is known to be nothing."""
        known = [s.cost_usd for s in self.sessions if s.cost_usd is not None]
        return sum(known, start=0.0) if known or not self.sessions else None

    @property
    def cost_is_exact(self) -> bool:
        return all(s.cost_basis is CostBasis.REPORTED for s in self.sessions)

    @property
    def duration_seconds(self) -> float | None:
        """How long its cycles took, together; ``None`` while one of them runs."""
        known = [c.duration_seconds for c in self.cycles if c.duration_seconds is not None]
        return sum(known) if len(known) == len(self.cycles) else None

    def by_id(self, record: int | None) -> Session | None:
        return next((s for s in self.sessions if s.id == record), None)


class EventKind(StrEnum):
    """What an entry of a cycle's record is about."""

    PROMPT = "prompt"
    TEXT = "text"
    TOOL_USE = "tool_use"
    TOOL_RESULT = "tool_result"
    API_RETRY = "api_retry"
    RATE_LIMIT = "rate_limit"
    UNREADABLE = "unreadable"
    DECISION = "decision"
    HANDOFF = "handoff"
    NOTICE = "notice"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An entry to be appended to a cycle's record."""

    kind: EventKind
    at: datetime
    text: str
    session_id: int | None = None
    level: Level = Level.INFO
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(NewEvent):
    """An entry of the append-only record of a cycle: a message, a decision, a notice."""

    id: int
    cycle_id: int
