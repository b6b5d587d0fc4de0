"""Time → firings on a queue. Reads and writes how far each schedule has been dealt with. Run by service.daemon.

A firing is offered, then it is started or put off, and it ends; whoever takes it from the queue says so. It counts as
dealt with from its start on and not before: who is killed in between finds it undone. That two supervisors offer the
same firing is settled by its claim in the store, not here.
"""

import asyncio
import heapq
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import count
from typing import Final

from supervisor.decide.firing import Fire, Overlap, Queue, Skip, SkipReason, believed, deal
from supervisor.errors import StoreUnavailable
from supervisor.service.books import Books
from supervisor.service.triggers import place_of
from supervisor.service.watched import Firing, Watched
from supervisor.settings import Settings
from supervisor.store import Store

__all__ = ["LONGEST_REST_SECONDS", "Firing", "Scheduler"]

logger = logging.getLogger(__name__)

# A clock that is put forward while we rest is noticed after this long.
LONGEST_REST_SECONDS: Final = 30.0
_STORE_RETRY_SECONDS: Final = 5.0
_PUT_OFF: Final = timedelta(seconds=30)
# Told to everybody who asks whether the service is ready, so without the place that the log names.
_WAITS: Final = "The scheduler waits for the records."

Rest = Callable[[asyncio.Event, float], Awaitable[None]]
_Mark = tuple[datetime, int, str]


async def until_woken(woken: asyncio.Event, seconds: float) -> None:
    """Rest for so long, or until something has changed."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await woken.wait()


class Scheduler:
    """Puts a firing on ``firings`` when one is due. Each is answered by ``started``, ``ended`` or ``put_off``.

    ``looked_at`` is when it last looked at the clock (``time.monotonic``), ``problem`` what keeps it from its work.
    """

    def __init__(
        self, settings: Settings, store: Store, *, clock: Callable[[], datetime], rest: Rest = until_woken
    ) -> None:
        self.firings: asyncio.Queue[Firing] = asyncio.Queue()
        self.problem: str | None = None
        self.looked_at = time.monotonic()
        self._settings = settings
        self._store = store
        self._clock = clock
        self._rest = rest
        self._books = Books(store)
        self._woken = asyncio.Event()
        # As far as any clock has been that we went by.
        self._latest = clock()
        self._watched = _watched(settings)
        self._unknown = set(self._watched)
        self._marks: list[_Mark] = []
        self._order = count()

    def next_fires(self) -> Mapping[str, datetime]:
        """When each schedule starts next, of those that start by themselves."""
        return {name: watched.at for name, watched in self._watched.items() if watched.at is not None}

    def started(self, firing: Firing) -> None:
        """A cycle began for it, or went on: the firing is dealt with."""
        watched = self._watched.get(firing.schedule)
        if watched is not None and watched.offered == firing:
            watched.offered, watched.running = None, firing
            self._changed(watched)

    def ended(self, firing: Firing) -> None:
        """Its cycle is over, or there was none to begin. What was queued behind it is offered."""
        watched = self._watched.get(firing.schedule)
        if watched is None or firing not in (watched.offered, watched.running):
            return
        watched.offered = watched.running = None
        queued, watched.queued = watched.queued, None
        now = self._clock()
        if queued is not None and watched.policy.blacked_out(now):
            self._skip(watched, Skip(due=queued.due, reason=SkipReason.BLACKOUT), now)
        elif queued is not None:
            self._offer(watched, queued)
        self._changed(watched)

    def may_start(self, firing: Firing) -> bool:
        """Whether it may start after it has waited for room. One that has come into a blackout is skipped instead.

        Nor does one start whose schedule no longer starts by itself since a reload.
        """
        watched, now = self._watched.get(firing.schedule), self._clock()
        if watched is None:
            return False
        if watched.offered != firing or not watched.policy.blacked_out(now):
            return True
        self._take_back(watched, firing, SkipReason.BLACKOUT)
        return False

    def overlaps(self, firing: Firing) -> bool:
        """Whether it is skipped because a cycle of its schedule goes on that was not fired."""
        watched = self._watched.get(firing.schedule)
        if watched is None or watched.offered != firing or watched.policy.overlap is not Overlap.SKIP:
            return False
        self._take_back(watched, firing, SkipReason.OVERLAP)
        return True

    def put_off(self, firing: Firing) -> None:
        """It broke off for a reason that will pass, such as a store that is away: offer it again in a while.

        What had started is over, though: its cycle is on record, and goes on from there.
        """
        watched = self._watched.get(firing.schedule)
        if watched is not None and watched.running == firing:
            self.ended(firing)
        elif watched is not None and watched.offered == firing:
            watched.again_at = self._clock() + _PUT_OFF
            self._mark(watched, watched.again_at)
            self._woken.set()

    def reload(self, settings: Settings) -> None:
        """Go by other schedules from now on. What is under way of those that stay is not touched."""
        now, before = self._clock(), self._watched
        self._settings = settings
        self._watched = _watched(settings)
        for name, watched in self._watched.items():
            watched.until = now
            if name in before:
                watched.take_over(before[name])
        self._unknown = set(self._watched)
        self._marks.clear()
        self._woken.set()

    async def run(self) -> None:
        """Go on until cancelled."""
        while True:
            await self._rest(self._woken, await self.step())

    async def close(self) -> None:
        """Write down what happened since the last step, when there will be no other."""
        await self._books.write_down()

    async def step(self) -> float:
        """Deal with what is due now. Returns for how many seconds nothing will be."""
        self._woken.clear()
        now = self._clock()
        try:
            await self._find_out(now)
            self._notice_the_clock(now)
            await self._deal_with_due(now)
            await self._books.write_down()
        except StoreUnavailable as error:
            if self.problem is None:
                logger.warning("The scheduler waits for the store", extra={"why": error.message})
            self.problem = _WAITS
        else:
            self.problem = None
        self.looked_at = time.monotonic()
        return self._seconds_left()

    async def _find_out(self, now: datetime) -> None:
        """Look up how far the schedules are that we know nothing of."""
        if not self._unknown:
            return
        names = frozenset(self._unknown)
        await asyncio.to_thread(self._store.register, names, now)
        known = await asyncio.to_thread(self._store.dealt_until, names)
        for name in sorted(names & known.keys() & self._watched.keys()):
            # A reload may have come in between, so it is those that are watched now.
            watched = self._watched[name]
            watched.known = known[name]
            self._go_on_from(watched, max(known[name], watched.until or known[name]), now)
            if watched.again_at is not None:
                self._mark(watched, watched.again_at)
            self._unknown.discard(name)
            await asyncio.sleep(0)

    def _notice_the_clock(self, now: datetime) -> None:
        """Look at everything again when the clock was put back far: what lies so far ahead would not come for long."""
        if believed(self._latest, now) < self._latest:
            logger.warning("The clock was put back", extra={"from": str(self._latest), "to": str(now)})
            self._latest = now
            for watched in self._watched.values():
                if watched.until is not None:
                    self._go_on_from(watched, watched.until, now)
                if watched.again_at is not None:
                    watched.again_at = min(watched.again_at, now + _PUT_OFF)
                    self._mark(watched, watched.again_at)
        self._latest = max(self._latest, now)

    def _go_on_from(self, watched: Watched, until: datetime, now: datetime) -> None:
        watched.until = believed(until, now)
        if watched.until < until:
            logger.warning(
                "A clock was wrong when firings were dealt with", extra={"schedule": watched.name, "until": str(until)}
            )
        self._books.moved(watched)
        self._expect(watched)

    async def _deal_with_due(self, now: datetime) -> None:
        marks = self._take_marks(now)
        names = dict.fromkeys(name for _, _, name in marks)
        try:
            known = await asyncio.to_thread(self._store.dealt_until, names) if names else {}
        except StoreUnavailable:
            for mark in marks:
                heapq.heappush(self._marks, mark)
            raise
        for name in names:
            # Thousands may be due at once, and there is other work to do.
            await asyncio.sleep(0)
            watched = self._watched.get(name)
            if watched is not None and name not in self._unknown:
                self._decide(watched, known, now)

    def _take_marks(self, now: datetime) -> list[_Mark]:
        taken = []
        while self._marks and self._marks[0][0] <= now:
            mark = heapq.heappop(self._marks)
            watched = self._watched.get(mark[2])
            if watched is not None and mark[0] in (watched.at, watched.again_at):
                taken.append(mark)
        return taken

    def _decide(self, watched: Watched, known: Mapping[str, datetime], now: datetime) -> None:
        if watched.name not in known or watched.until is None:
            # Its row was removed, as by a restored backup.
            self._unknown.add(watched.name)
            return
        watched.known = known[watched.name]
        if watched.again_at is not None and watched.again_at <= now:
            watched.again_at = None
            if watched.offered is not None:
                self.firings.put_nowait(watched.offered)
        until = max(watched.until, believed(watched.known, now))
        dealt = deal(watched.times, watched.policy, watched.under_way, dealt_until=until, now=now)
        for decision in dealt.decisions:
            match decision:
                case Fire(due=due, made_up=made_up):
                    self._offer(watched, Firing(schedule=watched.name, due=due, made_up=made_up))
                case Queue(due=due, made_up=made_up):
                    watched.queued = Firing(schedule=watched.name, due=due, made_up=made_up)
                case Skip():
                    self._skip(watched, decision, now)
        if dealt.missed:
            logger.warning("Firings were missed", extra={"schedule": watched.name, "missed": dealt.missed})
            self._books.missed(watched.name, dealt.missed)
        watched.until = dealt.until
        # A firing moves its schedule when it starts; what was missed before it must not be counted twice.
        if dealt.missed or not watched.under_way.waiting:
            self._books.moved(watched)
        if watched.at is not None and watched.at <= now:
            self._expect(watched)

    def _offer(self, watched: Watched, firing: Firing) -> None:
        watched.offered = firing
        logger.info("Firing", extra={"schedule": firing.schedule, "due": firing.fire_key})
        self.firings.put_nowait(firing)

    def _skip(self, watched: Watched, skip: Skip, now: datetime) -> None:
        self._books.skipped(watched.name, skip, dry_run=self._settings.escalation.dry_run, now=now)

    def _take_back(self, watched: Watched, firing: Firing, reason: SkipReason) -> None:
        watched.offered = None
        self._skip(watched, Skip(due=firing.due, reason=reason), self._clock())
        self._changed(watched)

    def _changed(self, watched: Watched) -> None:
        self._books.moved(watched)
        self._woken.set()

    def _expect(self, watched: Watched) -> None:
        """Work out when the next firing starts."""
        due = None
        if watched.until is not None:
            self._latest = max(self._latest, watched.until)
            due = watched.times.next_after(watched.until)
        watched.at = watched.times.starts_at(due) if due is not None else None
        if watched.at is not None:
            self._mark(watched, watched.at)

    def _mark(self, watched: Watched, at: datetime) -> None:
        heapq.heappush(self._marks, (at, next(self._order), watched.name))

    def _seconds_left(self) -> float:
        if self.problem is not None:
            return _STORE_RETRY_SECONDS
        if self._unknown:
            return 0.0
        if not self._marks:
            return LONGEST_REST_SECONDS
        left = (self._marks[0][0] - self._clock()).total_seconds()
        return min(max(0.0, left), LONGEST_REST_SECONDS)


def _watched(settings: Settings) -> dict[str, Watched]:
    """The schedules that start by themselves."""
    place = place_of(settings)
    return {s.name: Watched(s, place) for s in settings.schedules if s.cron is not None or s.every is not None}
