"""Begin a cycle, go on with one that waits, or say why neither. Writes to the store. Called from climb.cycle."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from supervisor.climb.ladder import CycleRequest, Ladder
from supervisor.climb.outlook import approval_of, policy_for, surroundings
from supervisor.climb.owner import this_process
from supervisor.decide.next_step import next_step
from supervisor.errors import Conflict, PausedFirst
from supervisor.model.cycle import Chain, Cycle, CycleStatus
from supervisor.model.step import Finish

# A cycle may be paused between our look and our beginning another; who loses that race this often leaves it to others.
_LOOKS = 3


def for_cycle(request: CycleRequest, cycle: Cycle) -> CycleRequest:
    """The request as the cycle has it: one that waited goes on as it began, whoever goes on with it."""
    asked = cycle.request
    start_tier, retry_of = asked.get("start_tier"), asked.get("retry_of")
    return replace(
        request,
        schedule=cycle.schedule,
        trigger=cycle.trigger,
        dry_run=cycle.dry_run,
        max_tier=cycle.max_tier or request.max_tier,
        start_tier=start_tier if isinstance(start_tier, int) else request.start_tier,
        instructions=str(asked.get("instructions") or ""),
        began_fresh=bool(asked.get("force_fresh")),
        retry_of=retry_of if isinstance(retry_of, int) else None,
    )


async def begin(ladder: Ladder, request: CycleRequest) -> Cycle:
    """The cycle to run, or a skipped one. ``Conflict`` when another supervisor has claimed this very firing."""
    store = ladder.store
    switch = await asyncio.to_thread(store.switch)
    if switch.paused:
        by = f" by {switch.by}" if switch.by else ""
        why = f" ({switch.reason})" if switch.reason else ""
        return await _skip(ladder, request, "switch", f"opsladder is paused{by}{why}. `opsladder unpause` ends that.")
    for _ in range(_LOOKS):
        try:
            return await _reopen(ladder, request) or await _begin_new(ladder, request)
        except PausedFirst as waits:
            taken: Conflict = waits
        except Conflict as conflict:
            taken = conflict
            break
    return await _skip(ladder, request, "already_running", taken.message)


async def _begin_new(ladder: Ladder, request: CycleRequest) -> Cycle:
    return await asyncio.to_thread(
        ladder.store.begin_cycle,
        schedule=request.schedule,
        trigger=request.trigger,
        dry_run=request.dry_run,
        owner=this_process(),
        now=ladder.clock(),
        fire_key=request.fire_key,
        max_tier=request.max_tier,
        request=await asyncio.to_thread(_kept, ladder, request),
        retry_of=request.retry_of,
        by=request.by,
    )


def _kept(ladder: Ladder, request: CycleRequest) -> dict[str, object]:
    """What was asked for, for whoever has to go on with the cycle. Reads the store when more money was approved."""
    return {
        "start_tier": request.start_tier,
        "instructions": ladder.settings.masker().text(request.instructions),
        "force_fresh": request.force_fresh,
        "retry_of": request.retry_of,
        **(approval_of(ladder, None) if request.approve_budget else {}),
    }


async def _reopen(ladder: Ladder, request: CycleRequest) -> Cycle | None:
    """The schedule's waiting cycle, if it has one: opened again when it may go on, else a skipped one that says why.

    A schedule looks after one thing, and what was found there is still being dealt with: a second cycle beside the
    waiting one would find the same, and ask for the same again. Only a retry takes its place.
    """
    store = ladder.store
    if request.paused_cycle is not None:
        return await _open(ladder, request.paused_cycle)
    for chain in await asyncio.to_thread(store.chains, 1, CycleStatus.PAUSED, request.schedule):
        if request.retry_of is not None:
            await _give_up(ladder, chain, request)
            return None
        waits = await asyncio.to_thread(still_waits, ladder, request, chain)
        if waits is not None:
            detail = f"Cycle {chain.cycle.id} of this schedule is paused and comes first. {waits.detail}"
            return await _skip(ladder, request, "paused", detail)
        kept = None
        if request.approve_budget:
            kept = {**chain.cycle.request, **await asyncio.to_thread(approval_of, ladder, chain.cost_usd)}
        return await _open(ladder, chain.cycle.id, kept)
    return None


def still_waits(ladder: Ladder, request: CycleRequest, chain: Chain) -> Finish | None:
    """Why a paused cycle cannot go on yet; nothing when what it waits for has come. Reads and writes the store."""
    now = ladder.clock()
    ladder.store.expire_approvals(now)
    asked = for_cycle(request, chain.cycle)
    policy = policy_for(ladder, asked, chain)
    step = next_step(chain, policy, surroundings(ladder, asked, chain), now=now)
    return step if isinstance(step, Finish) and step.status is CycleStatus.PAUSED else None


async def _open(ladder: Ladder, cycle_id: int, kept: Mapping[str, object] | None = None) -> Cycle:
    return await asyncio.to_thread(
        ladder.store.reopen_cycle, cycle_id, owner=this_process(), now=ladder.clock(), why="gone on", request=kept
    )


async def _give_up(ladder: Ladder, waiting: Chain, request: CycleRequest) -> None:
    await asyncio.to_thread(
        ladder.store.finish_cycle,
        waiting.cycle.id,
        status=CycleStatus.STOPPED,
        reason="retried",
        detail=f"Record {request.retry_of} was retried instead of going on here.",
        now=ladder.clock(),
        by=request.by,
        # Somebody may have gone on with it since we looked.
        expect=CycleStatus.PAUSED,
    )


async def _skip(ladder: Ladder, request: CycleRequest, reason: str, detail: str) -> Cycle:
    return await asyncio.to_thread(
        ladder.store.skip_cycle,
        schedule=request.schedule,
        trigger=request.trigger,
        dry_run=request.dry_run,
        reason=reason,
        detail=detail,
        now=ladder.clock(),
        fire_key=request.fire_key,
    )
