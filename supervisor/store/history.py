"""Beginning a record, and moving it from one status to the next. Does I/O on the caller's connection.

The only place where the status of a cycle or session is written. What may follow what is asked of ``decide.lifecycle``;
every move is entered in the append-only history in the same transaction. Used by ``writes`` and what sweeps.
"""

import os
import socket
from collections.abc import Collection, Sequence
from dataclasses import dataclass
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
    connection.execute(insert(TRANSITIONS), _entry(table, row, None, to, at=at, why=why, by=by))
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
    [row] = moved_all(
        connection, table, [Move(record=record, to=to, values=values, at=at, why=why, expect=expect, by=by)]
    )
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One record that is to be moved on, and what else is written on it."""

    record: int
    to: Status
    values: Values
    at: datetime
    why: str | None
    expect: Collection[Status] | None = None
    by: str | None = None


def moved_all(connection: Connection, table: Table, moves: Sequence[Move]) -> list[RowMapping]:
    """The same for several records of a table, in few statements: all of them or none."""
    wanted = {"records": sorted(move.record for move in moves)}
    found = {row.id: row.status for row in connection.execute(_statuses_of(table), wanted)}
    rows, entries = [], []
    for move in moves:
        was = found.get(move.record)
        _check(f"{table.name.removesuffix('s')} {move.record}", was, move)
        changes = {**move.values, "status": move.to, "record": move.record, "was": was}
        row = connection.execute(_move(table), changes).mappings().one()
        rows.append(row)
        entries.append(_entry(table, row, was, move.to, at=move.at, why=move.why, by=move.by))
    connection.execute(insert(TRANSITIONS), entries)
    return rows


def _check(name: str, was: str | None, move: Move) -> None:
    allowed = before(move.to)
    expected = allowed if move.expect is None else allowed.intersection(move.expect)
    if was is None:
        raise NotFound(f"There is no {name}.")
    if was not in allowed:
        raise Conflict(f"The {name} is {was}, and what is {was} does not become {move.to}.")
    if was not in expected:
        raise Conflict(f"The {name} was expected to be {' or '.join(sorted(expected)) or 'otherwise'}: it is {was}.")


def _entry(
    table: Table, row: RowMapping, was: str | None, to: Status, *, at: datetime, why: str | None, by: str | None
) -> Values:
    is_cycle = table is CYCLES
    return {
        "cycle_id": row["id"] if is_cycle else row["cycle_id"],
        "session_id": None if is_cycle else row["id"],
        "at": at,
        "from_status": was,
        "to_status": to,
        "why": why,
        "made_by": by or _this_process(),
    }


# Made once for each table: to put a statement together takes SQLAlchemy longer than the database needs to execute it.
@cache
def _statuses_of(table: Table) -> Select[tuple[Any, Any]]:
    wanted = table.c.id.in_(bindparam("records", expanding=True))
    # In one order: two who want to move the same records wait for each other in a line and not in a circle.
    return select(table.c.id, table.c.status).where(wanted).order_by(table.c.id).with_for_update()


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
