"""Ending the wait of sessions that nobody goes on with. Does I/O. Called from ``climb.sweep``."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, exists, func, or_, select

from supervisor.model.cycle import CycleStatus
from supervisor.model.guarding import ApprovalStatus
from supervisor.model.session import WAITING, SessionStatus
from supervisor.store.engine import Database
from supervisor.store.guard_tables import APPROVALS
from supervisor.store.history import moved
from supervisor.store.tables import CYCLES, SESSIONS

WHY = "idle"


class Expiry:
    """The expiry of a ``Store``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def idle_sessions(self, *, silent_since: datetime) -> list[int]:
        """The sessions that were cut off and gave no sign of life since then.

        Not those that another record has gone on from, those of a cycle that runs now, nor those that wait for a person
        or for the call which a person approved.
        """
        with self._database.reading() as connection:
            return list(connection.execute(_idle(silent_since)).scalars())

    def expire_idle(self, records: Collection[int], *, silent_since: datetime, now: datetime) -> int:
        """Expire those of these sessions that are still idle, and say how many. For some fifty at once."""
        # Whoever reopens the cycle waits until this is done, or is passed over; events can be added meanwhile.
        statement = (
            _idle(silent_since)
            .where(SESSIONS.c.id.in_(records))
            .with_for_update(of=CYCLES, key_share=True, skip_locked=True)
        )
        with self._database.writing() as connection:
            found = connection.execute(statement).scalars().all()
            for record in found:
                moved(connection, SESSIONS, record, SessionStatus.EXPIRED, {}, at=now, why=WHY, expect=WAITING)
        return len(found)


def _idle(silent_since: datetime) -> Select[Any]:
    heard_of = func.coalesce(SESSIONS.c.last_message_at, SESSIONS.c.ended_at, SESSIONS.c.created_at)
    return (
        select(SESSIONS.c.id)
        .join(CYCLES, CYCLES.c.id == SESSIONS.c.cycle_id)
        .where(
            SESSIONS.c.status.in_(sorted(WAITING)),
            heard_of < silent_since,
            CYCLES.c.status != CycleStatus.RUNNING,
            ~_was_gone_on_from(),
            ~_waits_for_a_person(),
        )
    )


def _was_gone_on_from() -> ColumnElement[bool]:
    child = SESSIONS.alias("child")
    return exists().where(child.c.parent_session_id == SESSIONS.c.id)


def _waits_for_a_person() -> ColumnElement[bool]:
    open_question = or_(
        APPROVALS.c.status == ApprovalStatus.WAITING,
        (APPROVALS.c.status == ApprovalStatus.APPROVED) & APPROVALS.c.used_at.is_(None),
    )
    return exists().where(APPROVALS.c.session_id == SESSIONS.c.id, open_question)
