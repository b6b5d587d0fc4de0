"""Go on with what a supervisor left behind that died. Does I/O. Called at the start of every cycle.

A running cycle names the process that owns it. When that process is gone, whoever notices takes the cycle over by
compare-and-set, so that only one does. The CLI it started is ended with its whole tree, the records catch up from the
raw stream the CLI had written, and then the cycle is what its records say: finished, or waiting to be gone on with by
the next cycle of its schedule.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from supervisor.claude.tree import marks_alive
from supervisor.climb.begin import for_cycle
from supervisor.climb.close import close_all, finish, interrupted, notice, stopped, wait
from supervisor.climb.entries import STREAM_KINDS
from supervisor.climb.files import discard_handoffs, discard_stream, stream_path
from supervisor.climb.health import show_cooldowns
from supervisor.climb.insist import insist
from supervisor.climb.ladder import CycleRequest, Ladder
from supervisor.climb.launch import guard_places
from supervisor.climb.outlook import policy_for, surroundings
from supervisor.climb.owner import is_gone, this_process
from supervisor.climb.settle import account, end_processes, settle
from supervisor.decide.cut_off import has_to_go_on
from supervisor.decide.next_step import next_step
from supervisor.errors import StoreError, StoreUnavailable
from supervisor.guard.post import sweep_posts
from supervisor.model.cycle import Chain, Cycle, CycleStatus, NewEvent
from supervisor.model.session import UNFINISHED
from supervisor.model.step import Finish, RunTier
from supervisor.store import Owner

logger = logging.getLogger(__name__)

# So many cycles are settled at a time, in two transactions: most of the time goes into commits and round trips.
_TOGETHER = 25
# What such a group has said is held in memory. Above this, one cycle after the other.
_MOST_BYTES = 32_000_000
# What this process is settling: many of its cycles begin with a recovery, and none may take this for what was left.
_SETTLING: set[int] = set()


async def recover(ladder: Ladder, *, left: Collection[int] = ()) -> None:
    """Settle every running cycle whose owner is gone, and clear away the posts of runs that are.

    ``left`` are cycles that name this very process as their owner and that nobody in it runs any more.
    """
    await asyncio.to_thread(sweep_posts, guard_places(ladder.settings))
    owners = await asyncio.to_thread(ladder.store.owners)
    lost = [owner for owner in owners if is_gone(owner) or (left and owner == this_process())]
    if not lost:
        return
    # One look for all of them: the dead start nothing any more.
    marks = await asyncio.to_thread(marks_alive)
    newest: Cycle | None = None
    for owner in lost:
        taken = await asyncio.to_thread(_take_over, ladder, owner, left)
        cycles = [cycle for cycle in taken if cycle.id not in _SETTLING]
        for cycle in cycles:
            logger.warning("A cycle lost its supervisor", extra={"cycle": cycle.id, "pid": owner.pid})
            newest = cycle
        ids = {cycle.id for cycle in cycles}
        _SETTLING.update(ids)
        try:
            await _settle_all(ladder, cycles, marks, owner)
        finally:
            _SETTLING.difference_update(ids)
    if newest is not None:
        await asyncio.to_thread(show_cooldowns, ladder, newest.id)


async def _settle_all(ladder: Ladder, cycles: Sequence[Cycle], marks: Collection[str], owner: Owner) -> None:
    for some in _several(cycles):
        try:
            await _settle_together(ladder, some, marks, owner)
        except StoreUnavailable:
            raise
        except StoreError:
            # One of them cannot be recorded like this, and must not hold up the others.
            for cycle in some:
                await _settle_alone(ladder, cycle, marks, owner)


def _several(cycles: Sequence[Cycle]) -> Iterator[Sequence[Cycle]]:
    return (cycles[start : start + _TOGETHER] for start in range(0, len(cycles), _TOGETHER))


async def _settle_together(ladder: Ladder, cycles: Sequence[Cycle], marks: Collection[str], owner: Owner) -> None:
    """Settle some lost cycles at a time, and let those wait in which something is left to do."""
    ids, patience = [cycle.id for cycle in cycles], ladder.store_patience_seconds
    chains = await insist(patience, ladder.store.chains_of_cycles, ids)
    if _stream_bytes(ladder, chains) > _MOST_BYTES:
        for cycle in cycles:
            await _settle_alone(ladder, cycle, marks, owner)
        return
    for session in (session for chain in chains for session in chain.sessions):
        if session.status in UNFINISHED:
            await end_processes(ladder, session, marks)
    settled = await insist(patience, _record_together, ladder, ids, owner)
    for chain in chains:
        for session in chain.sessions:
            # Also of a finished one: its supervisor may have died between the record and the file.
            discard_stream(ladder.settings.state.dir, session.id)
        discard_handoffs(ladder.settings.state.dir, chain.cycle.id)
    for chain, waits in settled:
        if waits is not None:
            ladder.watch(notice(waits))
        else:
            await _wait_or_finish(ladder, chain, owner)


def _stream_bytes(ladder: Ladder, chains: Sequence[Chain]) -> int:
    streams = (stream_path(ladder.settings.state.dir, session.id) for chain in chains for session in chain.sessions)
    return sum(stream.stat().st_size for stream in streams if stream.exists())


def _record_together(ladder: Ladder, ids: Sequence[int], owner: Owner) -> list[tuple[Chain, Finish | None]]:
    """Each of the cycles that still runs by its record as it is then, with what it waits for, if it does.

    May be done again: what was committed although the answer got lost is found as it is.
    """
    store = ladder.store
    lost = [chain for chain in store.chains_of_cycles(ids) if chain.cycle.status is CycleStatus.RUNNING]
    unfinished = {s.id: s for chain in lost for s in chain.sessions if s.status in UNFINISHED}
    if unfinished:
        calls = store.calls_of_sessions(unfinished)
        accounts = {record: account(ladder, session, calls[record]) for record, session in unfinished.items()}
        stored = store.event_counts(unfinished, STREAM_KINDS)
        unwritten: dict[int, list[NewEvent]] = defaultdict(list)
        for record, session in unfinished.items():
            unwritten[session.cycle_id] += accounts[record].recorder.unwritten(stored[record])
        store.append_to_all(unwritten)
        ended = store.finish_sessions({record: known.end for record, known in accounts.items()})
        unfinished |= {session.id: session for session in ended}
    settled = [replace(c, sessions=tuple(unfinished.get(s.id, s) for s in c.sessions)) for c in lost]
    waiting = {chain.cycle.id: _lost(chain.cycle, owner) for chain in settled if _goes_on(ladder, chain)}
    waits = close_all(ladder, waiting) if waiting else {}
    return [(chain, waits.get(chain.cycle.id)) for chain in settled]


async def _settle_alone(ladder: Ladder, cycle: Cycle, marks: Collection[str], owner: Owner) -> None:
    chain = await settle(ladder, cycle, marks)
    if chain.cycle.status is CycleStatus.RUNNING:
        await _wait_or_finish(ladder, chain, owner)


def _lost(cycle: Cycle, owner: Owner) -> Finish:
    return interrupted(cycle, f"The supervisor of cycle {cycle.id} (pid {owner.pid}) died in the middle of it.")


def _goes_on(ladder: Ladder, chain: Chain) -> bool:
    """Whether a settled cycle waits to be gone on with: most that were lost do, which needs no look around."""
    max_resumes = ladder.settings.continuity.max_resumes
    return chain.cycle.stop_asked_by is None and has_to_go_on(chain, max_resumes=max_resumes)


async def _wait_or_finish(ladder: Ladder, chain: Chain, owner: Owner) -> None:
    """Ask of a settled cycle what is next. What is left to do waits; a cycle with nothing left to do is over."""
    cycle, patience = chain.cycle, ladder.store_patience_seconds
    if cycle.stop_asked_by is not None:
        await finish(ladder, cycle, stopped(cycle.stop_asked_by))
        return
    waits = _lost(cycle, owner)
    if _goes_on(ladder, chain):
        await wait(ladder, cycle, waits)
        return
    request = for_cycle(_as_configured(ladder, cycle), cycle)
    policy = await insist(patience, policy_for, ladder, request, chain)
    around = await insist(patience, surroundings, ladder, request, chain)
    step = next_step(chain, policy, around, now=ladder.clock())
    await finish(ladder, cycle, waits if isinstance(step, RunTier) else step)


def _as_configured(ladder: Ladder, cycle: Cycle) -> CycleRequest:
    return CycleRequest(
        schedule=cycle.schedule,
        trigger=cycle.trigger,
        dry_run=cycle.dry_run,
        max_tier=ladder.settings.escalation.max_tier,
    )


def _take_over(ladder: Ladder, owner: Owner, left: Collection[int]) -> list[Cycle]:
    """The cycles of a lost owner that are ours from here on; none when another supervisor was faster."""
    if owner == this_process():
        return [cycle for cycle, whose in ladder.store.running_cycles() if whose == owner and cycle.id in left]
    return ladder.store.take_over(gone=owner, owner=this_process())
