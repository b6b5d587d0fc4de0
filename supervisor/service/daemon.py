"""The service: one event loop, one task group, everything wired together. Does I/O. Called from cli.

It turns firings into cycles, goes on with what waited once it may, sweeps, tells people, serves metrics, and tells
systemd the truth. Nothing here decides anything about a cycle.
"""

import asyncio
import contextlib
import fcntl
import functools
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

from supervisor.claude.tree import reap_orphans
from supervisor.climb.begin import still_waits
from supervisor.climb.ladder import CycleRequest, Ladder, utc_now
from supervisor.climb.outfit import find_runtime, prepare_state
from supervisor.climb.recovery import recover
from supervisor.climb.sweep import sweep
from supervisor.errors import ConfigError, OpsladderError, StoreError
from supervisor.model.cycle import Chain, CycleStatus, Trigger
from supervisor.notify import check_targets, deliver_due
from supervisor.service.account import Account
from supervisor.service.crew import Crew
from supervisor.service.descriptors import make_room
from supervisor.service.listener import listening
from supervisor.service.lost import left_behind
from supervisor.service.scheduler import Scheduler
from supervisor.service.systemd import Systemd
from supervisor.service.templates import Templates
from supervisor.settings import Settings
from supervisor.store import Store, open_store
from supervisor.web.app import Service, make_app

logger = logging.getLogger(__name__)

TEND_SECONDS = 5.0
SWEEP_SECONDS = 300.0
DELIVER_SECONDS = 5.0
_STATUS_SECONDS = 10.0
_LOCK_FILE = "run.lock"
# A scheduler that has not looked at the clock for this long is stuck, and no sign of life is given for it.
_STUCK_SECONDS = 120.0
# While it takes over what was left, and while it drains, the service asks for so much more time, again and again.
_EXTENSION_SECONDS = 30.0
# For the first recovery no longer than this. A thousand cycles take seconds; minutes it takes where CLIs do not want to
# end, streams are huge or the store is slow. What takes longer hangs, and the service manager has to make an end. Where
# it did not, nothing is lost: what is settled by then is on record, and the next start goes on with the rest.
_RECOVERY_SECONDS = 600.0
# No cycle takes longer to end once it is interrupted; of one that does, the service manager has to make an end.
_ENDING_SECONDS = 180.0
_PAUSED_LOOKED_AT = 1000
_LEAVING = "The service is about to end, and starts no more cycles."

Load = Callable[[], Settings]


class Daemon:
    """The service from its start to its end."""

    def __init__(self, settings: Settings, load: Load, systemd: Systemd) -> None:
        self._settings = settings
        self._load = load
        self._systemd = systemd
        self._templates = Templates()
        self._ending = asyncio.Event()
        self._hurrying = asyncio.Event()
        self._reloading = asyncio.Event()

    async def run(self) -> None:
        """Serve until a signal ends it."""
        prepare_state(self._settings)
        self._settings.check_rules()
        await self._templates.tried(self._settings)
        await asyncio.to_thread(check_targets, self._settings)
        make_room(self._settings.service.max_running)
        with _only_one(self._settings), open_store(self._settings.database_url()) as store, self._signals():
            scheduler = Scheduler(self._settings, store, clock=utc_now)
            async with self._serving(store, scheduler), asyncio.TaskGroup() as group:
                account = Account(scheduler, store, lambda: self._settings)
                crew = Crew(group, lambda: self._tried_outfit(store), account, limit=self._settings.service.max_running)
                # Before anything is fired: what the last service left is taken over.
                asking = group.create_task(self._ask_for_time(), name="time to recover")
                await _attempt(lambda: self._tend(store, crew))
                asking.cancel()
                loops = [
                    group.create_task(scheduler.run(), name="scheduler"),
                    group.create_task(self._fire(scheduler, account, crew), name="firings"),
                    group.create_task(_every(TEND_SECONDS, lambda: self._tend(store, crew)), name="waiting"),
                    group.create_task(_every(SWEEP_SECONDS, lambda: self._sweep(store)), name="sweep"),
                    group.create_task(_every(DELIVER_SECONDS, lambda: self._deliver(store)), name="messages"),
                    group.create_task(self._live(scheduler, crew), name="signs of life"),
                    group.create_task(self._reload(scheduler, crew), name="reload"),
                ]
                self._systemd.ready(self._status(scheduler, crew))
                logger.info("Serving", extra={"schedules": len(self._settings.schedules), "pid": os.getpid()})
                await self._ending.wait()
                crew.stop_starting()
                await self._drain(crew)
                for task in loops:
                    task.cancel()
            await _attempt(scheduler.close)
            # Nobody knows when there is another service, so nothing waits here for more to go with it.
            await _attempt(lambda: self._deliver(store, at_once=True))

    @contextlib.asynccontextmanager
    async def _serving(self, store: Store, scheduler: Scheduler) -> AsyncIterator[None]:
        told = Service(
            store=store,
            settings=lambda: self._settings,
            clock=utc_now,
            next_fires=scheduler.next_fires,
            scheduler_problem=lambda: _LEAVING if self._ending.is_set() else _trouble(scheduler),
        )
        async with listening(make_app(told), self._settings.web.host, self._settings.web.port):
            yield

    async def _outfit(self, store: Store) -> Ladder:
        """What one cycle needs, as things are now: the CLI may have been replaced, the settings reloaded."""
        settings = self._settings
        return Ladder(
            settings=settings,
            store=store,
            runtime=await find_runtime(settings),
            prompts=self._templates.current(settings.prompt_dirs),
        )

    async def _tried_outfit(self, store: Store) -> Ladder:
        """The same for a cycle that is to run tiers: a prompt may have been edited since the last one."""
        await self._templates.tried(self._settings)
        return await self._outfit(store)

    def _request(self, schedule: str, **more: object) -> CycleRequest:
        escalation = self._settings.escalation
        return CycleRequest(
            schedule=schedule,
            trigger=Trigger.SCHEDULE,
            dry_run=escalation.dry_run,
            max_tier=escalation.max_tier,
            **more,  # type: ignore[arg-type]
        )

    async def _fire(self, scheduler: Scheduler, account: Account, crew: Crew) -> None:
        while True:
            firing = await scheduler.firings.get()
            if account.open(firing):
                crew.start(self._request(firing.schedule, fire_key=firing.fire_key))

    async def _tend(self, store: Store, crew: Crew) -> None:
        """Take over what others left, and go on with what waited and may."""
        try:
            ladder = await self._outfit(store)
        except OpsladderError as error:
            logger.warning("What waits is not looked at", extra={"why": str(error)})
            return
        reap_orphans()
        await recover(ladder, left=await left_behind(store, lambda: crew.under_way))
        known = {schedule.name for schedule in self._settings.schedules}
        for chain in await asyncio.to_thread(store.chains, _PAUSED_LOOKED_AT, CycleStatus.PAUSED):
            if chain.cycle.schedule in known - crew.schedules:
                # One that cannot be looked at must not keep the others waiting.
                await _attempt(functools.partial(self._go_on, ladder, crew, chain))

    async def _go_on(self, ladder: Ladder, crew: Crew, chain: Chain) -> None:
        request = self._request(chain.cycle.schedule, paused_cycle=chain.cycle.id)
        if await asyncio.to_thread(still_waits, ladder, request, chain) is None:
            crew.start(request)

    async def _sweep(self, store: Store) -> None:
        # The process ends only when this thread does, and the first sweep of many records takes long.
        await asyncio.to_thread(sweep, self._settings, store, now=utc_now(), has_to_end=self._ending.is_set)

    async def _deliver(self, store: Store, *, at_once: bool = False) -> None:
        await asyncio.to_thread(deliver_due, store, self._settings, now=utc_now(), at_once=at_once)

    async def _ask_for_time(self) -> None:
        """Ask for more time to start, within reason. Not once it is to end: the time to stop would be extended."""
        deadline = time.monotonic() + _RECOVERY_SECONDS
        while True:
            self._systemd.status("Taking over what the last service left.")
            if time.monotonic() < deadline and not self._ending.is_set():
                self._systemd.extend(_EXTENSION_SECONDS)
            await asyncio.sleep(_EXTENSION_SECONDS / 3)

    async def _live(self, scheduler: Scheduler, crew: Crew) -> None:
        """Give signs of life, from the loop that does the work: when it is stuck, they stop."""
        watchdog = self._systemd.watchdog_seconds
        pause = min(_STATUS_SECONDS, watchdog / 3) if watchdog else _STATUS_SECONDS
        while True:
            self._systemd.status(self._status(scheduler, crew))
            if _trouble(scheduler) is None or scheduler.problem is not None:
                # Waiting for a store that is away is no reason to be started anew.
                self._systemd.alive()
            await asyncio.sleep(pause)

    async def _reload(self, scheduler: Scheduler, crew: Crew) -> None:
        while True:
            await self._reloading.wait()
            self._reloading.clear()
            self._systemd.reloading()
            try:
                settings = await asyncio.to_thread(self._load)
                settings.check_rules()
                await self._templates.tried(settings)
                await asyncio.to_thread(check_targets, settings)
                _check_change(self._settings, settings)
            except ConfigError as error:
                logger.error("The new configuration is refused, the old one stays", extra={"why": str(error)})
            except Exception:
                logger.exception("The new configuration cannot be read, the old one stays")
            else:
                self._settings = settings
                make_room(settings.service.max_running)
                scheduler.reload(settings)
                crew.make_room(settings.service.max_running)
                logger.info("Reloaded", extra={"schedules": len(settings.schedules)})
            self._systemd.ready(self._status(scheduler, crew))

    async def _drain(self, crew: Crew) -> None:
        """Let what runs come to its end, within the limit; then interrupt it, so that it can be gone on with."""
        running = len(crew.cycles)
        self._systemd.stopping(f"Waiting for {running} cycles to end.")
        logger.info("Draining", extra={"cycles": running, "seconds": self._settings.service.drain_seconds})
        deadline = time.monotonic() + self._settings.service.drain_seconds
        while not crew.idle.is_set():
            if self._hurrying.is_set():
                deadline = min(deadline, time.monotonic())
            if time.monotonic() < deadline + _ENDING_SECONDS:
                self._systemd.extend(_EXTENSION_SECONDS)
            if time.monotonic() >= deadline:
                crew.interrupt()
            waits = [asyncio.create_task(crew.idle.wait())]
            if not self._hurrying.is_set():
                waits.append(asyncio.create_task(self._hurrying.wait()))
            left = max(0.05, min(_EXTENSION_SECONDS / 3, deadline - time.monotonic()))
            await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            for task in waits:
                task.cancel()

    def _status(self, scheduler: Scheduler, crew: Crew) -> str:
        running = len(crew.cycles)
        upcoming = min(scheduler.next_fires().items(), key=lambda fire: fire[1], default=None)
        following = f"next: {upcoming[0]} at {upcoming[1]:%Y-%m-%dT%H:%M:%SZ}" if upcoming else "nothing scheduled"
        return f"{running} cycle{'s' if running != 1 else ''} running, {following}"

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        handlers = {signal.SIGTERM: self._end, signal.SIGINT: self._end, signal.SIGHUP: self._reloading.set}
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)

    def _end(self) -> None:
        """The first wish to end drains, the second one does not wait."""
        if self._ending.is_set():
            self._hurrying.set()
        self._ending.set()


async def _attempt(work: Callable[[], Awaitable[None]]) -> None:
    """Do something that is done again later: what goes wrong is said, and takes nothing else with it."""
    try:
        await work()
    except StoreError as error:
        logger.warning("A task of the service waits for the store", extra={"why": error.message})
    except Exception:
        logger.exception("A task of the service failed")


async def _every(seconds: float, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(seconds)
        await _attempt(work)


def _trouble(scheduler: Scheduler) -> str | None:
    if scheduler.problem is not None:
        return scheduler.problem
    silent = time.monotonic() - scheduler.looked_at
    return f"The scheduler has not looked at the clock for {silent:.0f} seconds." if silent > _STUCK_SECONDS else None


def _check_change(old: Settings, new: Settings) -> None:
    """Refuse a reload that would need a restart: running work has its records and its address."""
    if (old.database_url(), old.state.dir, old.web) != (new.database_url(), new.state.dir, new.web):
        raise ConfigError(
            "The database, the state directory or the web address is another one.", remedy="Restart the service."
        )


@contextlib.contextmanager
def _only_one(settings: Settings) -> Iterator[None]:
    """One service for a state directory. The lock goes with the process, however that ends."""
    path = settings.state.dir / _LOCK_FILE
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OpsladderError(
                f"Another `opsladder run` already serves {settings.state.dir}.",
                remedy="Stop that one, or give this one a state.dir of its own.",
            ) from error
        yield
    finally:
        os.close(descriptor)
