"""Decide what becomes of the due times of a schedule. Pure. Called from service.scheduler, with ``newest`` for others.

What holds, whatever the clock and the processes do:

- Every due time is dealt with once: it fires, or it is skipped with a reason. Those up to ``dealt_until`` are past.
- A firing is named by its schedule and its due time (``fire_key``), and claimed in the store by that name. Who decides
  the same again, after a crash or beside another supervisor, finds it claimed.
- A firing that waits to start stands for the due times that come while it waits: it will look at things later than
  they would have. Only what is running can be overlapped.
- The work is bounded: of more than ``MOST`` missed due times the first are counted and the newest is found by
  bisection.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Final, Protocol

MOST: Final = 1000
# A clock is put right by seconds. What is dealt with for longer ahead was written by a clock that was wrong.
_BELIEVED_AHEAD: Final = timedelta(hours=1)
_SECOND: Final = timedelta(seconds=1)


class Overlap(StrEnum):
    """What becomes of a firing while a cycle of its schedule is running."""

    SKIP = "skip"
    QUEUE = "queue"


class Misfire(StrEnum):
    """What becomes of firings that nobody was there for."""

    SKIP = "skip"
    ONCE = "once"


class SkipReason(StrEnum):
    """Why a firing does not run."""

    MISSED = "missed"
    BLACKOUT = "blackout"
    OVERLAP = "overlap"
    WAITING = "waiting"


class Times(Protocol):
    """When a schedule is due, in UTC. ``starts_at`` is the due time with its jitter, before the next due time."""

    def next_after(self, moment: datetime) -> datetime | None: ...

    def starts_at(self, due: datetime) -> datetime: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringPolicy:
    """What an operator wants. A firing that is later than ``grace`` counts as missed."""

    misfire: Misfire
    grace: timedelta
    overlap: Overlap
    blacked_out: Callable[[datetime], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """What there is of a schedule: a cycle that runs, a firing that waits to start."""

    running: bool = False
    waiting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fire:
    """Start a cycle. ``made_up``: instead of firings that were missed, of which this is the newest."""

    due: datetime
    made_up: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Start a cycle as soon as the one that runs has ended."""

    due: datetime
    made_up: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Start nothing. With ``MISSED``, ``due`` is the newest of ``count`` firings."""

    due: datetime
    reason: SkipReason
    count: int = 1


Decision = Fire | Queue | Skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Dealt:
    """What is to be done, oldest first; how many firings were missed; and up to which due time that is all."""

    decisions: tuple[Decision, ...]
    missed: int
    until: datetime


def fire_key(due: datetime) -> str:
    """The name of a firing within its schedule."""
    return f"{due.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def believed(dealt_until: datetime, now: datetime) -> datetime:
    """Up to when things have been dealt with, for someone who says that it is ``now``.

    A clock that was put back a little is waited for. One that had been far ahead would keep a schedule silent until it
    comes there again; then it is better to go on from now, and to leave what has run to its claim.
    """
    return dealt_until if dealt_until - now <= _BELIEVED_AHEAD else now


def deal(times: Times, policy: FiringPolicy, under_way: UnderWay, *, dealt_until: datetime, now: datetime) -> Dealt:
    """What becomes of the due times after ``dealt_until`` whose start has come."""
    missed_by = now - policy.grace - datetime.resolution
    until, missed = dealt_until, 0
    newest_missed: datetime | None = None
    for due in islice(_started(times, after=until, by=missed_by), MOST):
        until = newest_missed = due
        missed += not policy.blacked_out(due)
    if newest_missed is not None:
        until = newest_missed = newest(times, after=until, by=missed_by) or until
    on_time = list(islice(_started(times, after=until, by=now), MOST))

    decisions: list[Decision] = []
    if newest_missed is not None and missed and policy.misfire is Misfire.SKIP:
        decisions.append(Skip(due=newest_missed, reason=SkipReason.MISSED, count=missed))
    for due in on_time:
        decision = _decide(due, policy, under_way, now=now, made_up=False)
        decisions.append(decision)
        if isinstance(decision, Fire | Queue):
            under_way = UnderWay(running=under_way.running, waiting=True)
    # What is on time looks at the same things, so it makes up for what was missed.
    if newest_missed is not None and missed and policy.misfire is Misfire.ONCE and not on_time:
        decisions.append(_decide(newest_missed, policy, under_way, now=now, made_up=True))
    return Dealt(decisions=tuple(decisions), missed=missed, until=on_time[-1] if on_time else until)


def newest(times: Times, *, after: datetime, by: datetime) -> datetime | None:
    """The newest due time after ``after`` whose start is not after ``by``, however many there are."""
    first = _if_started(times, after, by)
    if first is None:
        return None
    found = first
    # In seconds from the first: after ``low`` something has started, after ``high`` nothing any more.
    low, high = -1, int((by - first) / _SECOND) + 1
    while high - low > 1:
        middle = (low + high) // 2
        later = _if_started(times, first + middle * _SECOND, by)
        if later is None:
            high = middle
        else:
            found = later
            low = int((later - first) / _SECOND) - 1
    return found


def _decide(due: datetime, policy: FiringPolicy, under_way: UnderWay, *, now: datetime, made_up: bool) -> Decision:
    if under_way.waiting:
        return Skip(due=due, reason=SkipReason.WAITING)
    # A made-up firing was not due in a window, but must not start in one either.
    if policy.blacked_out(now) or (policy.blacked_out(due) and not made_up):
        return Skip(due=due, reason=SkipReason.BLACKOUT)
    if not under_way.running:
        return Fire(due=due, made_up=made_up)
    if policy.overlap is Overlap.QUEUE:
        return Queue(due=due, made_up=made_up)
    return Skip(due=due, reason=SkipReason.OVERLAP)


def _started(times: Times, *, after: datetime, by: datetime) -> Iterator[datetime]:
    due = _if_started(times, after, by)
    while due is not None:
        yield due
        due = _if_started(times, due, by)


def _if_started(times: Times, after: datetime, by: datetime) -> datetime | None:
    due = times.next_after(after)
    return due if due is not None and times.starts_at(due) <= by else None
