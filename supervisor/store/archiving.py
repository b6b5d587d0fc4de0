"""Giving a cycle's rows out to be archived, and deleting them afterwards. Does I/O. Called from ``climb.archive``.

Deleting goes in short transactions, so that nobody who writes meanwhile waits long, and can be cut off between any two
of them: what is left is found and goes the next time.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, Table, delete, func, select, update

from supervisor.store.deliveries import forget_events
from supervisor.store.engine import Database
from supervisor.store.guard_tables import APPROVALS, SERVICE_ACTIONS, TOOL_CALLS
from supervisor.store.lifecycle_tables import TRANSITIONS
from supervisor.store.retention import Kind, add_size, row_size
from supervisor.store.tables import CYCLES, EVENTS, SESSIONS

# What one transaction deletes at most, measured to stay far below 100 ms with a cold cache.
_ROWS_AT_ONCE = 200
_BYTES_AT_ONCE = 1_000_000
# What is read at once: rows with what a tool printed can have megabytes.
_READ_AT_ONCE = 50

_MESSAGES = (EVENTS, TOOL_CALLS)


class ArchivedRow(NamedTuple):
    """One row of a cycle as JSON has it."""

    table: str
    id: int
    values: Mapping[str, Any]

    @property
    def is_message(self) -> bool:
        """Whether it is deleted once it is archived, and not only when the cycle is pruned."""
        return self.table in {table.name for table in _MESSAGES}


class Archiving:
    """The way out of a ``Store``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def rows_of_cycle(self, cycle_id: int) -> Iterator[ArchivedRow]:
        """Everything there is of a cycle, the messages last, each table in the order it was written."""
        for table, rows in _rows_of(cycle_id).items():
            last = 0
            while True:
                page = rows.where(table.c.id > last).order_by(table.c.id).limit(_READ_AT_ONCE)
                with self._database.reading() as connection:
                    found = [_archived(table, dict(row)) for row in connection.execute(page).mappings()]
                yield from found
                if len(found) < _READ_AT_ONCE:
                    break
                last = found[-1].id

    def transcripts_to_archive(self, cycle_id: int) -> list[str]:
        """The CLI's session ids of a cycle, but for those that a cycle which still has its messages uses as well."""
        named = (SESSIONS.c.cycle_id == cycle_id, SESSIONS.c.session_id.is_not(None))
        own = select(SESSIONS.c.session_id).where(*named).distinct().order_by(SESSIONS.c.session_id)
        elsewhere = (SESSIONS.c.cycle_id != cycle_id, CYCLES.c.archived_at.is_(None))
        uses = select(SESSIONS.c.id).join(CYCLES, CYCLES.c.id == SESSIONS.c.cycle_id).where(*elsewhere).limit(1)
        with self._database.reading() as connection:
            # One by one, each by its index: a cycle has a few.
            return [
                session_id
                for session_id in connection.execute(own).scalars().all()
                if connection.execute(uses.where(SESSIONS.c.session_id == session_id)).scalar() is None
            ]

    def has_messages(self, cycle_id: int) -> bool:
        with self._database.reading() as connection:
            return any(_has_up_to(connection, table, cycle_id, None) for table in _MESSAGES)

    def delete_messages(self, cycle_id: int, *, up_to: Mapping[str, int], now: datetime) -> bool:
        """Delete some of a cycle's messages, of each table up to an id, and say whether none is left to delete.

        With the last of them the cycle becomes one that was archived. One that came since keeps it from that.
        """
        doomed: dict[Table, list[int]] = {}
        with self._database.reading() as connection:
            room = _ROWS_AT_ONCE, _BYTES_AT_ONCE
            for table in _MESSAGES:
                doomed[table], room = _fitting(connection, table, cycle_id, up_to.get(table.name, 0), room)
        with self._database.writing() as connection:
            for table, ids in doomed.items():
                if ids:
                    connection.execute(delete(table).where(table.c.cycle_id == cycle_id, table.c.id.in_(ids)))
            if doomed[EVENTS]:
                forget_events(connection, doomed[EVENTS])
            if any(_has_up_to(connection, table, cycle_id, up_to.get(table.name, 0)) for table in _MESSAGES):
                return False
            if not any(_has_up_to(connection, table, cycle_id, None) for table in _MESSAGES):
                _mark_archived(connection, cycle_id, now)
        return True

    def delete_records(self, cycle_id: int) -> bool:
        """Delete some of what is left of a cycle without messages, and say whether all of it is gone.

        What later cycles continued from it stays, without the link.
        """
        own = select(SESSIONS.c.id).where(SESSIONS.c.cycle_id == cycle_id)
        room = _ROWS_AT_ONCE
        with self._database.writing() as connection:
            for table, whose in (
                (TRANSITIONS, TRANSITIONS.c.cycle_id == cycle_id),
                (APPROVALS, APPROVALS.c.cycle_id == cycle_id),
                (SERVICE_ACTIONS, SERVICE_ACTIONS.c.session_id.in_(own)),
            ):
                some = select(table.c.id).where(whose).limit(room)
                room -= connection.execute(delete(table).where(table.c.id.in_(some))).rowcount
                if room <= 0:
                    return False
            connection.execute(update(APPROVALS).where(APPROVALS.c.used_by.in_(own)).values(used_by=None))
            below = SESSIONS.c.parent_session_id.in_(own)
            connection.execute(update(SESSIONS).where(below).values(parent_session_id=None))
            connection.execute(delete(SESSIONS).where(SESSIONS.c.cycle_id == cycle_id))
            gone = (
                delete(CYCLES).where(CYCLES.c.id == cycle_id).returning(CYCLES.c.message_bytes, CYCLES.c.record_bytes)
            )
            row = connection.execute(gone).one_or_none()
            if row is not None:
                add_size(connection, Kind.MESSAGES, -(row.message_bytes or 0))
                add_size(connection, Kind.RECORDS, -(row.record_bytes or 0))
        return True


def _rows_of(cycle_id: int) -> dict[Table, Select[Any]]:
    own = select(SESSIONS.c.id).where(SESSIONS.c.cycle_id == cycle_id)
    return {
        CYCLES: select(CYCLES).where(CYCLES.c.id == cycle_id),
        SERVICE_ACTIONS: select(SERVICE_ACTIONS).where(SERVICE_ACTIONS.c.session_id.in_(own)),
        **{
            table: select(table).where(table.c.cycle_id == cycle_id)
            for table in (SESSIONS, TRANSITIONS, APPROVALS, *_MESSAGES)
        },
    }


def _archived(table: Table, row: dict[str, Any]) -> ArchivedRow:
    values = {
        name: value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value for name, value in row.items()
    }
    return ArchivedRow(table.name, row["id"], values)


def _fitting(
    connection: Connection, table: Table, cycle_id: int, up_to: int, room: tuple[int, int]
) -> tuple[list[int], tuple[int, int]]:
    """The first rows that fit into the room, at least one if any does by number, and the room that is then left."""
    rows, size = room
    if rows <= 0 or size <= 0:
        return [], room
    mine = table.c.cycle_id == cycle_id, table.c.id <= up_to
    found = connection.execute(select(table.c.id, row_size(table)).where(*mine).order_by(table.c.id).limit(rows))
    ids = []
    for record, length in found:
        if size <= 0:
            break
        ids.append(record)
        size -= length
    return ids, (rows - len(ids), size)


def _has_up_to(connection: Connection, table: Table, cycle_id: int, up_to: int | None) -> bool:
    lowest = connection.execute(select(func.min(table.c.id)).where(table.c.cycle_id == cycle_id)).scalar()
    return lowest is not None and (up_to is None or lowest <= up_to)


def _mark_archived(connection: Connection, cycle_id: int, now: datetime) -> None:
    fresh = CYCLES.c.id == cycle_id, CYCLES.c.archived_at.is_(None)
    row = connection.execute(select(CYCLES.c.message_bytes).where(*fresh).with_for_update()).one_or_none()
    if row is not None:
        connection.execute(update(CYCLES).where(*fresh).values(archived_at=now, message_bytes=0))
        add_size(connection, Kind.MESSAGES, -(row.message_bytes or 0))
