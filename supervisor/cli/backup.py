"""`opsladder backup` and `restore`: the records as a file, and back. Called from ``app``."""

import datetime as dt
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.cli import words
from supervisor.settings import settings_from_process

if TYPE_CHECKING:
    from supervisor.store.backup import BackupSummary
    from supervisor.store.backup_file import Tell


def back_up(config: Path | None, file: Path, *, as_json: bool) -> None:
    """Write all records into a new file, and say what is in it."""
    from supervisor.store.backup import write_backup

    url = settings_from_process(config).database_url()
    with _progress() as tell:
        done = write_backup(url, file, now=dt.datetime.now(dt.UTC), tell=tell)
    if as_json:
        _print_document("backup", done)
    else:
        print(f"The {done.database} is backed up.")
        _print_summary(done)


def restore(config: Path | None, file: Path, *, as_json: bool) -> None:
    """Put the records of a backup into the configured database, and say what there is now."""
    from supervisor.store.restore import restore_backup

    url = settings_from_process(config).database_url()
    with _progress() as tell:
        done = restore_backup(url, file, tell=tell)
    if as_json:
        _print_document("restore", done)
    else:
        print(f"The {done.database} is restored as it was on {done.written_at}.")
        _print_summary(done)


@contextmanager
def _progress() -> Iterator["Tell"]:
    """Show a person how far it is. Not part of the output, so never on stdout."""
    if not sys.stderr.isatty():
        yield lambda _what, _rows: None
        return
    from rich.console import Console

    with Console(stderr=True).status("Starting…") as status:
        yield lambda what, rows: status.update(f"{rows:,} rows {what}…")


def _print_document(action: str, done: "BackupSummary") -> None:
    document = {
        "schema": "opsladder.backup-summary/1",
        "action": action,
        "file": str(done.file.absolute()),
        "bytes": done.size,
        "sha256": done.checksum,
        "revision": done.revision,
        "opsladder": done.version,
        "written_at": done.written_at,
        "database": done.database,
        "rows": done.rows,
        "total_rows": sum(done.rows.values()),
        "verified": True,
    }
    print(json.dumps(document))


def _print_summary(done: "BackupSummary") -> None:
    from rich.filesize import decimal

    total = words.several(sum(done.rows.values()), "row")
    print(f"{done.file}: {decimal(done.size)}, {total} of schema {done.revision}, verified")
    widest = max(map(len, done.rows))
    for table, rows in done.rows.items():
        print(f"  {table:{widest}} {rows:>9,}")
