"""Record that a cycle is over or waits, and why. Writes to the store. Called from climb.cycle and climb.recovery."""

import datetime as dt
import logging
from collections.abc import Mapping
from dataclasses import replace

from supervisor.climb.health import record_health, show_cooldowns
from supervisor.climb.incident import settle_incident
from supervisor.climb.insist import insist, or_find_it_done
from supervisor.climb.ladder import Ladder
from supervisor.decide.telling import goes_on_by_itself
from supervisor.model.cycle import Chain, Cycle, CycleStatus, EventKind, NewEvent
from supervisor.model.progress import CycleEnded, Notice
from supervisor.model.report import Level
from supervisor.model.step import Finish
from supervisor.store import CycleEnd

logger = logging.getLogger(__name__)


def interrupted(cycle: Cycle, why: str) -> Finish:
    """How a cycle waits that was cut off: the next cycle of its schedule goes on with it."""
    detail = f"{why} The next cycle of {cycle.schedule} goes on with it."
    return Finish(status=CycleStatus.PAUSED, reason="interrupted", detail=detail, tell=True)


def stopped(by: str | None) -> Finish:
    """How a cycle ends that a person wants no more of."""
    return Finish(status=CycleStatus.STOPPED, reason="stopped", detail=f"The cycle was stopped by {by or 'a person'}.")


def notice(step: Finish) -> Notice:
    """What whoever watches is told of how a cycle ended or why it waits."""
    return Notice(text=step.detail, needs_a_person=not goes_on_by_itself(step.status, step.reason))


async def wait(ladder: Ladder, cycle: Cycle, step: Finish) -> None:
    """Let a cycle wait of which nothing was learned."""
    ladder.watch(notice(await close(ladder, cycle, step)))


async def finish(ladder: Ladder, cycle: Cycle, step: Finish) -> Chain:
    """Close a cycle, and keep what was learned from it."""
    step = await close(ladder, cycle, step)
    logger.log(
        logging.WARNING if step.tell else logging.INFO,
        "Cycle finished",
        extra={"cycle": cycle.id, "status": step.status.value, "reason": step.reason},
    )
    patience = ladder.store_patience_seconds
    chain = await insist(patience, ladder.store.chain, cycle.id)
    if step.status is not CycleStatus.PAUSED:
        await insist(patience, record_health, ladder, chain)
        if await insist(patience, settle_incident, ladder, chain) is not None:
            chain = await insist(patience, ladder.store.chain, cycle.id)
    await insist(patience, show_cooldowns, ladder, cycle.id)
    if step.tell:
        ladder.watch(notice(step))
    ladder.watch(CycleEnded(chain=chain, finish=step))
    return chain


async def close(ladder: Ladder, cycle: Cycle, finish: Finish) -> Finish:
    """Record why a cycle is over, and then that it is. Returns what was recorded, which has no secrets in it."""
    store, now = ladder.store, ladder.clock()
    finish = _without_secrets(ladder, finish)
    await insist(
        ladder.store_patience_seconds,
        or_find_it_done,
        lambda: store.finish_cycles([_end(cycle.id, finish, now)])[0],
        find=lambda: store.cycle(cycle.id),
        is_ours=lambda found: (found.status, found.ended_at) == (finish.status, now),
    )
    return finish


def close_all(ladder: Ladder, finishes: Mapping[int, Finish]) -> dict[int, Finish]:
    """The same for several cycles, by their ids, in one transaction and in the caller's thread."""
    now = ladder.clock()
    recorded = {cycle: _without_secrets(ladder, finish) for cycle, finish in finishes.items()}
    ladder.store.finish_cycles([_end(cycle, finish, now) for cycle, finish in recorded.items()])
    return recorded


def _without_secrets(ladder: Ladder, finish: Finish) -> Finish:
    mask = ladder.settings.masker().text
    return replace(finish, detail=mask(finish.detail), services=tuple(mask(name) for name in finish.services))


def _end(cycle: int, finish: Finish, now: dt.datetime) -> CycleEnd:
    event = NewEvent(
        kind=EventKind.NOTICE if finish.tell else EventKind.DECISION,
        at=now,
        level=Level.CRITICAL if finish.tell else Level.INFO,
        text=finish.detail,
        data={
            "status": finish.status.value,
            "reason": finish.reason,
            "would_run_tier": finish.would_run_tier,
            "services": list(finish.services),
        },
    )
    return CycleEnd(
        cycle_id=cycle, status=finish.status, reason=finish.reason, detail=finish.detail, at=now, event=event
    )
