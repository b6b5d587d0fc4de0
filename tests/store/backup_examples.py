"""Rows for every table, made from the declared schema alone, and what a database holds of them. Does I/O.

So a table or a column that is added later takes part in the tests of backups by itself.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    Float,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    cast,
    func,
    insert,
    select,
)

from supervisor.store.columns import AnyText, UtcDateTime
from supervisor.store.declared import declared_schema
from supervisor.store.engine import connect, locate

Values = dict[str, Any]
# A value for a column, whatever its type.
Draw = Callable[[Column[Any]], object]

TEXTS = (
    "plain",
    "",
    "Grüße, 你好, 🚒\u200d",
    "quotes \" ' and \\ back\\nslashes",
    "lines\r\nand\ttabs\u2028",
    "a NUL \x00, half a pair \ud83d",
)
FLOATS = (0.1, 0.0, -0.0, 1e-300, 1.7976931348623157e308, 2.5)
TIMES = (
    datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2026, 10, 25, 2, 30, tzinfo=timezone(timedelta(hours=2))),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
)
DOCUMENTS = (
    {"a": [1, 2.0, None, True, "ü\x00\ud83d"], "": {"b": {}}, "big": 2**70},
    {},
    {"nested": [[[{"x": 1e-7}]]]},
)


@contextmanager
def opened(url: str) -> Iterator[Connection]:
    database = connect(locate(url))
    try:
        with database.writing() as connection:
            yield connection
    finally:
        database.close()


def held(url: str) -> dict[str, list[tuple[object, ...]]]:
    """All that the database holds, JSON as its text."""
    with opened(url) as connection:
        return {
            table.name: sorted(
                (
                    tuple(row)
                    for row in connection.execute(
                        select(*(cast(c, Text) if isinstance(c.type, JSON) else c for c in table.columns))
                    )
                ),
                key=repr,
            )
            for table in declared_schema().sorted_tables
        }


def counts(url: str) -> dict[str, int]:
    with opened(url) as connection:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in declared_schema().sorted_tables
        }


def fill(url: str, rows: int = 6) -> None:
    """Rows with something in every column, with nothing in any that may be empty, and with odd values."""
    for number in range(rows):
        draw = _nothing if number == 1 else odd(number)
        with opened(url) as connection:
            for table in declared_schema().sorted_tables:
                connection.execute(insert(table), [row(connection, table, number, draw)])


def row(connection: Connection, table: Table, number: int, draw: Draw) -> Values:
    """A row that the table's constraints allow."""
    return {column.name: _value(connection, table, column, number, draw) for column in table.columns}


def _value(connection: Connection, table: Table, column: Column[Any], number: int, draw: Draw) -> object:
    allowed = _allowed(table, column)
    own_key = column.primary_key and not column.foreign_keys
    if column.foreign_keys:
        [reference] = column.foreign_keys
        others = connection.execute(select(reference.column).order_by(reference.column)).scalars().all()
        # The oldest one may be asked for with nothing; a record that refers to its own kind needs an earlier one.
        return others[-1] if others and (draw(column) is not None or not column.nullable) else None
    if own_key and isinstance(column.type, AnyText):
        return f"{number} {draw(column)}"
    if own_key:
        return number * 7 + 3
    value = draw(column)
    if value is None:
        return value if column.nullable else odd(number)(column) if not allowed else allowed[0]
    if allowed:
        return allowed[number % len(allowed)]
    if not _is_unique(table, column):
        return value
    return f"{number} {value}" if isinstance(value, str) else number


def _allowed(table: Table, column: Column[Any]) -> Sequence[str]:
    """The values a check of the table names for the column."""
    for check in table.constraints:
        if isinstance(check, CheckConstraint) and str(check.sqltext).startswith(f"{column.name} IN"):
            return re.findall(r"'(.*?)'", str(check.sqltext))
    return ()


def _is_unique(table: Table, column: Column[Any]) -> bool:
    unique = [c for c in table.constraints if isinstance(c, UniqueConstraint)] + [i for i in table.indexes if i.unique]
    return any(column.name in each.columns for each in unique)


def _nothing(column: Column[Any]) -> object:
    return None if column.nullable else odd(1)(column)


def odd(number: int) -> Draw:
    def draw(column: Column[Any]) -> object:
        match column.type:
            case AnyText():
                return TEXTS[number % len(TEXTS)]
            case UtcDateTime():
                return TIMES[number % len(TIMES)]
            case JSON():
                return DOCUMENTS[number % len(DOCUMENTS)]
            case Boolean():
                return number % 2 == 0
            case BigInteger():
                return 2**63 - 1 - number
            case Integer():
                return 2**31 - 1 - number
            case Float():
                return FLOATS[number % len(FLOATS)]
        raise AssertionError(f"no example of {column.type!r}")

    return draw
