"""Tidy up: expire, archive, prune, remove leftovers. Reads and writes the store and files. Called from the cli.

Every step can be cut off at any point; the next sweep goes on from what it finds. Nothing that runs is waited for, and
no transaction is long, so that a running cycle is not held up.
"""

import datetime as dt
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from supervisor.climb.gently import gently
from supervisor.climb.leftovers import remove_leftovers
from supervisor.climb.retire import (
    archive_messages,
    measure_cycles,
    prune_archives,
    prune_deliveries,
    prune_records,
)
from supervisor.errors import OpsladderError
from supervisor.settings import Settings
from supervisor.store import Store

_LOCK_FILE = "sweep.lock"
_EXPIRED_AT_ONCE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSummary:
    """What a sweep did. ``archived_bytes`` is the size of what it wrote to archives.

    ``under_way`` when it did nothing, because another sweep is at it.
    """

    under_way: bool = False
    expired: int = 0
    expired_approvals: int = 0
    archived_cycles: int = 0
    archived_bytes: int = 0
    pruned_cycles: int = 0
    pruned_deliveries: int = 0
    removed_archives: int = 0
    removed_files: int = 0

    def plus(self, more: "SweepSummary") -> "SweepSummary":
        """This and what was done after it."""
        counts = (field.name for field in fields(self) if field.name != "under_way")
        return SweepSummary(**{name: getattr(self, name) + getattr(more, name) for name in counts})


Tell = Callable[[SweepSummary], None]


def sweep(
    settings: Settings,
    store: Store,
    *,
    now: dt.datetime,
    tell: Tell = lambda _: None,
    has_to_end: Callable[[], bool] = lambda: False,
) -> SweepSummary:
    """Sweep once. ``tell`` is given what was done so far, again and again, and ``has_to_end`` is asked as often."""
    with _only_one(settings.state.dir) as is_ours:
        if not is_ours:
            return SweepSummary(under_way=True)
        done = SweepSummary()
        # What makes room goes first: archives need some.
        for step in (_expire, _remove_leftovers, _prune_archives, _archive, _prune):
            try:
                for more in step(settings, store, now):
                    done = done.plus(more)
                    tell(done)
                    if has_to_end():
                        return done
            except OSError as error:
                ours = "Correct the owner of state.dir and of all below it."
                raise OpsladderError(
                    f"The sweep cannot go on: {error.filename or settings.state.dir}: {error.strerror or error}.",
                    remedy=ours if isinstance(error, PermissionError) else "See to the disk of state.dir.",
                ) from error
        return done


def _expire(settings: Settings, store: Store, now: dt.datetime) -> Iterator[SweepSummary]:
    # First the questions: who waits for an answer that can no longer come is idle.
    yield SweepSummary(expired_approvals=len(gently(store.expire_approvals, now)))
    silent_since = now - dt.timedelta(minutes=settings.continuity.idle_timeout_minutes)
    idle = store.idle_sessions(silent_since=silent_since)
    for start in range(0, len(idle), _EXPIRED_AT_ONCE):
        some = idle[start : start + _EXPIRED_AT_ONCE]
        yield SweepSummary(expired=gently(store.expire_idle, some, silent_since=silent_since, now=now))


def _remove_leftovers(settings: Settings, store: Store, now: dt.datetime) -> Iterator[SweepSummary]:
    for _ in remove_leftovers(settings.state.dir, store, now=now):
        yield SweepSummary(removed_files=1)


def _prune_archives(settings: Settings, _: Store, now: dt.datetime) -> Iterator[SweepSummary]:
    for _path in prune_archives(settings, now=now):
        yield SweepSummary(removed_archives=1)


def _archive(settings: Settings, store: Store, now: dt.datetime) -> Iterator[SweepSummary]:
    for _ in measure_cycles(settings, store):
        yield SweepSummary()
    for written in archive_messages(settings, store, now=now):
        yield SweepSummary(archived_cycles=1, archived_bytes=written)


def _prune(settings: Settings, store: Store, now: dt.datetime) -> Iterator[SweepSummary]:
    for written in prune_records(settings, store, now=now):
        yield SweepSummary(pruned_cycles=1, archived_cycles=1 if written else 0, archived_bytes=written)
    for pruned in prune_deliveries(settings, store, now=now):
        yield SweepSummary(pruned_deliveries=pruned)


@contextmanager
def _only_one(state_dir: Path) -> Iterator[bool]:
    """Whether this is the one sweep of the state directory. The system gives the lock back when a process ends."""
    path = state_dir / _LOCK_FILE
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise OpsladderError(
            f"No sweep is possible: {path} cannot be opened: {error.strerror}.",
            remedy="Correct the owner of state.dir, or make room.",
        ) from error
    try:
        yield _locked(descriptor)
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
