"""The database's own clock. Does I/O on the caller's connection. Used by ``cooldowns`` and ``services``.

Several hosts may share a database; what they count in windows of time must not depend on whose clock is ahead.
"""

from datetime import datetime

from sqlalchemy import Connection, literal_column, select

from supervisor.store.columns import UtcDateTime

# Not PostgreSQL's now(): that is when the transaction began, before it waited for a lock.
_POSTGRES = select(literal_column("clock_timestamp()", UtcDateTime()))
_SQLITE = select(literal_column("strftime('%Y-%m-%d %H:%M:%f', 'now')", UtcDateTime()))


def database_now(connection: Connection) -> datetime:
    """What time it is for the database at this moment."""
    statement = _POSTGRES if connection.dialect.name == "postgresql" else _SQLITE
    return connection.execute(statement).scalar_one()
