"""Which cycles of this very process nobody runs any more. Reads the store. Used by service.daemon.

A cycle is in the store before the crew hears its number, so its number does not tell whether it is under way: one that
is just beginning would be taken for lost, and ended. Its schedule does: the crew has it from before the cycle begins
until after it has ended.
"""

import asyncio
from collections.abc import Callable, Collection

from supervisor.climb.owner import this_process
from supervisor.store import Store


async def left_behind(store: Store, schedules: Callable[[], Collection[str]]) -> list[int]:
    """The cycles that name this process and are in nobody's hands; ``schedules`` are those the crew has a cycle of.

    In this order: of a cycle that was found running the crew has none afterwards. One that begins meanwhile is not
    among those that were found.
    """
    running = await asyncio.to_thread(store.running_cycles)
    ours, present = this_process(), schedules()
    return [cycle.id for cycle, owner in running if owner == ours and cycle.schedule not in present]
