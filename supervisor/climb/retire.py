"""Let go of what is past its retention: messages, records, what was told, archives. Writes the store and files.

By age, and by size where a limit is set: then the oldest cycles go first until the rest is below it. What a cycle holds
in the database is measured by ``store.retention``; an archive is as large as its file.
"""

import datetime as dt
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from supervisor.climb.archive import archive_cycle
from supervisor.climb.archive_file import archives
from supervisor.climb.gently import gently
from supervisor.errors import NotFound
from supervisor.model.cycle import Cycle
from supervisor.settings import Settings
from supervisor.store import Kind, Store

logger = logging.getLogger(__name__)

_MB = 1_000_000
# What was fired, spent and found today is asked for by number and by time: it stays, however much it is.
_STAYS = dt.timedelta(days=1)


def measure_cycles(settings: Settings, store: Store) -> Iterator[int]:
    """Count what cycles hold that are over, where there is a limit for it, each time giving back one that is done."""
    limits = settings.retention
    if limits.messages_mb is None and limits.records_mb is None:
        return
    for cycle in _paged(lambda after: store.unmeasured_cycles(after=after)):
        gently(store.measure_cycle, cycle.id)
        yield cycle.id


def archive_messages(settings: Settings, store: Store, *, now: dt.datetime) -> Iterator[int]:
    """Archive the messages of cycles, each time giving back the bytes of what was written."""
    limits = settings.retention
    for cycle in _past(
        lambda since, after: store.cycles_to_archive(over_since=since, after=after),
        now - dt.timedelta(days=limits.messages_days),
        now - _STAYS,
        lambda: _is_over(store.size(Kind.MESSAGES), limits.messages_mb),
    ):
        yield archive_cycle(settings, store, cycle, now=now)


def prune_records(settings: Settings, store: Store, *, now: dt.datetime) -> Iterator[int]:
    """Prune the records of cycles, archiving first what was not, each time giving back the bytes of the archive."""
    limits = settings.retention
    cooled_since = now - max(limit.window for limit in settings.cooldown_limits().values())
    for cycle in _past(
        lambda since, after: store.cycles_to_prune(over_since=since, cooled_since=cooled_since, after=after),
        now - dt.timedelta(days=limits.records_days),
        now - _STAYS,
        lambda: _is_over(store.size(Kind.RECORDS), limits.records_mb),
    ):
        # Archived long ago as a rule; but something may have been added since.
        is_archived = cycle.archived_at is not None and not store.has_messages(cycle.id)
        written = 0 if is_archived else archive_cycle(settings, store, cycle, now=now)
        try:
            while not gently(store.delete_records, cycle.id):
                pass
        except NotFound:
            # Something was attached to it at this very moment, on a server: it stays for now.
            logger.warning("A cycle was gone on from while it was pruned", extra={"cycle": cycle.id})
            continue
        yield written


def prune_deliveries(settings: Settings, store: Store, *, now: dt.datetime) -> Iterator[int]:
    """Remove what people were told, as long after that as records are kept, each time giving back how many."""
    # What was told is known for as long as it is not to be told again.
    repeat = dt.timedelta(minutes=settings.notify.repeat_minutes)
    over_since = now - max(repeat, dt.timedelta(days=settings.retention.records_days))
    while pruned := gently(store.prune_deliveries, over_since=over_since):
        yield pruned


def prune_archives(settings: Settings, *, now: dt.datetime) -> Iterator[Path]:
    """Remove archives by age and size, the oldest first, each time giving back one that is gone."""
    limits = settings.retention
    oldest = now - dt.timedelta(days=limits.archives_days)
    # An archive is written after the month in whose directory it is has begun, so later months need not be looked at.
    months = [month for month in _months(settings.state.dir) if month.name <= f"{oldest:%Y-%m}"]
    yield from _removed(path for path, at, _ in _files(months) if at < oldest.timestamp())
    if limits.archives_mb is not None:
        found = sorted(_files(_months(settings.state.dir)), key=lambda file: file[1])
        excess = sum(size for _, _, size in found) - limits.archives_mb * _MB
        doomed = []
        for path, at, size in found:
            if excess <= 0 or at > (now - _STAYS).timestamp():
                break
            doomed.append(path)
            excess -= size
        yield from _removed(iter(doomed))
    for month in _months(settings.state.dir):
        if month.name < f"{now:%Y-%m}" and not any(month.iterdir()):
            month.rmdir()


def _past(
    find: Callable[[dt.datetime, Cycle | None], list[Cycle]],
    old: dt.datetime,
    stays: dt.datetime,
    is_too_much: Callable[[], bool],
) -> Iterator[Cycle]:
    """The cycles past their age, then the oldest of the others as long as there is too much."""
    yield from _paged(lambda after: find(old, after))
    for cycle in _paged(lambda after: find(stays, after)):
        if not is_too_much():
            return
        yield cycle


def _paged(find: Callable[[Cycle | None], list[Cycle]]) -> Iterator[Cycle]:
    page = find(None)
    while page:
        yield from page
        page = find(page[-1])


def _is_over(size: int, limit_mb: float | None) -> bool:
    return limit_mb is not None and size > limit_mb * _MB


def _months(state_dir: Path) -> list[Path]:
    place = archives(state_dir)
    return sorted(entry for entry in place.iterdir() if entry.is_dir()) if place.is_dir() else []


def _files(months: list[Path]) -> Iterator[tuple[Path, float, int]]:
    """Every file in these directories with when it was written and its size."""
    for month in months:
        with os.scandir(month) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False) and not entry.name.startswith("."):
                    status = entry.stat(follow_symlinks=False)
                    yield Path(entry.path), status.st_mtime, status.st_size


def _removed(paths: Iterator[Path]) -> Iterator[Path]:
    for path in paths:
        path.unlink(missing_ok=True)
        yield path
