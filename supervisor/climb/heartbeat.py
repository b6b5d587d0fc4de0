"""Say that this process still runs a cycle, and hear whether it still should. Writes to the store.

Called from climb.cycle. Another host cannot see whether a process lives: it goes by the heartbeat.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from supervisor.climb.ladder import Ladder
from supervisor.climb.owner import LEASE, this_process
from supervisor.climb.stop import StopRequest
from supervisor.errors import Conflict, StoreError
from supervisor.model.cycle import Cycle
from supervisor.model.outcome import Ended

logger = logging.getLogger(__name__)

# Whoever wants the cycle to stop waits for the next look; a beat is a write, and only has to be well within the lease.
_LOOK_SECONDS = 2.0
_BEAT_SECONDS = 20.0
# Well before another host may take the cycle over, nothing of it may run here any more.
_LONGEST_SILENCE_SECONDS = LEASE.total_seconds() * 0.6


@contextlib.asynccontextmanager
async def beating(ladder: Ladder, cycle: Cycle, stop: StopRequest) -> AsyncIterator[None]:
    """Keep the cycle alive while the block runs; ask it to stop when somebody wishes so or has taken it over."""
    task = asyncio.create_task(_beat(ladder, cycle, stop))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _beat(ladder: Ladder, cycle: Cycle, stop: StopRequest) -> None:
    clock = asyncio.get_running_loop().time
    beaten_at = clock()
    while not stop.event.is_set():
        await asyncio.sleep(_LOOK_SECONDS)
        is_due = clock() - beaten_at >= _BEAT_SECONDS
        ask = ladder.store.beat if is_due else ladder.store.owned_cycle
        try:
            found = await asyncio.to_thread(ask, cycle.id, owner=this_process())
            beaten_at = clock() if is_due else beaten_at
        except Conflict:
            logger.critical("Another process runs this cycle now", extra={"cycle": cycle.id})
            stop.ask(Ended.DISOWNED)
        except StoreError as error:
            # Whoever writes records decides when that was too long; but a run that says nothing has nothing to write.
            logger.warning("The heartbeat was not written", extra={"cycle": cycle.id, "why": error.message})
            if clock() - beaten_at >= _LONGEST_SILENCE_SECONDS:
                stop.ask(Ended.STORE_UNAVAILABLE)
        else:
            if found.stop_asked_by is not None:
                stop.ask(Ended.STOPPED)
