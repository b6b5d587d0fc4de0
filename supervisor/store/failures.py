"""Turn what a database driver raises into opsladder's own errors. No I/O. Wrapped around every call by ``engine``.

Nothing of SQLAlchemy or a driver leaves the store. No statement and no value gets into a message: it may be secret.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError, StatementError

from supervisor.errors import Conflict, NotFound, StoreError, StoreUnavailable

# By the beginning of the name: SQLite's extended codes go on from that of the plain one.
_SQLITE_REMEDIES = {
    "SQLITE_BUSY": "Another process keeps it locked: try again, and look for one that hangs.",
    "SQLITE_LOCKED": "Another process keeps it locked: try again, and look for one that hangs.",
    "SQLITE_FULL": "Free some space on its disk, then try again.",
    "SQLITE_CANTOPEN": "Check that its directory exists and that this user may read and write it.",
    "SQLITE_READONLY": "Make the file and its directory writable for this user.",
    "SQLITE_PERM": "Make the file and its directory writable for this user.",
    "SQLITE_IOERR": "Check its disk and the free space on it, then try again.",
    "SQLITE_CORRUPT": "Restore it from a backup, or move it away to begin with an empty one.",
    "SQLITE_NOTADB": "Give the path of an opsladder database, or move that file away.",
}
_POSTGRES_REMEDIES = {
    "53100": "Free some space on the server's disk, then try again.",
    "55P03": "Another session keeps the record locked: try again, and look for one that hangs.",
    "25006": "Connect to the primary server: this one only reads.",
    "42501": "Grant this database user the rights on opsladder's tables.",
}
_UNREACHABLE = "Check that the server runs and that state.database_url is right."

_FOREIGN_KEY = {"SQLITE_CONSTRAINT_FOREIGNKEY", "23503"}
_UNIQUE = {"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "23505"}
_NO_SUCH_TABLE = "42P01"


@contextmanager
def translated(database: str) -> Iterator[None]:
    """Run a block against ``database`` (a name fit for a message) and raise only errors of our own."""
    try:
        yield
    except IntegrityError as error:
        raise _refused(database, error) from error
    except DataError as error:
        raise StoreError(f"The {database} refused a value: {_sentence(error.orig)}") from error
    except DBAPIError as error:
        raise _unavailable(database, error.orig) from error
    except StatementError as error:
        raise StoreError(f"The {database} cannot hold a value: {_sentence(error.orig)}") from error
    except OverflowError as error:
        raise StoreError(f"The {database} cannot hold a value: {_sentence(error)}") from error
    except SQLAlchemyError as error:
        raise StoreUnavailable(f"The {database} cannot be used: {_sentence(error)}") from error
    except sqlite3.Error as error:
        raise _unavailable(database, error) from error
    except OSError as error:
        raise StoreUnavailable(
            f"The {database} cannot be used: {error.strerror or error}.", remedy=_SQLITE_REMEDIES["SQLITE_CANTOPEN"]
        ) from error


def means_no_such_table(error: DBAPIError) -> bool:
    """Whether the statement failed because the table is not there."""
    if isinstance(error.orig, sqlite3.OperationalError):
        # SQLite has no code of its own for this.
        return str(error.orig).startswith("no such table")
    return _code(error.orig) == _NO_SUCH_TABLE


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection stood in the way for the moment."""
    return _code(error).startswith("SQLITE_BUSY")


def _code(error: BaseException | None) -> str:
    """SQLite's name of the error or PostgreSQL's five characters; empty when the driver gives neither."""
    return getattr(error, "sqlite_errorname", None) or getattr(error, "sqlstate", None) or ""


def _refused(database: str, error: IntegrityError) -> StoreError:
    code = _code(error.orig)
    if code in _FOREIGN_KEY:
        return NotFound(f"The {database} has no such cycle or session to attach the record to.")
    if code in _UNIQUE:
        return Conflict(f"The {database} already has that record.")
    return StoreError(f"The {database} refused the record: {_sentence(error.orig)}")


def _unavailable(database: str, cause: BaseException | None) -> StoreUnavailable:
    code = _code(cause)
    if isinstance(cause, sqlite3.Error):
        remedy = next((text for name, text in _SQLITE_REMEDIES.items() if code.startswith(name)), None)
    else:
        remedy = _POSTGRES_REMEDIES.get(code, _UNREACHABLE)
    return StoreUnavailable(f"The {database} cannot be used: {_sentence(cause)}", remedy=remedy)


def _sentence(cause: BaseException | None) -> str:
    """The cause on one line, ending like a sentence."""
    text = " ".join(str(cause or "no reason given").split())
    return text if text.endswith((".", "!", "?")) else f"{text}."
