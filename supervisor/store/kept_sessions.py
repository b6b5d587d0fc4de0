"""Sessions kept by a stable key: schedule, incident, tier. Does I/O. Called from ``climb`` and ``cli``.

A session is kept only while its incident's row is held and open, so none is left behind by one that closes meanwhile.
What is kept and dropped is the key: the record of the session stays.
"""

from datetime import datetime

from sqlalchemy import Select, bindparam, delete, select, text

from supervisor.model.incident import IncidentStatus
from supervisor.model.session import Session
from supervisor.store.columns import AnyText, UtcDateTime
from supervisor.store.engine import Database
from supervisor.store.lifecycle_tables import INCIDENTS, KEPT_SESSIONS
from supervisor.store.mapping import session_of
from supervisor.store.tables import SESSIONS

# In SQL for the same reason as in ``cooldowns``. A cycle that is late must not put back an older session.
_KEEP = text(
    "INSERT INTO kept_sessions (schedule, incident, tier, session_id, kept_at) "
    "VALUES (:schedule, :incident, :tier, :session, :now) "
    "ON CONFLICT (schedule, incident, tier) DO UPDATE SET session_id = excluded.session_id, kept_at = excluded.kept_at "
    "WHERE kept_sessions.session_id <= excluded.session_id"
).bindparams(bindparam("schedule", type_=AnyText()), bindparam("now", type_=UtcDateTime()))


class KeptSessions:
    """The kept sessions of a ``Store``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep_session(self, schedule: str, incident: int, tier: int, session: int, now: datetime) -> bool:
        """Keep a session record under its key, for a later cycle to resume. Only while the incident is open."""
        status = select(INCIDENTS.c.status).where(INCIDENTS.c.id == incident, INCIDENTS.c.schedule == schedule)
        with self._database.writing() as connection:
            if connection.execute(status.with_for_update()).scalar() != IncidentStatus.OPEN:
                return False
            key = {"schedule": schedule, "incident": incident, "tier": tier}
            connection.execute(_KEEP, {**key, "session": session, "now": now})
            return True

    def kept_session(self, schedule: str, incident: int, tier: int) -> Session | None:
        """The session that is kept under a key."""
        statement = _kept(schedule, incident).where(KEPT_SESSIONS.c.tier == tier)
        with self._database.reading() as connection:
            row = connection.execute(statement).mappings().one_or_none()
        return None if row is None else session_of(row)

    def kept_sessions(self, schedule: str, incident: int) -> list[Session]:
        """Every session that is kept for an incident, by tier."""
        statement = _kept(schedule, incident).order_by(KEPT_SESSIONS.c.tier)
        with self._database.reading() as connection:
            return [session_of(row) for row in connection.execute(statement).mappings()]

    def drop_session(self, schedule: str, incident: int, tier: int) -> bool:
        """Forget the session under a key. Says whether there was one."""
        kept = KEPT_SESSIONS.c
        statement = delete(KEPT_SESSIONS).where(kept.schedule == schedule, kept.incident == incident, kept.tier == tier)
        with self._database.writing() as connection:
            return connection.execute(statement).rowcount > 0

    def drop_sessions(self, schedule: str | None = None, incident: int | None = None) -> int:
        """Forget the kept sessions of a schedule, of an incident, or all of them. Returns how many that were."""
        statement = delete(KEPT_SESSIONS)
        if schedule is not None:
            statement = statement.where(KEPT_SESSIONS.c.schedule == schedule)
        if incident is not None:
            statement = statement.where(KEPT_SESSIONS.c.incident == incident)
        with self._database.writing() as connection:
            return connection.execute(statement).rowcount


def _kept(schedule: str, incident: int) -> Select[tuple[object, ...]]:
    statement = select(SESSIONS).join(KEPT_SESSIONS, KEPT_SESSIONS.c.session_id == SESSIONS.c.id)
    return statement.where(KEPT_SESSIONS.c.schedule == schedule, KEPT_SESSIONS.c.incident == incident)
