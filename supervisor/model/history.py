"""One change of a status. No I/O. Kept by ``store``, shown by ``cli``."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """When a record's status changed, from what to what, why, and who changed it.

    Without a ``session_id`` it is the cycle's own. ``from_status`` is ``None`` where the record began.
    """

    id: int
    cycle_id: int
    at: datetime
    to_status: str
    made_by: str
    session_id: int | None = None
    from_status: str | None = None
    why: str | None = None
