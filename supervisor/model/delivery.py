"""What a person is told, and whether it arrived. No I/O. Made by ``notify``, kept by ``store``."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from supervisor.model.report import Level


class DeliveryStatus(StrEnum):
    """Where a message is on its way. Held back: the same was told a moment ago."""

    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"
    HELD_BACK = "held_back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message to people. ``topic`` is what it is about: messages of one topic are not repeated in quick order."""

    id: int
    level: Level
    topic: str
    title: str
    body: str
    status: DeliveryStatus
    created_at: datetime
    next_try_at: datetime
    attempts: int = 0
    event_id: int | None = None
    cycle_id: int | None = None
    schedule: str | None = None
    sent_at: datetime | None = None
    error: str | None = None
