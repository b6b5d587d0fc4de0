"""Show the cooldowns, and say so to whoever watches when their file had to be rebuilt. Does I/O. Used in climb."""

import logging

from supervisor.climb.health import show_cooldowns
from supervisor.climb.insist import insist
from supervisor.climb.ladder import Ladder
from supervisor.model.cycle import Event, EventKind
from supervisor.model.guarding import CooldownUse
from supervisor.model.progress import Notice

logger = logging.getLogger(__name__)


async def shown_cooldowns(ladder: Ladder, cycle_id: int) -> tuple[CooldownUse, ...]:
    """What is used up of each limit, written to its file."""
    patience = ladder.store_patience_seconds
    before = await insist(patience, _notices, ladder, cycle_id)
    uses = await insist(patience, show_cooldowns, ladder, cycle_id)
    for event in await insist(patience, _notices, ladder, cycle_id, after=before[-1].id if before else 0):
        logger.warning("A file of the supervisor's was rebuilt", extra={"cycle": cycle_id, "what": event.text})
        ladder.watch(Notice(text=event.text, needs_a_person=False))
    return uses


def _notices(ladder: Ladder, cycle_id: int, after: int = 0) -> list[Event]:
    return ladder.store.events(cycle_id=cycle_id, kinds=(EventKind.NOTICE,), after_id=after)
