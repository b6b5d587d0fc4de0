"""The cycles that run at the same time in one service. Runs them through ``climb``. Used by service.daemon."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol

from supervisor.climb.cycle import run_cycle
from supervisor.climb.ladder import CycleRequest, Ladder
from supervisor.climb.stop import StopRequest
from supervisor.errors import Conflict, OpsladderError, StoreUnavailable
from supervisor.model.cycle import Chain
from supervisor.model.progress import CycleStarted, Progress

logger = logging.getLogger(__name__)

Outfit = Callable[[], Awaitable[Ladder]]


class Told(Protocol):
    """Who hears what becomes of each cycle."""

    def wanted(self, request: CycleRequest) -> bool: ...
    def began(self, request: CycleRequest) -> None: ...
    async def done(self, request: CycleRequest, chain: Chain | None) -> None: ...
    def put_off(self, request: CycleRequest) -> None: ...
    async def refuse(self, request: CycleRequest, why: str) -> None: ...


class Crew:
    """Starts cycles, at most ``limit`` at a time, and ends them when the service has to go.

    ``outfit`` gets ready for one, ``told`` hears of each.
    """

    def __init__(self, group: asyncio.TaskGroup, outfit: Outfit, told: Told, *, limit: int) -> None:
        self._limit = limit
        self._group = group
        self._outfit = outfit
        self._told = told
        self._stops: dict[str, StopRequest] = {}
        self._cycles: dict[str, int] = {}
        self._waiting: list[CycleRequest] = []
        self._leaving = False
        self.idle = asyncio.Event()
        self.idle.set()

    @property
    def schedules(self) -> frozenset[str]:
        """The schedules with a cycle under way or about to be."""
        return frozenset(self._stops) | {request.schedule for request in self._waiting}

    @property
    def under_way(self) -> frozenset[str]:
        """The schedules with a cycle under way: from before it begins until after it has ended."""
        return frozenset(self._stops)

    @property
    def cycles(self) -> frozenset[int]:
        """The cycles under way."""
        return frozenset(self._cycles.values())

    def start(self, request: CycleRequest) -> None:
        """Run a cycle as soon as there is room. Nothing is started any more once the service is leaving."""
        if self._leaving:
            return
        self._waiting.append(request)
        self._start_waiting()

    def stop_starting(self) -> list[CycleRequest]:
        """Take on nothing more. Returns what waited for room, and now will not run."""
        self._leaving = True
        waited, self._waiting = self._waiting, []
        return waited

    def make_room(self, limit: int) -> None:
        """Let so many run at a time from now on. What waited for room starts, if there is some now."""
        self._limit = limit
        self._start_waiting()

    def interrupt(self) -> None:
        """Ask every cycle under way to stop, so that it can be gone on with."""
        for stop in self._stops.values():
            stop.ask()

    def _start_waiting(self) -> None:
        while self._waiting and len(self._stops) < self._limit:
            free = next((r for r in self._waiting if r.schedule not in self._stops), None)
            if free is None:
                return
            self._waiting.remove(free)
            if not self._told.wanted(free):
                continue
            self._stops[free.schedule] = StopRequest()
            self.idle.clear()
            self._group.create_task(self._run(free), name=f"cycle of {free.schedule}")

    async def _run(self, request: CycleRequest) -> None:
        def watch(progress: Progress) -> None:
            if isinstance(progress, CycleStarted):
                self._cycles[request.schedule] = progress.cycle.id
                self._told.began(request)

        try:
            try:
                ladder = await self._outfit()
            except OpsladderError as error:
                await self._told.refuse(request, str(error))
                return
            try:
                chain: Chain | None = await run_cycle(
                    replace(ladder, watch=watch), request, stop=self._stops[request.schedule]
                )
            except StoreUnavailable as error:
                logger.warning(
                    "A cycle waits for the store", extra={"schedule": request.schedule, "why": error.message}
                )
                self._told.put_off(request)
                return
            except Conflict as conflict:
                logger.info("Another supervisor was faster", extra={"why": conflict.message})
                chain = None
            await self._told.done(request, chain)
        except Exception as error:
            # Here the task ends: one cycle that fails in a way nobody thought of must not take the others with it.
            logger.exception("A cycle failed", extra={"schedule": request.schedule})
            if request.schedule in self._cycles:
                # Its record says so already, or is completed like that of a dead supervisor.
                await self._told.done(request, None)
            else:
                await self._told.refuse(request, f"The cycle could not begin: {str(error) or type(error).__name__}")
        finally:
            self._cycles.pop(request.schedule, None)
            self._stops.pop(request.schedule)
            if not self._stops:
                self.idle.set()
            self._start_waiting()
