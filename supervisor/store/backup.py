"""Back the records up while they are in use. Does I/O. Called from ``cli.backup``; ``restore`` is the way back.

One kind of file for both databases: what SQLite held can be restored into PostgreSQL, and the other way round. Rows are
streamed, never held all at once.
"""

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import JSON, Column, ColumnElement, Connection, Float, Select, Table, Text, cast, select
from sqlalchemy.types import TypeEngine

from supervisor import __version__
from supervisor.model.document import timestamp
from supervisor.store.backup_file import Header, Row, Seal, Tell, refuse_existing, write_file
from supervisor.store.columns import AnyText, UtcDateTime
from supervisor.store.declared import declared_schema
from supervisor.store.engine import Database
from supervisor.store.schema import HEAD, open_database

# Not more: what a tool printed can make a row some megabytes long.
ROWS_AT_ONCE = 100
_STREAMED = {"yield_per": ROWS_AT_ONCE}


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSummary:
    """A backup that was written or restored, and found to be whole. ``size`` is in bytes."""

    file: Path
    database: str
    size: int
    revision: str
    version: str
    written_at: str
    rows: dict[str, int]
    checksum: str


def write_backup(url: str, file: Path, *, now: datetime, tell: Tell) -> BackupSummary:
    """Write the records as they are at one moment into a new file, and read it back."""
    # Asked first too: to be told so after an hour would be a pity.
    refuse_existing(file)
    database = open_database(url, create=False)
    header = Header(revision=HEAD, version=__version__, written_at=timestamp(now) or "", columns=columns())
    try:
        with closing(_rows_of_one_moment(database)) as rows:
            seal = write_file(file, header, rows, tell)
    finally:
        database.close()
    return summary(database, file, header, seal)


def summary(database: Database, file: Path, header: Header, seal: Seal) -> BackupSummary:
    return BackupSummary(
        file=file,
        database=database.name,
        size=file.stat().st_size,
        revision=header.revision,
        version=header.version,
        written_at=header.written_at,
        rows=seal.rows,
        checksum=seal.checksum,
    )


def tables() -> list[Table]:
    """Every table, after those it refers to."""
    return declared_schema().sorted_tables


def columns() -> dict[str, list[str]]:
    return {table.name: [column.name for column in table.columns] for table in tables()}


def places(table: Table, kind: type[TypeEngine[Any]]) -> list[int]:
    """Which of the columns are of that type."""
    return [place for place, column in enumerate(table.columns) if isinstance(column.type, kind)]


def rows_in(connection: Connection) -> Iterator[Row]:
    """Every row of every table as it goes into a file."""
    for table in tables():
        moments, numbers = places(table, UtcDateTime), places(table, Float)
        with connection.execute(_selection(table, connection.dialect.name), execution_options=_STREAMED) as found:
            for values in map(list, found):
                for place in moments:
                    if values[place] is not None:
                        values[place] = values[place].isoformat()
                for place in numbers:
                    if values[place] == 0:
                        # SQLite has no negative zero, and the two are to be the same when they are compared.
                        values[place] = 0.0
                yield Row(table.name, values)


def _rows_of_one_moment(database: Database) -> Generator[Row, None, None]:
    """Every row, from one transaction that ends with the last of them: while it lasts, SQLite's log only grows."""
    with database.reading() as connection:
        yield from rows_in(connection)


def _selection(table: Table, dialect: str) -> Select[Any]:
    # JSON as the text it is kept as, which both databases give back unchanged; and so that its null is not SQL's.
    wanted = [cast(column, Text) if isinstance(column.type, JSON) else column for column in table.columns]
    return select(*wanted).order_by(*(_in_order(column, dialect) for column in table.primary_key.columns))


def _in_order(key: Column[Any], dialect: str) -> ColumnElement[Any]:
    """By number, since a record refers only to earlier ones of its table; texts in the same order on both databases."""
    return key.collate("C") if dialect == "postgresql" and isinstance(key.type, AnyText) else key
