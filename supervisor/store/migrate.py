"""Run Alembic on an open connection. Does I/O. Called by ``schema``, and only when there is something to do.

A new migration is a file in ``migrations/versions`` with the next number, written by hand; ``schema.HEAD`` names it.
"""

from pathlib import Path
from threading import Lock

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.util import CommandError
from sqlalchemy import Connection
from sqlalchemy.sql.schema import SchemaItem

from supervisor.errors import StoreError
from supervisor.store.declared import declared_schema

MIGRATIONS = Path(__file__).resolve().parent / "migrations"

# Alembic hands its state to the migrations through a module global.
_ALEMBIC_IS_BUSY = Lock()


def configuration(connection: Connection | None = None) -> Config:
    """Alembic's settings; there is no ini file, so that an installed package needs no path from outside."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def migrate(connection: Connection) -> None:
    """Run the missing migrations inside the caller's transaction."""
    try:
        with _ALEMBIC_IS_BUSY:
            command.upgrade(configuration(connection), "head")
    except CommandError as error:
        raise StoreError(f"The schema cannot be migrated: {error}.") from error


def differences(connection: Connection) -> list[str]:
    """What sets the database's tables apart from the declared ones, as short names."""
    context = MigrationContext.configure(connection, opts={"include_object": _is_ours, "compare_type": True})
    return [_name(difference) for difference in compare_metadata(context, declared_schema())]


def _is_ours(item: SchemaItem, name: str | None, kind: str, reflected: bool, counterpart: SchemaItem | None) -> bool:  # noqa: ARG001
    """Leave out tables that others keep in the same database."""
    return kind != "table" or name in declared_schema().tables


def _name(difference: object) -> str:
    """``add_column sessions.epoch`` and the like. Alembic gives changes of one column as a list of tuples."""
    entry = difference[0] if isinstance(difference, list) else difference
    if not isinstance(entry, tuple):
        return str(entry)
    parts = [getattr(part, "name", part) for part in entry[1:]]
    return " ".join([str(entry[0]), ".".join(part for part in parts if isinstance(part, str))])
