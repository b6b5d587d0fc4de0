"""When a schedule is due: cron lines and intervals in a time zone. Reads the time zone database.

Called from service.scheduler and cli. APScheduler is only asked for the next time on a clock that is never put forward
or back; what a time zone makes of it is decided here, because APScheduler 3.11.3, measured on lines in such zones,

- fires a fixed time that exists twice twice (``30 2 * * *`` in Berlin in October);
- fires a time that does not exist after the gap by as much as it lies in it, at 03:30 (the same line in March), or not
  at all where the gap is at midnight (``0 0 * * *`` in Santiago in September).

Here a fixed time fires once: at the first of two, and at the end of the gap that swallowed it. A line for every hour
(``*/15 * * * *``) goes by the time that passes instead, as in other crons: it fires in both of two equal hours, and
what the gap swallowed is not made up for, since the next one is no further away than ever.
"""

import hashlib
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger  # type: ignore[import-untyped]
from apscheduler.triggers.interval import IntervalTrigger  # type: ignore[import-untyped]

from supervisor.decide.blackout import read_blackout
from supervisor.decide.firing import FiringPolicy, Misfire, Overlap, newest
from supervisor.settings import Schedule, Settings

# Fixed, so that an interval goes on where it was after a restart, and is the same for two supervisors.
_ANCHOR: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_DAY: Final = timedelta(days=1)

Next = Callable[[datetime], datetime | None]


class ScheduleTimes:
    """The due times of one schedule in UTC, to the second, and when each of them starts."""

    def __init__(self, schedule: Schedule, place: str) -> None:
        # One decision asks the same several times.
        self._next = lru_cache(maxsize=4)(_next_of(schedule))
        self._jitter = timedelta(seconds=schedule.jitter_seconds)
        self._seed = f"{place}\n{schedule.name}\n"

    def next_after(self, moment: datetime) -> datetime | None:
        """The first due time after a moment; ``None`` when there is none, as for a schedule that is started by hand."""
        return self._next(moment.astimezone(UTC))

    def starts_at(self, due: datetime) -> datetime:
        """The due time with its jitter: the same for everyone who asks, and before the next due time."""
        if not self._jitter:
            return due
        following = self.next_after(due)
        room = self._jitter if following is None else min(self._jitter, following - due - _SECOND)
        drawn = hashlib.blake2b(f"{self._seed}{due.timestamp():.0f}".encode(), digest_size=8).digest()
        return due + _SECOND * (int.from_bytes(drawn) % (room // _SECOND + 1))

    def next_start(self, now: datetime) -> datetime | None:
        """When the next firing starts; its due time may have passed already."""
        due = newest(self, after=now - self._jitter, by=now) or now - self._jitter
        following = self.next_after(due)
        return None if following is None else self.starts_at(following)


def policy_of(schedule: Schedule) -> FiringPolicy:
    """What an operator wants of the firings of a schedule."""
    zone = ZoneInfo(schedule.timezone)
    windows = [read_blackout(text) for text in schedule.blackout]

    def blacked_out(moment: datetime) -> bool:
        return any(window.covers(moment.astimezone(zone)) for window in windows)

    return FiringPolicy(
        misfire=Misfire(schedule.misfire),
        grace=timedelta(seconds=schedule.misfire_grace_seconds),
        overlap=Overlap(schedule.overlap),
        blacked_out=blacked_out,
    )


def place_of(settings: Settings) -> str:
    """What jitter differs by: the records that supervisors share. The same file on another host is another one."""
    url = settings.database_url().rpartition("@")[2]
    return f"{socket.gethostname()} {url}" if url.startswith("sqlite") else url


def _next_of(schedule: Schedule) -> Next:
    if schedule.cron is not None:
        return _CronTimes(schedule.cron, schedule.timezone).next_after
    if schedule.every is not None:
        return _interval(schedule.every)
    return lambda _: None


def _interval(every: timedelta) -> Next:
    trigger = IntervalTrigger(seconds=int(every.total_seconds()), start_date=_ANCHOR, timezone=UTC)

    def next_after(moment: datetime) -> datetime | None:
        found: datetime | None = trigger.get_next_fire_time(None, _following_second(moment))
        return found

    return next_after


class _CronTimes:
    """A cron line in a time zone."""

    def __init__(self, line: str, zone: str) -> None:
        # In UTC, which has neither gaps nor repetitions: it counts the times on the wall.
        self._trigger = CronTrigger.from_crontab(line, timezone=UTC)
        self._zone = ZoneInfo(zone)
        self._every_hour = line.split()[1] in ("*", "*/1")

    def next_after(self, moment: datetime) -> datetime | None:
        since, wall = moment, self._wall(moment)
        due = self._next_on_wall(_following_second(wall))
        while due is not None:
            # As long as the clock is neither put forward nor back.
            at = since + (due - wall)
            change = self._change(since, at)
            if change is None:
                if self._every_hour or not at.astimezone(self._zone).fold:
                    return at
                due = self._next_on_wall(due + _SECOND)
                continue
            since, wall = change, self._wall(change)
            if due <= wall and not self._every_hour:
                return change
            due = self._next_on_wall(wall)
        return None

    def _wall(self, moment: datetime) -> datetime:
        """The time on the wall, as if it were UTC."""
        return moment.astimezone(self._zone).replace(tzinfo=UTC, fold=0)

    def _next_on_wall(self, wall: datetime) -> datetime | None:
        """The first time on the wall that the line names, from this one on."""
        found: datetime | None = self._trigger.get_next_fire_time(None, wall)
        return found

    def _change(self, since: datetime, until: datetime) -> datetime | None:
        """The first moment after ``since``, and not after ``until``, from which the clock is another."""
        before = since.astimezone(self._zone).utcoffset()
        low = since
        while low < until:
            high = min(low + _DAY, until)
            if high.astimezone(self._zone).utcoffset() != before:
                return self._exact_change(low, high, before)
            low = high
        return None

    def _exact_change(self, low: datetime, high: datetime, before: timedelta | None) -> datetime:
        while high - low > _SECOND:
            middle = low + (high - low) // 2
            if middle.astimezone(self._zone).utcoffset() == before:
                low = middle
            else:
                high = middle
        # Clocks are changed at whole seconds.
        return high.replace(microsecond=0)


def _following_second(moment: datetime) -> datetime:
    return moment.replace(microsecond=0) + _SECOND
