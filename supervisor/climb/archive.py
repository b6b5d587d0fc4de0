"""Move the messages of a cycle from the store into its archive. Reads and writes files and the store. For climb.retire.

Rows go only once an archive that holds them was written and read back. Cut off at any point, the next time finds the
archive and what is left in the store, and makes one archive of both: nothing is in neither.
"""

import datetime as dt
import itertools
import json
import logging
from collections.abc import Iterator
from pathlib import Path

from supervisor.claude.transcript import transcripts
from supervisor.climb.archive_file import (
    Damaged,
    archive_path,
    archived_rows,
    checksum,
    pack,
    packed_checksum,
    write_archive,
)
from supervisor.climb.gently import gently
from supervisor.model.cycle import Cycle
from supervisor.settings import Settings
from supervisor.store import ArchivedRow, Store

logger = logging.getLogger(__name__)


def archive_cycle(settings: Settings, store: Store, cycle: Cycle, *, now: dt.datetime) -> int:
    """Archive a cycle that is over, with the CLI's transcripts of it. Returns the bytes of what was written."""
    gently(store.measure_cycle, cycle.id)
    path = archive_path(settings.state.dir, cycle)
    written = _archive_transcripts(settings, store, cycle, path)
    live = _Live(store, cycle.id)
    write_archive(path, cycle, _with_what_was_archived(path, cycle, live), now=now)
    while not gently(store.delete_messages, cycle.id, up_to=live.up_to, now=now):
        pass
    return written + path.stat().st_size


class _Live:
    """The rows in the store, remembered as they are given out."""

    def __init__(self, store: Store, cycle_id: int) -> None:
        self._store = store
        self._cycle_id = cycle_id
        self._seen: set[tuple[str, int, int]] = set()
        self.up_to: dict[str, int] = {}

    def __iter__(self) -> Iterator[ArchivedRow]:
        for row in self._store.rows_of_cycle(self._cycle_id):
            self._seen.add(_key(row))
            self.up_to[row.table] = row.id
            yield row

    def __contains__(self, row: ArchivedRow) -> bool:
        return _key(row) in self._seen


def _key(row: ArchivedRow) -> tuple[str, int, int]:
    """What tells a row from others. Records change and keep their number; messages do not change, but SQLite gives the
    numbers of those that are gone to new ones."""
    return row.table, row.id, hash(json.dumps(row.values, sort_keys=True)) if row.is_message else 0


def _with_what_was_archived(path: Path, cycle: Cycle, live: _Live) -> Iterator[ArchivedRow]:
    """The rows in the store, then those that are only in an archive that is there already."""
    yield from live
    if not path.exists():
        return
    try:
        for row in archived_rows(path, cycle):
            if row not in live:
                yield row
    except Damaged as damage:
        # What it holds and the store does not may still be got out of it by hand.
        names = (path.with_name(f"{path.name}.aside-{number}") for number in itertools.count(1))
        aside = next(name for name in names if not name.exists())
        path.rename(aside)
        logger.warning("An archive was put aside", extra={"path": str(aside), "why": str(damage)})


def _archive_transcripts(settings: Settings, store: Store, cycle: Cycle, path: Path) -> int:
    """Archive what the CLI itself kept of the cycle's sessions, then remove it. Returns the bytes written."""
    written = 0
    for session_id in store.transcripts_to_archive(cycle.id):
        for source in transcripts(settings.agent_env, session_id):
            try:
                written += _archive_transcript(source, path.with_name(f"cycle-{cycle.id}-{session_id}"))
            except OSError as error:
                # Not ours: the CLI removes it by itself one day.
                logger.warning("A transcript cannot be archived", extra={"path": str(source), "why": error.strerror})
    return written


def _archive_transcript(source: Path, stem: Path) -> int:
    before = source.stat()
    expected = checksum(source)
    for number in itertools.count(1):
        target = stem.with_name(f"{stem.name}{'' if number == 1 else f'-{number}'}.transcript.gz")
        if not target.exists():
            pack(source, target)
            break
        # Written by a sweep that was cut off before it removed the original; or there were two of this name.
        if _holds(target, expected):
            break
    after = source.stat()
    if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
        source.unlink()
    return target.stat().st_size


def _holds(target: Path, expected: str) -> bool:
    try:
        return packed_checksum(target) == expected
    except Damaged:
        return False
