"""What the scheduler writes down: skipped and missed firings, and how far each schedule is. Writes to the store.

Used by service.scheduler. What the store does not take for now stays, and is written when it does.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final

from supervisor.decide.firing import Skip, SkipReason, fire_key
from supervisor.errors import Conflict
from supervisor.model.cycle import Trigger
from supervisor.service.watched import Watched
from supervisor.store import Store

_DETAILS: Final = {
    SkipReason.BLACKOUT: "A blackout window of its schedule was open.",
    SkipReason.OVERLAP: "The cycle before it was still running.",
}


class Books:
    """Entries wait here until ``write_down``, in the order in which they were made."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._entries: deque[Callable[[], object]] = deque()
        self._moved: dict[str, Watched] = {}
        self._missed: Counter[str] = Counter()

    def skipped(self, name: str, skip: Skip, *, dry_run: bool, now: datetime) -> None:
        """A firing does not run. One that another firing stands for is not worth an entry."""
        if skip.reason is not SkipReason.WAITING:
            self._entries.append(partial(self._record, name, skip, dry_run=dry_run, now=now))

    def missed(self, name: str, count: int) -> None:
        """So many firings were missed. Counted when the schedule is moved past them, and only by who does that."""
        self._missed[name] += count

    def moved(self, watched: Watched) -> None:
        """A schedule may have got further."""
        self._moved[watched.name] = watched

    async def write_down(self) -> None:
        """Put everything into the store. ``StoreUnavailable`` leaves the rest for another time."""
        while self._entries:
            await asyncio.to_thread(self._entries[0])
            self._entries.popleft()
        while self._moved:
            name, watched = next(iter(self._moved.items()))
            await self._keep(watched)
            # It may have been replaced by a reload in the meantime.
            if self._moved.get(name) is watched:
                del self._moved[name]

    async def _keep(self, watched: Watched) -> None:
        until, known = watched.dealt_until, watched.known
        if until is None or known is None or until == known:
            return
        # Refused when another supervisor was faster: what it found is read before the next decision.
        missed = self._missed[watched.name]
        if await asyncio.to_thread(self._store.deal, watched.name, until, expected=known, missed=missed):
            watched.known = until
        del self._missed[watched.name]

    def _record(self, name: str, skip: Skip, *, dry_run: bool, now: datetime) -> None:
        # Claimed already: by another supervisor, or by us when the answer was lost.
        with suppress(Conflict):
            self._store.skip_cycle(
                schedule=name,
                trigger=Trigger.SCHEDULE,
                dry_run=dry_run,
                reason=skip.reason.value,
                detail=_DETAILS.get(skip.reason) or _missed(skip.count),
                now=now,
                fire_key=fire_key(skip.due),
            )


def _missed(count: int) -> str:
    others = "" if count == 1 else f", nor {count - 1} before it"
    return f"Nobody was there to start it in time{others}."
