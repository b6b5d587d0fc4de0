"""Between scheduler and crew: a firing hears what became of its cycle. Writes to the store. Used by service.daemon."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from supervisor.climb.ladder import CycleRequest, utc_now
from supervisor.errors import StoreUnavailable
from supervisor.model.cycle import Chain, EventKind, NewEvent
from supervisor.model.report import Level
from supervisor.notify import ping_after
from supervisor.service.scheduler import Firing, Scheduler
from supervisor.service.triggers import policy_of
from supervisor.settings import Settings
from supervisor.store import Store

logger = logging.getLogger(__name__)

_NOT_STARTED = "not_started"
_PINGS_AT_ONCE = 32


class Account:
    """The firings of which a cycle was asked for. A cycle without one only went on with something."""

    def __init__(self, scheduler: Scheduler, store: Store, settings: Callable[[], Settings]) -> None:
        self._scheduler = scheduler
        self._store = store
        self._settings = settings
        self._firings: dict[tuple[str, str | None], Firing] = {}
        self._going_on: set[str] = set()
        # Threads of their own: where a switch hangs, the store must not wait for one with everything that asks it.
        self._pings = ThreadPoolExecutor(_PINGS_AT_ONCE, thread_name_prefix="ping")

    def open(self, firing: Firing) -> bool:
        """Whether a cycle is to be asked for: perhaps not beside one that goes on without having been fired."""
        if firing.schedule in self._going_on and self._scheduler.overlaps(firing):
            return False
        self._firings[firing.schedule, firing.fire_key] = firing
        return True

    def wanted(self, request: CycleRequest) -> bool:
        """There is room for the cycle: whether it may still start. A reload may have taken its schedule away.

        In a blackout one that waited does not go on by itself either; it is asked for again as long as it waits.
        """
        schedule = next((known for known in self._settings().schedules if known.name == request.schedule), None)
        firing = self._firings.get(_key(request))
        if schedule is not None and firing is None:
            if policy_of(schedule).blacked_out(utc_now()):
                return False
            self._going_on.add(request.schedule)
            return True
        if schedule is not None and firing is not None and self._scheduler.may_start(firing):
            return True
        self._firings.pop(_key(request), None)
        return False

    def began(self, request: CycleRequest) -> None:
        """The cycle is on record."""
        firing = self._firings.get(_key(request))
        if firing is not None:
            self._scheduler.started(firing)

    async def done(self, request: CycleRequest, chain: Chain | None) -> None:
        """The cycle is over; without a chain it was another supervisor's, or nobody knows how it ended."""
        self._close(request)
        if chain is not None:
            await asyncio.get_running_loop().run_in_executor(self._pings, ping_after, self._settings(), chain)

    def put_off(self, request: CycleRequest) -> None:
        """The store is away: the cycle is tried again."""
        firing = self._taken(request)
        if firing is not None:
            self._scheduler.put_off(firing)

    async def refuse(self, request: CycleRequest, why: str) -> None:
        """The cycle could not even begin. That is put on record, so that a person is told."""
        logger.error("A cycle could not be started", extra={"schedule": request.schedule, "why": why})
        try:
            await asyncio.to_thread(_record_refusal, self._store, request, why)
        except Exception as error:
            # Nobody would be told of it. Whatever it was, it must not take the other cycles with it.
            if not isinstance(error, StoreUnavailable):
                logger.exception("A cycle that could not be started is not on record")
            self.put_off(request)
        else:
            self._close(request)

    def _taken(self, request: CycleRequest) -> Firing | None:
        if request.fire_key is None:
            self._going_on.discard(request.schedule)
        return self._firings.pop(_key(request), None)

    def _close(self, request: CycleRequest) -> None:
        firing = self._taken(request)
        if firing is not None:
            self._scheduler.started(firing)
            self._scheduler.ended(firing)


def _key(request: CycleRequest) -> tuple[str, str | None]:
    return request.schedule, request.fire_key


def _record_refusal(store: Store, request: CycleRequest, why: str) -> None:
    now = utc_now()
    cycle = store.skip_cycle(
        schedule=request.schedule,
        trigger=request.trigger,
        dry_run=request.dry_run,
        reason=_NOT_STARTED,
        detail=why,
        now=now,
    )
    store.append_events(cycle.id, [NewEvent(kind=EventKind.NOTICE, at=now, level=Level.CRITICAL, text=why)])
