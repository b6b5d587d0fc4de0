"""Record that a cycle is over, and why. Writes to the store. Called from climb.cycle and climb.recovery."""

from dataclasses import replace

from supervisor.climb.insist import insist, or_find_it_done
from supervisor.climb.ladder import Ladder
from supervisor.model.cycle import Cycle, CycleStatus, EventKind, NewEvent
from supervisor.model.report import Level
from supervisor.model.step import Finish


def interrupted(detail: str) -> Finish:
    """How a cycle ends that nobody carries on."""
    return Finish(status=CycleStatus.STOPPED, reason="interrupted", detail=detail, tell=True)


async def close(ladder: Ladder, cycle: Cycle, finish: Finish) -> Finish:
    """Record why a cycle is over, and then that it is. Returns what was recorded, which has no secrets in it."""
    mask = ladder.settings.masker().text
    finish = replace(finish, detail=mask(finish.detail), services=tuple(mask(name) for name in finish.services))
    store, patience, now = ladder.store, ladder.store_patience_seconds, ladder.clock()
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
    await insist(patience, store.append_events, cycle.id, [event])
    await insist(
        patience,
        or_find_it_done,
        lambda: store.finish_cycle(cycle.id, status=finish.status, reason=finish.reason, detail=finish.detail, now=now),
        find=lambda: store.cycle(cycle.id),
        is_ours=lambda found: (found.status, found.ended_at) == (finish.status, now),
    )
    return finish
