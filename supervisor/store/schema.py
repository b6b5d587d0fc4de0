"""Which schema a database has and which it needs. Does I/O. Called by ``open_store`` and by ``opsladder db``.

Alembic is loaded only when something has to be migrated or compared: a cycle's start needs one query.
"""

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from supervisor.errors import SchemaOutdated
from supervisor.store.engine import Database, Location, PostgresServer, SqliteFile, connect, locate, prepare_file
from supervisor.store.failures import means_no_such_table
from supervisor.store.records import SchemaState

# The newest migration. Revisions are numbered, so a greater one comes from a later opsladder.
HEAD = "0004"

_UPGRADE = "Run opsladder db upgrade."


def open_database(url: str, *, create: bool) -> Database:
    """An open database with the schema this version needs."""
    location = locate(url)
    database = connect(location)
    try:
        current = _revision(location, database)
        if current != HEAD:
            if not (create and isinstance(location, SqliteFile)):
                raise _problem(database, current)
            _bring_up_to_date(location, database, current)
    except BaseException:
        database.close()
        raise
    return database


def upgrade(url: str) -> None:
    """Bring the schema up to date, making a SQLite file that is not there yet."""
    location = locate(url)
    database = connect(location)
    try:
        _bring_up_to_date(location, database, _revision(location, database))
    finally:
        database.close()


def check(url: str) -> SchemaState:
    """Look at the schema without changing anything."""
    location = locate(url)
    database = connect(location, read_only=True)
    try:
        current = _revision(location, database)
        if current != HEAD:
            return SchemaState(current=current, head=HEAD, ok=False, detail=str(_problem(database, current)))
        from supervisor.store.migrate import differences

        with database.reading() as connection:
            found = differences(connection)
    finally:
        database.close()
    if found:
        detail = f"The {database.name} is not as this version expects it: {', '.join(found)}."
        return SchemaState(current=current, head=HEAD, ok=False, detail=detail)
    return SchemaState(current=current, head=HEAD, ok=True, detail=f"The {database.name} is up to date.")


def _revision(location: Location, database: Database) -> str | None:
    """The migration the database is at; ``None`` when it was never migrated."""
    if isinstance(location, SqliteFile) and not location.exists():
        return None
    with database.reading() as connection:
        try:
            found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        except DBAPIError as error:
            if not means_no_such_table(error):
                raise
            return None
        return found


def _bring_up_to_date(location: Location, database: Database, current: str | None) -> None:
    """Run the missing migrations. Of two processes that do so at once, the later one finds nothing left to do."""
    if _is_newer(current):
        raise _problem(database, current)
    from supervisor.store.migrate import migrate

    if isinstance(location, SqliteFile):
        prepare_file(location)
    with database.writing() as connection:
        if isinstance(location, PostgresServer):
            # Held until the transaction ends. SQLite's writers take turns anyway.
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('opsladder schema'))"))
        migrate(connection)


def _is_newer(current: str | None) -> bool:
    return current is not None and current > HEAD


def _problem(database: Database, current: str | None) -> SchemaOutdated:
    if current is None:
        return SchemaOutdated(f"The {database.name} has not been set up yet.", remedy=_UPGRADE)
    if _is_newer(current):
        return SchemaOutdated(
            f"The {database.name} has schema {current}, made by a newer opsladder; this one knows {HEAD}.",
            remedy="Upgrade opsladder.",
        )
    return SchemaOutdated(f"The {database.name} has schema {current}, and {HEAD} is needed.", remedy=_UPGRADE)
