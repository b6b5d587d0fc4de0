"""How much is under way at this moment. Does I/O. Read by ``metrics``, and cheap however many records there are."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select

from supervisor.model.guarding import ApprovalStatus
from supervisor.model.session import SessionStatus
from supervisor.store.engine import Database
from supervisor.store.guard_tables import APPROVALS
from supervisor.store.tables import SESSIONS

_ACTIVE = (
    select(SESSIONS.c.tier, func.count().label("sessions"))
    .where(SESSIONS.c.status == SessionStatus.ACTIVE)
    .group_by(SESSIONS.c.tier)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """What runs, by tier, and how many tool calls wait for a person."""

    active_sessions: Mapping[int, int]
    approvals_pending: int


class Gauges:
    """What a ``Store`` can count quickly."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def under_way(self, now: datetime) -> UnderWay:
        """How many sessions are active and how many approvals are pending, each found by an index."""
        waiting = APPROVALS.c.status == ApprovalStatus.WAITING, APPROVALS.c.expires_at > now
        with self._database.reading() as connection:
            active = {row.tier: row.sessions for row in connection.execute(_ACTIVE)}
            pending = connection.execute(select(func.count()).select_from(APPROVALS).where(*waiting)).scalar_one()
        return UnderWay(active_sessions=active, approvals_pending=pending)
