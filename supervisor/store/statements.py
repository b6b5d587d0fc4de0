"""Inserting one row, and changing one row by compare-and-set. Does I/O on the caller's connection.

Used by ``writes`` and by what the guard records.
"""

from collections.abc import Collection, Sequence
from enum import StrEnum
from functools import cache
from typing import Any

from sqlalchemy import Connection, RowMapping, Table, insert, select, update
from sqlalchemy.sql.dml import ReturningInsert

from supervisor.errors import Conflict, NotFound, StoreError
from supervisor.store.mapping import Values


def inserted(connection: Connection, table: Table, values: Values) -> RowMapping:
    """Insert a row of plain values and give it back as the database has it."""
    return connection.execute(_insert(table), values).mappings().one()


@cache
def _insert(table: Table) -> ReturningInsert[Any]:
    """Made once for each table: putting it together takes longer than executing it."""
    return insert(table).returning(table)


def changed(
    connection: Connection, table: Table, record: int, expect: Collection[StrEnum], values: Values
) -> RowMapping:
    """Change the record if its status is one of those expected, else say what it is."""
    expected = sorted(expect)
    statement = update(table).where(table.c.id == record, table.c.status.in_(expected)).values(values)
    row = connection.execute(statement.returning(table)).mappings().one_or_none()
    if row is None:
        raise _refusal(connection, table, record, expected)
    return row


def _refusal(connection: Connection, table: Table, record: int, expected: Sequence[str]) -> StoreError:
    name = f"{table.name.removesuffix('s')} {record}"
    found = connection.execute(select(table.c.status).where(table.c.id == record)).scalar()
    if found is None:
        return NotFound(f"There is no {name}.")
    return Conflict(f"The {name} was expected to be {' or '.join(expected)}, but it is {found}.")
