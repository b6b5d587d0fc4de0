"""Restore a backup into a database without records: all of it, or nothing. Does I/O. Called from ``cli.backup``.

What a supervisor was doing when the backup was taken is restored as it was; recovery deals with it like with any other
cycle whose owner is gone.
"""

from datetime import datetime
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    Column,
    ColumnElement,
    Connection,
    Insert,
    Table,
    Text,
    bindparam,
    cast,
    func,
    insert,
    inspect,
    select,
    text,
)

from supervisor.errors import Conflict, SchemaOutdated, StoreError
from supervisor.store.backup import ROWS_AT_ONCE, BackupSummary, columns, places, rows_in, summary, tables
from supervisor.store.backup_file import TELL_EVERY, Header, Row, Seal, Tell, check_file, damaged, open_file, row_line
from supervisor.store.columns import UtcDateTime
from supervisor.store.engine import Database, SqliteFile, connect, locate
from supervisor.store.schema import HEAD, open_database, upgrade

_BIND = "value_"


def restore_backup(url: str, file: Path, *, tell: Tell) -> BackupSummary:
    """Put the records of a backup into a database that has none.

    A file that is not whole, or that this version cannot use, is refused before the database is touched.
    """
    header, seal = check_file(file, tell)
    _refuse_other_schema(file, header)
    _refuse_records_before_upgrade(url)
    upgrade(url)
    database = open_database(url, create=False)
    try:
        with database.writing() as connection:
            _lock(connection)
            _refuse_records(connection, database)
            _insert_all(connection, file, tell)
            _go_on_numbering(connection)
            _compare(connection, header, seal, tell)
    finally:
        database.close()
    return summary(database, file, header, seal)


def _refuse_other_schema(file: Path, header: Header) -> None:
    if header.revision < HEAD:
        raise SchemaOutdated(
            f"The backup {file} has schema {header.revision}, and this opsladder needs {HEAD}.",
            remedy=f"Restore it with opsladder {header.version}, then run opsladder db upgrade with this one.",
        )
    if header.revision > HEAD:
        raise SchemaOutdated(
            f"The backup {file} has schema {header.revision}, made by a newer opsladder; this one knows {HEAD}.",
            remedy=f"Upgrade opsladder to {header.version}.",
        )
    if header.columns != columns():
        raise damaged(file, f"its tables are not those of schema {HEAD}")


def _refuse_records_before_upgrade(url: str) -> None:
    """Nobody's records are migrated only for their owner to be told that nothing can be restored there."""
    location = locate(url)
    if isinstance(location, SqliteFile) and not location.exists():
        return
    database = connect(location)
    try:
        with database.reading() as connection:
            _refuse_records(connection, database)
    finally:
        database.close()


def _refuse_records(connection: Connection, database: Database) -> None:
    there = inspect(connection)
    for table in tables():
        if there.has_table(table.name) and connection.execute(select(text("1")).select_from(table).limit(1)).first():
            raise Conflict(
                f"The {database.name} already holds records ({table.name}); a backup is restored into an empty one.",
                remedy="Set state.database_url to a new database, or move a SQLite file away with the -wal beside it.",
            )


def _lock(connection: Connection) -> None:
    """Let nobody write until the records are there. SQLite's writers take turns anyway."""
    if connection.dialect.name == "postgresql":
        quote = connection.dialect.identifier_preparer.quote
        connection.execute(text(f"LOCK TABLE {', '.join(quote(table.name) for table in tables())} IN EXCLUSIVE MODE"))


def _insert_all(connection: Connection, file: Path, tell: Tell) -> None:
    by_name = {table.name: table for table in tables()}
    done = 0
    with open_file(file) as reader:
        for name, rows in groupby(reader.rows(), key=attrgetter("table")):
            table = by_name[name]
            insertion = _insertion(table, connection.dialect.name)
            names = [_BIND + column.name for column in table.columns]
            moments = places(table, UtcDateTime)
            while batch := list(islice(rows, ROWS_AT_ONCE)):
                values = [dict(zip(names, _values(file, row, moments), strict=True)) for row in batch]
                connection.execute(insertion, values)
                done += len(batch)
                if done % TELL_EVERY < len(batch):
                    tell("restored", done)


def _insertion(table: Table, dialect: str) -> Insert:
    return insert(table).values({column.name: _bind(column, dialect) for column in table.columns})


def _bind(column: Column[Any], dialect: str) -> ColumnElement[Any]:
    if not isinstance(column.type, JSON):
        return bindparam(_BIND + column.name, type_=column.type)
    given = bindparam(_BIND + column.name, type_=Text())
    # SQLite keeps JSON as a text, and would make a number of what it is told to cast.
    return cast(given, JSON) if dialect == "postgresql" else given


def _values(file: Path, row: Row, moments: list[int]) -> list[Any]:
    """A row's values with its times as such."""
    for place in moments:
        if row.values[place] is not None:
            try:
                row.values[place] = datetime.fromisoformat(row.values[place])
            except (TypeError, ValueError):
                raise damaged(file, "a time cannot be read") from None
    return row.values


def _go_on_numbering(connection: Connection) -> None:
    """Let new records be numbered after the restored ones. SQLite does so by itself."""
    if connection.dialect.name != "postgresql":
        return
    for table in tables():
        key = table.autoincrement_column
        if key is not None:
            sequence = func.pg_get_serial_sequence(table.name, key.name)
            connection.execute(select(func.setval(sequence, func.max(key))))


def _compare(connection: Connection, header: Header, seal: Seal, tell: Tell) -> None:
    """Read everything again before it is committed: it has to have the rows and the checksum of the file."""
    found = Seal(header, header.line())
    for row in rows_in(connection):
        found.add(row.table, row_line(row))
        if found.count % TELL_EVERY == 0:
            tell("compared", found.count)
    if found.document() != seal.document():
        raise StoreError("The database does not give back what the backup holds; nothing was restored.")
    if connection.dialect.name == "sqlite":
        _check_sqlite(connection)


def _check_sqlite(connection: Connection) -> None:
    for pragma, expected in (("foreign_key_check", []), ("integrity_check", [("ok",)])):
        found = [tuple(row) for row in connection.exec_driver_sql(f"PRAGMA {pragma}")]
        if found != expected:
            raise StoreError(f"The database is not sound ({pragma}); nothing was restored.")
