"""A backup as a file: how it is written, checked and read. Does I/O, but knows no database. Used by ``backup``.

Lines of JSON, compressed with gzip: a header; ``["table", [value, …]]`` for each row; and a seal, which says how many
rows each table has and what the checksum of everything before it is. A file that was cut off or altered does not fit
its seal.
"""

import gzip
import json
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, NamedTuple

from supervisor.errors import OpsladderError, UsageError

SCHEMA = "opsladder.backup/1"

# Told what is being done, and with how many rows so far.
Tell = Callable[[str, int], None]
TELL_EVERY = 1_000

_SCHEMAS = SCHEMA.partition("/")[0] + "/"
_LONGEST_HEADER = 1_000_000
_DAMAGED = "Use another backup."


class Row(NamedTuple):
    """One row of a table, its values in the order in which the header names the columns."""

    table: str
    values: list[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a backup says about itself. ``columns`` has the tables in the order in which their rows come."""

    revision: str
    version: str
    written_at: str
    columns: Mapping[str, list[str]]

    def line(self) -> bytes:
        facts = {"revision": self.revision, "opsladder": self.version, "written_at": self.written_at}
        return _line({"schema": SCHEMA, **facts, "columns": self.columns})


class Seal:
    """The rows per table and the checksum of the lines it was given so far."""

    def __init__(self, header: Header, header_line: bytes) -> None:
        self.rows = dict.fromkeys(header.columns, 0)
        self.count = 0
        self._digest = sha256(header_line)

    def add(self, table: str, line: bytes) -> None:
        self.rows[table] += 1
        self.count += 1
        self._digest.update(line)

    @property
    def checksum(self) -> str:
        return self._digest.hexdigest()

    def document(self) -> dict[str, object]:
        return {"rows": self.rows, "sha256": self.checksum}


def row_line(row: Row) -> bytes:
    return _line(row)


def _line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def write_file(file: Path, header: Header, rows: Iterable[Row], tell: Tell) -> Seal:
    """Write a new file with these rows. It gets its name only when all of it is on disk and was read back."""
    with _cannot_be_written(file):
        refuse_existing(file)
        descriptor, name = tempfile.mkstemp(prefix=".opsladder-backup-", dir=file.parent)
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as raw:
                seal = _write(raw, header, rows, tell)
                raw.flush()
                os.fsync(raw.fileno())
            if check_file(temporary, tell)[1].document() != seal.document():
                raise damaged(file, "what was read back is not what was written")
            _give_name(temporary, file)
        finally:
            temporary.unlink(missing_ok=True)
    return seal


def refuse_existing(file: Path) -> None:
    if os.path.lexists(file):
        raise _exists(file)


def _exists(file: Path) -> UsageError:
    return UsageError(f"{file} already exists.", remedy="Give another name: a backup never takes another file's place.")


def _write(raw: IO[bytes], header: Header, rows: Iterable[Row], tell: Tell) -> Seal:
    # No name and no time in gzip's own header: a backup of the same records has the same bytes but for its header line.
    with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
        line = header.line()
        packed.write(line)
        seal = Seal(header, line)
        for row in rows:
            line = row_line(row)
            packed.write(line)
            seal.add(row.table, line)
            if seal.count % TELL_EVERY == 0:
                tell("written", seal.count)
        packed.write(_line(seal.document()))
    return seal


def _give_name(temporary: Path, file: Path) -> None:
    try:
        # Unlike a rename, a link refuses to take the place of a file that somebody made meanwhile.
        file.hardlink_to(temporary)
    except FileExistsError:
        raise _exists(file) from None
    except OSError:
        # Not every file system has links: those of USB sticks and of some network shares have none.
        refuse_existing(file)
        temporary.rename(file)
    directory = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextmanager
def _cannot_be_written(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OpsladderError(
            f"The backup {file} cannot be written: {error.strerror or error}. Nothing of it is kept.",
            remedy="Check its directory and the free space there, or give another place.",
        ) from error


class Reader:
    """One pass over a backup. ``seal`` fits what was read so far."""

    def __init__(self, file: Path, lines: gzip.GzipFile) -> None:
        self._file = file
        self._lines = lines
        with _cannot_be_read(file):
            try:
                line = lines.readline(_LONGEST_HEADER)
            except gzip.BadGzipFile:
                raise _not_a_backup(file) from None
        self.header = _header(file, line)
        self.seal = Seal(self.header, line)

    def rows(self) -> Iterator[Row]:
        """Every row. What does not fit the seal is an error, at the latest after the last row."""
        widths = {table: len(names) for table, names in self.header.columns.items()}
        with _cannot_be_read(self._file):
            for line in self._lines:
                match json.loads(line):
                    case [str(table), list(values)] if len(values) == widths.get(table):
                        self.seal.add(table, line)
                        yield Row(table, values)
                    case dict(end) if end == self.seal.document():
                        if self._lines.read(1):
                            raise damaged(self._file, "something follows its end")
                        return
                    case dict():
                        raise damaged(self._file, "its checksum is not that of its rows")
                    case _:
                        raise damaged(self._file, "a line is not a row of its tables")
            raise damaged(self._file, "its end is missing")


@contextmanager
def open_file(file: Path) -> Iterator[Reader]:
    with ExitStack() as closing:
        with _cannot_be_read(file):
            lines = closing.enter_context(gzip.open(file))
        yield Reader(file, lines)


def check_file(file: Path, tell: Tell) -> tuple[Header, Seal]:
    """Read the whole file. An error unless every byte of it is as it was written."""
    with open_file(file) as reader:
        for number, _ in enumerate(reader.rows(), start=1):
            if number % TELL_EVERY == 0:
                tell("checked", number)
        return reader.header, reader.seal


def _header(file: Path, line: bytes) -> Header:
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        raise _not_a_backup(file) from None
    match read:
        case {
            "schema": str(schema),
            "revision": str(revision),
            "opsladder": str(version),
            "written_at": str(written_at),
            "columns": dict(columns),
        } if schema == SCHEMA and all(isinstance(names, list) for names in columns.values()):
            return Header(revision=revision, version=version, written_at=written_at, columns=columns)
        case {"schema": str(schema), **others} if schema.startswith(_SCHEMAS) and schema != SCHEMA:
            raise OpsladderError(
                f"{file} is a backup of another kind ({schema}), made by opsladder {others.get('opsladder')}.",
                remedy="Restore it with that version.",
            )
    raise _not_a_backup(file)


@contextmanager
def _cannot_be_read(file: Path) -> Iterator[None]:
    try:
        yield
    except EOFError:
        raise damaged(file, "its end is missing") from None
    except (zlib.error, gzip.BadGzipFile):
        raise damaged(file, "it cannot be unpacked") from None
    except (ValueError, RecursionError):
        raise damaged(file, "a line is not JSON") from None
    except OSError as error:
        raise OpsladderError(f"The backup {file} cannot be read: {error.strerror or error}.") from error


def damaged(file: Path, why: str) -> OpsladderError:
    return OpsladderError(f"The backup {file} is damaged: {why}.", remedy=_DAMAGED)


def _not_a_backup(file: Path) -> OpsladderError:
    return OpsladderError(f"{file} is not a backup of opsladder.", remedy="`opsladder backup FILE` writes one.")
