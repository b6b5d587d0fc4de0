"""Archives as files: how they are named, written, proven and read. Does I/O. Used by climb.archive and the cli.

One file per cycle: lines of JSON, compressed with gzip. A header; ``{"table": …, "row": {…}}`` for each row; and a seal
that says how many rows there are and what the checksum of everything before it is. A file gets its name only once it is
on disk and was read back.
"""

import datetime as dt
import gzip
import json
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, cast

from supervisor import __version__
from supervisor.errors import OpsladderError
from supervisor.model.cycle import Cycle
from supervisor.store import ArchivedRow

SCHEMA = "opsladder.archive/1"
_CHUNK = 1 << 20


class Damaged(Exception):
    """A file that is not as it was written."""


def archives(state_dir: Path) -> Path:
    return state_dir / "archive"


def archive_path(state_dir: Path, cycle: Cycle) -> Path:
    """Where the messages of a cycle are, or would be."""
    return archives(state_dir) / f"{cycle.started_at.astimezone(dt.UTC):%Y-%m}" / f"cycle-{cycle.id}.jsonl.gz"


def write_archive(path: Path, cycle: Cycle, rows: Iterable[ArchivedRow], *, now: dt.datetime) -> None:
    """Write a cycle's archive, in the place of an older one, and prove it."""
    header = {"schema": SCHEMA, **_identity(cycle), "opsladder": __version__, "written_at": now.isoformat()}

    def fill(packed: IO[bytes]) -> str:
        digest = sha256()
        # The header is no row.
        count = -1
        for line in _lines(header, rows):
            packed.write(line)
            digest.update(line)
            count += 1
        packed.write(_line({"rows": count, "sha256": digest.hexdigest()}))
        return digest.hexdigest()

    _write(path, fill, prove=_sealed_checksum)


def archived_rows(path: Path, cycle: Cycle) -> Iterator[ArchivedRow]:
    """The rows of an archive; ``Damaged`` before the first of them when it is not whole, or not this cycle's."""
    _sealed_checksum(path)
    with _readable(), gzip.open(path) as file:
        if not _identity(cycle).items() <= json.loads(file.readline()).items():
            # Numbers begin anew with a new database.
            raise Damaged("it is of a cycle with the same number in another database")
        for line in file:
            match json.loads(line):
                case {"table": str(table), "row": {"id": int(record)} as values}:
                    yield ArchivedRow(table, record, values)


def _identity(cycle: Cycle) -> dict[str, object]:
    return {"cycle": cycle.id, "schedule": cycle.schedule, "started_at": cycle.started_at.isoformat()}


def pack(source: Path, path: Path) -> None:
    """Compress a file into a new one, and prove that it can be had back."""

    def fill(packed: IO[bytes]) -> str:
        with source.open("rb") as file:
            return _copied(file, packed.write)

    _write(path, fill, prove=packed_checksum)


def packed_checksum(path: Path) -> str:
    """The checksum of what a compressed file holds."""
    with _readable(), gzip.open(path) as file:
        return _copied(file, lambda _: None)


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return _copied(file, lambda _: None)


def _copied(file: IO[bytes] | gzip.GzipFile, write: Callable[[bytes], object]) -> str:
    digest = sha256()
    while chunk := file.read(_CHUNK):
        write(chunk)
        digest.update(chunk)
    return digest.hexdigest()


def _lines(header: Mapping[str, object], rows: Iterable[ArchivedRow]) -> Iterator[bytes]:
    yield _line(header)
    for row in rows:
        yield _line({"table": row.table, "row": row.values})


def _line(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _sealed_checksum(path: Path) -> str:
    """The checksum of an archive that fits its seal."""
    digest, rows, last = sha256(), -1, b""
    with _readable(), gzip.open(path) as file:
        for line in file:
            if last:
                digest.update(last)
                rows += 1
            last = line
        if json.loads(last) != {"rows": rows, "sha256": digest.hexdigest()}:
            raise Damaged("it does not fit its seal")
    return digest.hexdigest()


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        raise Damaged(str(error)) from error


def _write(path: Path, fill: Callable[[IO[bytes]], str], *, prove: Callable[[Path], str]) -> None:
    """Write a compressed file whole or not at all. ``fill`` and ``prove`` have to come to the same checksum."""
    temporary: Path | None = None
    try:
        for directory in (path.parent.parent, path.parent):
            directory.mkdir(mode=0o700, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as raw:
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
                written = fill(cast(IO[bytes], packed))
            raw.flush()
            os.fsync(raw.fileno())
        if prove(temporary) != written:
            raise Damaged("what was read back is not what was written")
        temporary.replace(path)
        _sync_directory(path.parent)
    except OSError as error:
        raise OpsladderError(
            f"The archive {path} cannot be written: {error.strerror or error}. Nothing was removed.",
            remedy="Make room, or correct the owner of state.dir.",
        ) from error
    except Damaged as error:
        raise OpsladderError(
            f"The archive {path} cannot be read back: {error}. Nothing was removed.", remedy="Check the disk."
        ) from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
