"""Trouble that lasts longer than one cycle. No I/O. Decided on by ``decide.incident``, kept by ``store``."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class IncidentStatus(StrEnum):
    """Whether an incident is being dealt with."""

    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Trouble with some services of one schedule. ``healthy_streak`` counts the cycles since that found none of it."""

    id: int
    schedule: str
    status: IncidentStatus
    services: tuple[str, ...]
    opened_at: datetime
    updated_at: datetime
    last_cycle: int
    healthy_streak: int = 0
    reopened: int = 0
    closed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentTotal:
    """What the cycles of an incident come to, as far as they are on record. ``cost_usd`` adds up what is known."""

    cycles: int = 0
    sessions: int = 0
    cost_usd: float | None = None
    cost_is_exact: bool = True
