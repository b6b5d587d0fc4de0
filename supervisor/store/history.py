"""Beginning a record, and moving it from one status to the next. Does I/O on the caller's connection.

The only place where the status of a cycle or session is written. What may follow what is asked of ``decide.lifecycle``;
every move is entered in the append-only history in the same transaction. Used by ``writes`` and what sweeps.
"""

import os
import socket
from collections.abc import Collection
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, Table, bindparam, insert, select, update
from sqlalchemy.sql.dml import ReturningUpdate

from supervisor.decide.lifecycle import CYCLE_STARTS, SESSION_STARTS, before
from supervisor.errors import Conflict, NotFound
from supervisor.model.cycle import CycleStatus
from supervisor.model.history import Transition
from supervisor.model.session import SessionStatus
from supervisor.store.engine import Database
from supervisor.store.lifecycle_tables import TRANSITIONS
from supervisor.store.mapping import Values
from supervisor.store.statements import inserted
from supervisor.store.tables import CYCLES

Status = SessionStatus | CycleStatus


class History:
    """The history of a ``Store``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def history(self, *, cycle_id: int | None = None, session_id: int | None = None) -> list[Transition]:
        """Every change of a status, oldest first: of a cycle with all its sessions, or of one session."""
        if (cycle_id is None) == (session_id is None):
            raise ValueError("history is asked for by cycle or by session")
        whose = TRANSITIONS.c.session_id == session_id if cycle_id is None else TRANSITIONS.c.cycle_id == cycle_id
        statement = select(TRANSITIONS).where(whose).order_by(TRANSITIONS.c.id)
        with self._database.reading() as connection:
            return [_transition_of(row) for row in connection.execute(statement).mappings()]


def begun(
    connection: Connection, table: Table, values: Values, *, at: datetime, why: str | None, by: str | None = None
) -> RowMapping:
    """Insert a cycle or session in a status in which one may begin."""
    to: Status = values["status"]
    if to not in CYCLE_STARTS | SESSION_STARTS:
        raise ValueError(f"no record begins as {to}")
    row = inserted(connection, table, values)
    _enter(connection, table, row, None, to, at=at, why=why, by=by)
    return row


def moved(
    connection: Connection,
    table: Table,
    record: int,
    to: Status,
    values: Values,
    *,
    at: datetime,
    why: str | None,
    expect: Collection[Status] | None = None,
    by: str | None = None,
) -> RowMapping:
    """Move a record on. ``Conflict`` when it is in a status from which it may not, or not in one the caller expects."""
    allowed = before(to)
    expected = allowed if expect is None else allowed.intersection(expect)
    found = connection.execute(_status_of(table), {"record": record}).scalar()
    name = f"{table.name.removesuffix('s')} {record}"
    if found is None:
        raise NotFound(f"There is no {name}.")
    if found not in allowed:
        raise Conflict(f"The {name} is {found}, and what is {found} does not become {to}.")
    if found not in expected:
        raise Conflict(f"The {name} was expected to be {' or '.join(sorted(expected)) or 'otherwise'}: it is {found}.")
    changes = {**values, "status": to, "record": record, "was": found}
    row = connection.execute(_move(table), changes).mappings().one()
    _enter(connection, table, row, found, to, at=at, why=why, by=by)
    return row


def _enter(
    connection: Connection,
    table: Table,
    row: RowMapping,
    was: str | None,
    to: Status,
    *,
    at: datetime,
    why: str | None,
    by: str | None,
) -> None:
    is_cycle = table is CYCLES
    values: Values = {
        "cycle_id": row["id"] if is_cycle else row["cycle_id"],
        "session_id": None if is_cycle else row["id"],
        "at": at,
        "from_status": was,
        "to_status": to,
        "why": why,
        "made_by": by or _this_process(),
    }
    connection.execute(insert(TRANSITIONS), values)


# Made once for each table: to put a statement together takes SQLAlchemy longer than the database needs to execute it.
@cache
def _status_of(table: Table) -> Select[tuple[Any]]:
    return select(table.c.status).where(table.c.id == bindparam("record")).with_for_update()


@cache
def _move(table: Table) -> ReturningUpdate[Any]:
    unchanged = table.c.id == bindparam("record"), table.c.status == bindparam("was")
    return update(table).where(*unchanged).returning(table)


def _this_process() -> str:
    return f"opsladder {os.getpid()} on {socket.gethostname()}"


def _transition_of(row: RowMapping) -> Transition:
    return Transition(
        id=row["id"],
        cycle_id=row["cycle_id"],
        session_id=row["session_id"],
        at=row["at"],
        from_status=row["from_status"],
        to_status=row["to_status"],
        why=row["why"],
        made_by=row["made_by"],
    )
