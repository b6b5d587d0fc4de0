"""Remove files in the state directory that a run or a write left behind. Reads the store. Called from climb.sweep."""

import datetime as dt
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from supervisor.climb.archive_file import archives
from supervisor.climb.files import handoff_dir, stream_path
from supervisor.errors import NotFound
from supervisor.model.cycle import CycleStatus
from supervisor.model.session import UNFINISHED
from supervisor.store import Store

logger = logging.getLogger(__name__)

_ABANDONED_AFTER = dt.timedelta(days=1)
_STREAM_OF = re.compile(r"([0-9]{1,18})\.jsonl")
_HANDOFF_OF = re.compile(r"\.?cycle-([0-9]{1,18})-")
# As ``tempfile`` makes them for ``durable`` and others: a dot, the name that is meant, eight characters.
_TEMPORARY = re.compile(r"\..+[.-][a-z0-9_]{8}")


def remove_leftovers(state_dir: Path, store: Store, *, now: dt.datetime) -> Iterator[Path]:
    """Remove streams and handoffs of records that are over, and abandoned temporary files, giving back each."""
    streams = stream_path(state_dir, 0).parent
    for path in _files(streams):
        of = _STREAM_OF.fullmatch(path.name)
        if of is not None and _is_done(path, _session_is_over(store, int(of[1])), now):
            yield from _removed(path)
    for path in _files(handoff_dir(state_dir)):
        of = _HANDOFF_OF.match(path.name)
        if of is not None and _is_done(path, _cycle_is_over(store, int(of[1])), now):
            yield from _removed(path)
    months = sorted(archives(state_dir).glob("*/"))
    for directory in (state_dir, streams, handoff_dir(state_dir), *months):
        for path in _files(directory):
            if _TEMPORARY.fullmatch(path.name) and _is_old(path, now):
                yield from _removed(path)


def _session_is_over(store: Store, record: int) -> Callable[[], bool]:
    def is_over() -> bool:
        session = store.session(record)
        # Its cycle too: what goes on from it may still want to read the stream.
        return session.status not in UNFINISHED and _cycle_is_over(store, session.cycle_id)()

    return is_over


def _cycle_is_over(store: Store, cycle_id: int) -> Callable[[], bool]:
    return lambda: store.cycle(cycle_id).status not in (CycleStatus.RUNNING, CycleStatus.PAUSED)


def _is_done(path: Path, is_over: Callable[[], bool], now: dt.datetime) -> bool:
    """Whether the record is over; of a record that is not there, pruned perhaps, whether the file is old."""
    try:
        return is_over()
    except NotFound:
        return _is_old(path, now)


def _is_old(path: Path, now: dt.datetime) -> bool:
    try:
        return path.stat(follow_symlinks=False).st_mtime < (now - _ABANDONED_AFTER).timestamp()
    except FileNotFoundError:
        return False


def _files(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if path.is_file() and not path.is_symlink())


def _removed(path: Path) -> Iterator[Path]:
    try:
        path.unlink()
    except FileNotFoundError:
        return
    except OSError as error:
        logger.warning("A file cannot be removed", extra={"path": str(path), "why": error.strerror})
        return
    yield path
