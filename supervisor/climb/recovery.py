"""Go on with what a supervisor left behind that died. Does I/O. Called at the start of every cycle.

A running cycle names the process that owns it. When that process is gone, whoever notices takes the cycle over by
compare-and-set, so that only one does. The CLI it started is ended with its whole tree, the records catch up from the
raw stream the CLI had written, and then the cycle is what its records say: finished, or waiting to be gone on with by
the next cycle of its schedule.
"""

import asyncio
import datetime as dt
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from supervisor.claude.process import end_tree
from supervisor.climb.begin import for_cycle
from supervisor.climb.close import finish, interrupted, stopped
from supervisor.climb.conclude import Departure, conclude
from supervisor.climb.files import discard_handoffs, discard_stream, stream_path
from supervisor.climb.insist import insist
from supervisor.climb.ladder import CycleRequest, Ladder
from supervisor.climb.launch import guard_places
from supervisor.climb.outlook import policy_for, surroundings
from supervisor.climb.owner import is_gone, this_process
from supervisor.climb.recorder import Recorder
from supervisor.climb.replay import replay_stream, replay_transcript
from supervisor.climb.run import RUN_MARK, inherited_usage, price_table
from supervisor.decide.next_step import next_step
from supervisor.errors import Conflict
from supervisor.guard.post import sweep_posts
from supervisor.model.cycle import Cycle, EventKind
from supervisor.model.outcome import Ended
from supervisor.model.permission import Verdict
from supervisor.model.session import UNFINISHED, Session
from supervisor.model.step import RunTier
from supervisor.store import Owner, SessionEnd

logger = logging.getLogger(__name__)

# No process has this pid, so only the mark is looked for.
_NO_PID = 0


async def recover(ladder: Ladder) -> None:
    """Settle every running cycle whose owner is gone, and clear away the posts of runs that are."""
    await asyncio.to_thread(sweep_posts, guard_places(ladder.settings))
    for cycle, owner in await asyncio.to_thread(_lost_cycles, ladder):
        try:
            await asyncio.to_thread(ladder.store.take_over, cycle.id, gone=owner, owner=this_process())
        except Conflict:
            logger.info("The cycle was taken over by another supervisor", extra={"cycle": cycle.id})
            continue
        logger.warning("A cycle lost its supervisor", extra={"cycle": cycle.id, "pid": owner.pid})
        await settle(ladder, cycle)
        await _wait_or_finish(ladder, cycle, owner)


async def settle(ladder: Ladder, cycle: Cycle) -> None:
    """End what still runs of a cycle that nobody carries on, and complete its records."""
    chain = await insist(ladder.store_patience_seconds, ladder.store.chain, cycle.id)
    for session in chain.sessions:
        if session.status in UNFINISHED:
            await _settle_session(ladder, session)
        # Also of a finished one: its supervisor may have died between the record and the file.
        discard_stream(ladder.settings.state.dir, session.id)
    discard_handoffs(ladder.settings.state.dir, cycle.id)


async def _wait_or_finish(ladder: Ladder, cycle: Cycle, owner: Owner) -> None:
    """Ask of a settled cycle what is next. What is left to do waits; a cycle with nothing left to do is over."""
    patience = ladder.store_patience_seconds
    if cycle.stop_asked_by is not None:
        await finish(ladder, cycle, stopped(cycle.stop_asked_by))
        return
    chain = await insist(patience, ladder.store.chain, cycle.id)
    request = for_cycle(_as_configured(ladder, cycle), cycle)
    policy = await insist(patience, policy_for, ladder, request, chain)
    around = await insist(patience, surroundings, ladder, request, chain)
    step = next_step(chain, policy, around, now=ladder.clock())
    if isinstance(step, RunTier):
        step = interrupted(cycle, f"The supervisor of cycle {cycle.id} (pid {owner.pid}) died in the middle of it.")
    await finish(ladder, cycle, step)


def _as_configured(ladder: Ladder, cycle: Cycle) -> CycleRequest:
    return CycleRequest(
        schedule=cycle.schedule,
        trigger=cycle.trigger,
        dry_run=cycle.dry_run,
        max_tier=ladder.settings.escalation.max_tier,
    )


def _lost_cycles(ladder: Ladder) -> list[tuple[Cycle, Owner]]:
    return [(cycle, owner) for cycle, owner in ladder.store.running_cycles() if is_gone(owner)]


async def _settle_session(ladder: Ladder, session: Session) -> None:
    store, patience = ladder.store, ladder.store_patience_seconds
    mark = await insist(patience, _mark, ladder, session)
    # Its pid may not be recorded yet, and its tools may have left its tree: the mark finds all of them.
    await end_tree(
        session.pid or _NO_PID,
        session.pid_started or 0.0,
        marker=mark,
        grace_seconds=ladder.settings.claude.end_grace_seconds,
    )
    stream_file = stream_path(ladder.settings.state.dir, session.id)
    spoken_at = await asyncio.to_thread(_written_at, stream_file) or ladder.clock()
    recorder = Recorder(
        store,
        session,
        price=price_table(ladder),
        masker=ladder.settings.masker(),
        watch=lambda _: None,
        clock=lambda: spoken_at,
        patience_seconds=patience,
        catching_up=True,
    )
    told = await asyncio.to_thread(replay_stream, stream_file, recorder.on_event)
    # Not what only the transcript tells: a call that we have just ended ourselves has a result there too.
    results = dict(recorder.gatherer.results)
    await asyncio.to_thread(replay_transcript, session, ladder.settings.agent_env, told, recorder.on_event)
    parent_id = session.parent_session_id
    parent = None if parent_id is None else await insist(patience, store.session, parent_id)
    transcript = recorder.gatherer.transcript()
    await insist(patience, _end_calls, ladder, session, results)
    end = conclude(
        session,
        transcript,
        Departure(ended=Ended.INTERRUPTED, exit_code=None),
        inherited=inherited_usage(session, parent),
        version=ladder.runtime.version,
        price=price_table(ladder),
        configured_window=ladder.settings.models.window(session.model),
        last_message_at=recorder.last_message_at or session.last_message_at,
        now=ladder.clock(),
    )
    end = replace(end, tool_calls=await insist(patience, store.call_counts, session.id))
    await recorder.finish(end if transcript.messages >= session.messages else _without_figures(end))


def _end_calls(ladder: Ladder, session: Session, results: Mapping[str, bool]) -> None:
    """Keep how calls ended whose result is in the stream; how the others ended stays unknown."""
    for call in ladder.store.calls(session.id):
        if call.tool_use_id in results and call.verdict is Verdict.ALLOW and call.outcome is None:
            failed = results[call.tool_use_id]
            ladder.store.end_call(session=session.id, tool_use_id=call.tool_use_id, failed=failed, now=ladder.clock())


def _mark(ladder: Ladder, session: Session) -> str | None:
    """The mark that the processes of a run carry, recorded with its prompt."""
    for event in ladder.store.events(session_id=session.id, kinds=(EventKind.PROMPT,)):
        mark = event.data.get(RUN_MARK)
        if isinstance(mark, str):
            return mark
    return session.session_id


def _without_figures(end: SessionEnd) -> SessionEnd:
    """The end of a run whose stream was lost, on a full disk perhaps: what was recorded live says more."""
    return replace(
        end,
        session_id=None,
        cost_usd=None,
        tokens=None,
        context_tokens=None,
        first_call_tokens=None,
        messages=None,
        tool_calls=None,
        tools_executed=None,
        unknown_lines=None,
    )


def _written_at(stream_file: Path) -> dt.datetime | None:
    """When the stream was last written to: the closest that is known to when its events came."""
    try:
        return dt.datetime.fromtimestamp(stream_file.stat().st_mtime, dt.UTC)
    except FileNotFoundError:
        return None
