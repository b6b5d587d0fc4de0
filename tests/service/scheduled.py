"""A scheduler on a real store with a clock of the test's own. Does I/O."""

import asyncio
import datetime as dt
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from supervisor.model.cycle import Cycle, CycleStatus, Trigger
from supervisor.service.scheduler import Firing, Scheduler
from supervisor.settings import Settings, load_settings
from supervisor.store import Store
from tests.store.store_examples import OWNER

T = TypeVar("T")

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
MINUTE, HOUR, DAY = dt.timedelta(minutes=1), dt.timedelta(hours=1), dt.timedelta(days=1)


class Clock:
    """What time it is for a test."""

    def __init__(self, now: dt.datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> dt.datetime:
        return self.now


def schedules(directory: Path, *tables: str) -> Settings:
    """Settings with these tables as schedules; without any, one called web that is due every ten minutes."""
    file = directory / "opsladder.toml"
    each = tables or ('name = "web"\nevery = "10m"',)
    file.write_text("".join(f"[[schedules]]\n{table}\n" for table in each), encoding="utf-8")
    return load_settings(file, {"HOME": str(directory)}, cwd=directory)


class Service:
    """A scheduler, stepped by hand, and cycles that begin and end when the test says so."""

    def __init__(self, runner: asyncio.Runner, store: Store, settings: Settings, clock: Clock) -> None:
        self._runner = runner
        self.store = store
        self.clock = clock
        self.scheduler = self.run(_made(settings, store, clock))
        self.cycles: dict[Firing, Cycle] = {}

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def step(self, now: dt.datetime | None = None) -> float:
        self.clock.now = now or self.clock.now
        return self.run(self.scheduler.step())

    def offers(self, now: dt.datetime | None = None) -> list[Firing]:
        """What is offered by now."""
        self.step(now)
        queue = self.scheduler.firings
        return [queue.get_nowait() for _ in range(queue.qsize())]

    def begin(self, firing: Firing) -> None:
        """``Conflict`` when it was claimed, or when another cycle of its schedule runs."""
        self.cycles[firing] = self.store.begin_cycle(
            schedule=firing.schedule,
            trigger=Trigger.SCHEDULE,
            dry_run=False,
            owner=OWNER,
            now=self.clock.now,
            fire_key=firing.fire_key,
        )
        self.scheduler.started(firing)

    def finish(self, firing: Firing) -> None:
        cycle = self.cycles.pop(firing)
        self.store.finish_cycle(cycle.id, status=CycleStatus.HEALTHY, reason=None, detail=None, now=self.clock.now)
        self.scheduler.ended(firing)


async def _made(settings: Settings, store: Store, clock: Clock) -> Scheduler:
    return Scheduler(settings, store, clock=clock)
