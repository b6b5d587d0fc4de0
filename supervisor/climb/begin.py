"""Begin a cycle, go on with a paused one, or say why neither. Writes to the store. Called from climb.cycle."""

import asyncio
from dataclasses import replace

from supervisor.climb.ladder import CycleRequest, Ladder
from supervisor.climb.outlook import policy_for, surroundings
from supervisor.climb.owner import this_process
from supervisor.decide.next_step import next_step
from supervisor.errors import Conflict
from supervisor.model.cycle import Cycle, CycleStatus
from supervisor.model.step import Finish


def for_cycle(request: CycleRequest, cycle: Cycle) -> CycleRequest:
    """The request as the cycle has it: one that was paused goes on as it began."""
    return replace(request, dry_run=cycle.dry_run, max_tier=cycle.max_tier or request.max_tier)


async def begin(ladder: Ladder, request: CycleRequest) -> Cycle:
    store = ladder.store
    switch = await asyncio.to_thread(store.switch)
    if switch.paused:
        by = f" by {switch.by}" if switch.by else ""
        why = f" ({switch.reason})" if switch.reason else ""
        return await _skip(ladder, request, "switch", f"opsladder is paused{by}{why}. `opsladder unpause` ends that.")
    try:
        waiting = await _reopen(ladder, request)
        if waiting is not None:
            return waiting
        return await asyncio.to_thread(
            store.begin_cycle,
            schedule=request.schedule,
            trigger=request.trigger,
            dry_run=request.dry_run,
            owner=this_process(),
            now=ladder.clock(),
            fire_key=request.fire_key,
            max_tier=request.max_tier,
        )
    except Conflict as conflict:
        return await _skip(ladder, request, "already_running", conflict.message)


async def _reopen(ladder: Ladder, request: CycleRequest) -> Cycle | None:
    """The schedule's paused cycle, if it has one: opened again when it may go on, else a skipped cycle that says why.

    A schedule looks after one thing, and what was found there is still being dealt with: a second cycle beside the
    paused one would find the same, and ask for the same again.
    """
    store = ladder.store
    if request.paused_cycle is not None:
        return await asyncio.to_thread(store.reopen_cycle, request.paused_cycle, owner=this_process())
    for chain in await asyncio.to_thread(store.chains, 1, CycleStatus.PAUSED, request.schedule):
        now = ladder.clock()
        await asyncio.to_thread(store.expire_approvals, now)
        asked = for_cycle(request, chain.cycle)
        policy = await asyncio.to_thread(policy_for, ladder, asked, chain)
        step = next_step(chain, policy, await asyncio.to_thread(surroundings, ladder, asked, chain), now=now)
        if isinstance(step, Finish) and step.status is CycleStatus.PAUSED:
            detail = f"Cycle {chain.cycle.id} of this schedule is paused and comes first. {step.detail}"
            return await _skip(ladder, request, "paused", detail)
        return await asyncio.to_thread(store.reopen_cycle, chain.cycle.id, owner=this_process())
    return None


async def _skip(ladder: Ladder, request: CycleRequest, reason: str, detail: str) -> Cycle:
    return await asyncio.to_thread(
        ladder.store.skip_cycle,
        schedule=request.schedule,
        trigger=request.trigger,
        dry_run=request.dry_run,
        reason=reason,
        detail=detail,
        now=ladder.clock(),
    )
