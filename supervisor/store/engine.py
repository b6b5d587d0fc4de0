"""Where the database is, and how it is talked to: in short transactions. Does I/O. Used inside the store only."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from supervisor.errors import ConfigError
from supervisor.store.columns import to_json
from supervisor.store.failures import is_busy, translated

_SQLITE_PATIENCE_SECONDS = 5.0
_WRITES = "opsladder_writes"

# libpq settings an operator can override in the URL. A server that went away must not hold a call for ever.
_POSTGRES_DEFAULTS = {
    "application_name": "opsladder",
    "connect_timeout": "5",
    "tcp_user_timeout": "15000",
    # That counts only while we send. Whoever waits for an answer of a host that is gone finds out by asking: after the
    # two hours that are the system's default, else.
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "options": "-c lock_timeout=5s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteFile:
    """A database in a file. ``patience`` is how long a call waits for another one's lock, in seconds."""

    path: Path
    patience: float

    @property
    def name(self) -> str:
        return f"SQLite database {self.path}"

    def exists(self) -> bool:
        with translated(self.name):
            return self.path.exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresServer:
    """A database on a server."""

    url: URL

    @property
    def name(self) -> str:
        """Where it is, without user and password."""
        host = self.url.host or self.url.query.get("host") or "the local socket"
        port = f":{self.url.port}" if self.url.port else ""
        return f"PostgreSQL database {self.url.database or 'with no name'} at {host}{port}"


Location = SqliteFile | PostgresServer


def locate(url: str) -> Location:
    """Read a database URL. It is never part of a message: it may hold a password.

    SQLite takes ``?timeout=SECONDS``, PostgreSQL any of libpq's parameters.
    """
    try:
        parsed = make_url(url)
        patience = float(str(parsed.query.get("timeout", _SQLITE_PATIENCE_SECONDS)))
    except (ArgumentError, ValueError) as error:
        raise ConfigError(
            "state.database_url cannot be read.", remedy="Write sqlite:////path/to/file or postgresql://user@host/name."
        ) from error
    match parsed.get_backend_name():
        case "sqlite" if parsed.database and parsed.database != ":memory:":
            return SqliteFile(path=Path(parsed.database).absolute(), patience=patience)
        case "sqlite":
            raise ConfigError(
                "state.database_url names no file, and what only memory holds is lost.",
                remedy="Write sqlite:////path/to/file.",
            )
        case "postgresql" | "postgres":
            return PostgresServer(url=parsed.set(drivername="postgresql+psycopg"))
        case other:
            raise ConfigError(
                f"state.database_url asks for {other}, which is not supported.", remedy="Use sqlite or postgresql."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """An open database. ``name`` is fit for messages."""

    name: str
    reader: Engine
    writer: Engine

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction in which every statement sees the same state."""
        with translated(self.name), self.reader.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is committed at the end of the block, or rolled back as a whole."""
        with translated(self.name), self.writer.begin() as connection:
            yield connection

    def close(self) -> None:
        # Both are views of one engine with one pool.
        self.writer.dispose()


def connect(location: Location, *, read_only: bool = False) -> Database:
    """Make the connection pool; the first call connects."""
    match location:
        case SqliteFile():
            return _sqlite(location, read_only=read_only)
        case PostgresServer():
            return _postgres(location)


def _sqlite(location: SqliteFile, *, read_only: bool) -> Database:
    def open_connection() -> sqlite3.Connection:
        uri = f"{location.path.as_uri()}?{_sqlite_mode(location.path, read_only=read_only)}"
        # No isolation level: the driver would begin transactions on its own, too late and never for DDL.
        connection = sqlite3.connect(
            uri, uri=True, timeout=location.patience, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute("PRAGMA synchronous=FULL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    engine = create_engine(
        "sqlite://", creator=open_connection, poolclass=QueuePool, json_serializer=to_json, hide_parameters=True
    )
    event.listen(engine, "begin", _begin_sqlite)
    return Database(name=location.name, reader=engine, writer=engine.execution_options(**{_WRITES: True}))


def _sqlite_mode(path: Path, *, read_only: bool) -> str:
    if not read_only:
        # Never "rwc": SQLite would make a missing file with the mode of the umask.
        return "mode=rw"
    # Even a reader makes SQLite's side files, and cannot remove them. With no log there, nobody has the file open and
    # it can be read without them.
    log = path.with_name(f"{path.name}-wal")
    return "mode=ro" if log.exists() else "mode=ro&immutable=1"


def _begin_sqlite(connection: Connection) -> None:
    # A writer asks for the lock at once: a transaction that turns from reading to writing is refused without waiting
    # when another process wrote in between.
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _postgres(location: PostgresServer) -> Database:
    defaults = {key: value for key, value in _POSTGRES_DEFAULTS.items() if key not in location.url.query}
    try:
        # Asking first whether a pooled connection still lives lets the call after a server restart succeed.
        engine = create_engine(
            location.url.update_query_dict(defaults), pool_pre_ping=True, json_serializer=to_json, hide_parameters=True
        )
    except ImportError as error:
        raise ConfigError(
            "state.database_url asks for PostgreSQL, but its driver is not installed.",
            remedy="Install opsladder[postgres].",
        ) from error
    reader = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    # Whatever the server's default is: who waited for a lock has to see what was committed meanwhile.
    writer = engine.execution_options(isolation_level="READ COMMITTED")
    return Database(name=location.name, reader=reader, writer=writer)


def prepare_file(location: SqliteFile) -> None:
    """Make the file and its directory for this user only, and switch it to write-ahead logging."""
    with translated(location.name):
        location.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A file that exists is left alone: closing it would drop the locks SQLite holds on it in this process.
        with suppress(FileExistsError):
            os.close(os.open(location.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        _use_write_ahead_log(location)


def _use_write_ahead_log(location: SqliteFile) -> None:
    """Switch the file over. SQLite refuses at once, whatever its timeout, while another connection is at work."""
    connection = sqlite3.connect(f"{location.path.as_uri()}?mode=rw", uri=True, timeout=location.patience)
    try:
        deadline = time.monotonic() + location.patience
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            else:
                return
    finally:
        connection.close()
