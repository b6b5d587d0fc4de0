"""A schedule as the scheduler watches it, and the firings it offers. No I/O but the time zone database.

Used by service.scheduler and service.books; ``Firing`` also by service.daemon.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from supervisor.decide.firing import UnderWay, fire_key
from supervisor.service.triggers import ScheduleTimes, policy_of
from supervisor.settings import Schedule

_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A cycle that should start now. ``made_up``: instead of firings that were missed, of which this is the newest."""

    schedule: str
    due: datetime
    made_up: bool = False

    @property
    def fire_key(self) -> str:
        return fire_key(self.due)


class Watched:
    """A schedule, how far it has been dealt with, and what is under way of it.

    ``known`` is how far the store says, as far as we know, and ``until`` how far we have decided. ``at`` is when the
    next firing starts, ``again_at`` when one that was put off is offered again.
    """

    def __init__(self, schedule: Schedule, place: str) -> None:
        self.schedule = schedule
        self.times = ScheduleTimes(schedule, place)
        self.policy = policy_of(schedule)
        self.known: datetime | None = None
        self.until: datetime | None = None
        self.at: datetime | None = None
        self.again_at: datetime | None = None
        self.offered: Firing | None = None
        self.running: Firing | None = None
        self.queued: Firing | None = None

    @property
    def name(self) -> str:
        return self.schedule.name

    @property
    def under_way(self) -> UnderWay:
        return UnderWay(running=self.running is not None, waiting=(self.offered or self.queued) is not None)

    @property
    def dealt_until(self) -> datetime | None:
        """What the store should say: a firing that has not started yet is still to be dealt with."""
        waiting = self.offered or self.queued
        if waiting is None or self.known is None:
            return self.until
        return max(self.known, waiting.due - _SECOND)

    def take_over(self, before: "Watched") -> None:
        """Go on where the schedule of this name was before a reload. Due times of another rhythm begin anew."""
        self.offered, self.again_at = before.offered, before.again_at
        self.running, self.queued = before.running, before.queued
        if _rhythm(self.schedule) == _rhythm(before.schedule):
            self.until = before.until


def _rhythm(schedule: Schedule) -> tuple[object, ...]:
    """What its due times depend on."""
    return schedule.cron, schedule.every, schedule.timezone
