"""Which cycles may be archived or pruned, and how much they hold. Does I/O. Called from ``climb.retire``.

Nothing that is at work or kept may go: a cycle that runs or is paused, one of an open incident, one with a session that
is kept for a later cycle, and every cycle from which one that runs or is paused goes on.

Sizes are counted once per cycle, when it is over, and the sum of each kind is kept beside them, so that asking for it
reads one row. Two kinds: ``messages`` are events and tool calls, ``records`` is all else of a cycle. Counted are the
characters of what has no fixed length, and 200 for each row with its share of the indexes. A database's file is
larger: free pages in it, and what was never counted because it is still at work.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    Select,
    String,
    Table,
    cast,
    exists,
    func,
    literal_column,
    or_,
    select,
    text,
    update,
)

from supervisor.model.cycle import Cycle, CycleStatus
from supervisor.model.incident import IncidentStatus
from supervisor.store.engine import Database
from supervisor.store.guard_tables import APPROVALS, SERVICE_ACTIONS, TOOL_CALLS
from supervisor.store.lifecycle_tables import INCIDENTS, KEPT_SESSIONS, SIZES, TRANSITIONS
from supervisor.store.mapping import cycle_of
from supervisor.store.tables import CYCLES, EVENTS, SESSIONS

AT_WORK = (CycleStatus.RUNNING.value, CycleStatus.PAUSED.value)
FOUND_AT_ONCE = 200

_ROW = 200
_ADD = text(
    "INSERT INTO sizes (kind, bytes) VALUES (:kind, :bytes) "
    "ON CONFLICT (kind) DO UPDATE SET bytes = sizes.bytes + excluded.bytes"
)

_OF_ANY_LENGTH: Mapping[Table, tuple[ColumnElement[Any], ...]] = {
    EVENTS: (EVENTS.c.text, EVENTS.c.data),
    TOOL_CALLS: (TOOL_CALLS.c.text, TOOL_CALLS.c.input, TOOL_CALLS.c.sentence),
    SESSIONS: (SESSIONS.c.report, SESSIONS.c.reported_usage, SESSIONS.c.detail),
    TRANSITIONS: (TRANSITIONS.c.why,),
    APPROVALS: (APPROVALS.c.text, APPROVALS.c.input, APPROVALS.c.sentence),
}


class Kind(StrEnum):
    """What is counted apart."""

    MESSAGES = "messages"
    RECORDS = "records"


class Retention:
    """What a ``Store`` may let go of."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def cycles_to_archive(self, *, over_since: datetime, after: Cycle | None = None) -> list[Cycle]:
        """Some of the cycles that ended before then and still have their messages, the oldest first."""
        return self._found(CYCLES.c.archived_at.is_(None), over_since=over_since, after=after)

    def cycles_to_prune(
        self, *, over_since: datetime, cooled_since: datetime, after: Cycle | None = None
    ) -> list[Cycle]:
        """Some of the cycles that ended before then, the oldest first, unless a cooldown may still count their actions.

        Those are the actions taken after ``cooled_since``. The newest cycle and the one with the newest session stay:
        SQLite would give their numbers to others, which are then taken for older than they are.
        """
        counts = (
            exists()
            .where(SESSIONS.c.cycle_id == CYCLES.c.id)
            .where(SERVICE_ACTIONS.c.session_id == SESSIONS.c.id, SERVICE_ACTIONS.c.at > cooled_since)
        )
        newest = select(func.max(CYCLES.c.id)).scalar_subquery()
        newest_session = select(func.max(SESSIONS.c.id)).scalar_subquery()
        of_newest = select(SESSIONS.c.cycle_id).where(SESSIONS.c.id == newest_session).scalar_subquery()
        # Of cycles without any session there is none to stay.
        older = (CYCLES.c.id < newest) & (CYCLES.c.id != func.coalesce(of_newest, 0))
        return self._found(~counts & older, over_since=over_since, after=after)

    def unmeasured_cycles(self, *, after: Cycle | None = None) -> list[Cycle]:
        """Some of the cycles that are over and whose size was not counted yet, the oldest first."""
        statement = select(CYCLES).where(
            CYCLES.c.archived_at.is_(None), CYCLES.c.message_bytes.is_(None), CYCLES.c.status.not_in(AT_WORK)
        )
        return self._page(statement, after)

    def measure_cycle(self, cycle_id: int) -> None:
        """Count what a cycle holds, unless that was done already."""
        with self._database.reading() as connection:
            messages = _size(connection, EVENTS, cycle_id) + _size(connection, TOOL_CALLS, cycle_id)
            records = _ROW + sum(_size(connection, table, cycle_id) for table in (SESSIONS, TRANSITIONS, APPROVALS))
        unmeasured = (CYCLES.c.id == cycle_id) & CYCLES.c.message_bytes.is_(None)
        with self._database.writing() as connection:
            values = {"message_bytes": messages, "record_bytes": records}
            if connection.execute(update(CYCLES).where(unmeasured).values(values)).rowcount:
                add_size(connection, Kind.MESSAGES, messages)
                add_size(connection, Kind.RECORDS, records)

    def size(self, kind: Kind) -> int:
        """How much all cycles that were measured hold of this kind."""
        with self._database.reading() as connection:
            return connection.execute(select(SIZES.c.bytes).where(SIZES.c.kind == kind)).scalar() or 0

    def _found(self, condition: ColumnElement[bool], *, over_since: datetime, after: Cycle | None) -> list[Cycle]:
        incident = exists().where(INCIDENTS.c.id == CYCLES.c.incident, INCIDENTS.c.status == IncidentStatus.OPEN)
        kept = exists().where(SESSIONS.c.cycle_id == CYCLES.c.id).where(KEPT_SESSIONS.c.session_id == SESSIONS.c.id)
        statement = select(CYCLES).where(
            # Of what began earlier, by the index; then what is over that long.
            CYCLES.c.started_at < over_since,
            CYCLES.c.ended_at < over_since,
            CYCLES.c.status.not_in(AT_WORK),
            condition,
            ~incident,
            ~kept,
            CYCLES.c.id.not_in(select(_gone_on_from().c.cycle_id)),
        )
        return self._page(statement, after)

    def _page(self, statement: Select[Any], after: Cycle | None) -> list[Cycle]:
        if after is not None:
            later = or_(CYCLES.c.started_at > after.started_at, CYCLES.c.id > after.id)
            statement = statement.where(CYCLES.c.started_at >= after.started_at, later)
        statement = statement.order_by(CYCLES.c.started_at, CYCLES.c.id).limit(FOUND_AT_ONCE)
        with self._database.reading() as connection:
            return [cycle_of(row) for row in connection.execute(statement).mappings()]


def add_size(connection: Connection, kind: Kind, size: int) -> None:
    """Change the sum of a kind by so much."""
    connection.execute(_ADD, {"kind": kind.value, "bytes": size})


def _gone_on_from() -> CTE:
    """The sessions of cycles that are at work and all above them, also those of other cycles."""
    columns = SESSIONS.c.id, SESSIONS.c.cycle_id, SESSIONS.c.parent_session_id
    at_work = select(*columns).join(CYCLES, CYCLES.c.id == SESSIONS.c.cycle_id).where(CYCLES.c.status.in_(AT_WORK))
    up = at_work.cte("up", recursive=True)
    return up.union(select(*columns).where(SESSIONS.c.id == up.c.parent_session_id))


def row_size(table: Table) -> ColumnElement[Any]:
    """About what a row takes."""
    size: ColumnElement[Any] = literal_column(str(_ROW))
    for column in _OF_ANY_LENGTH[table]:
        size += func.coalesce(func.length(cast(column, String)), 0)
    return size


def _size(connection: Connection, table: Table, cycle_id: int) -> int:
    statement = select(func.coalesce(func.sum(row_size(table)), 0)).where(table.c.cycle_id == cycle_id)
    return int(connection.execute(statement).scalar_one())
