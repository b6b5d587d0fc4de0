"""Go on with what a supervisor left behind that died. Does I/O. Called at the start of every cycle.

A running cycle names the process that owns it. When that process is gone, whoever notices takes the cycle over by
compare-and-set, so that only one does. The CLI it started is ended with its whole tree, the records catch up from the
raw stream the CLI had written, and then the cycle is what its records say: finished, or waiting to be gone on with by
the next cycle of its schedule.
"""

import asyncio
import datetime as dt
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from psutil import pid_exists

from supervisor.claude.process import end_tree
from supervisor.claude.tree import marks_alive
from supervisor.climb.begin import for_cycle
from supervisor.climb.close import finish, interrupted, stopped, wait
from supervisor.climb.conclude import Departure, conclude
from supervisor.climb.files import discard_handoffs, discard_stream, stream_path
from supervisor.climb.health import show_cooldowns
from supervisor.climb.insist import insist
from supervisor.climb.ladder import CycleRequest, Ladder
from supervisor.climb.launch import guard_places
from supervisor.climb.outlook import policy_for, surroundings
from supervisor.climb.owner import is_gone, this_process
from supervisor.climb.recorder import Recorder
from supervisor.climb.replay import replay_stream, replay_transcript
from supervisor.climb.run import RUN_MARK, inherited_usage, price_table
from supervisor.decide.breach import ran_unasked
from supervisor.decide.cut_off import has_to_go_on
from supervisor.decide.next_step import next_step
from supervisor.guard.post import sweep_posts
from supervisor.model.cycle import Chain, Cycle, EventKind
from supervisor.model.events import StreamEvent, ToolResult
from supervisor.model.guarding import RecordedCall
from supervisor.model.outcome import Ended
from supervisor.model.permission import Decision, Verdict
from supervisor.model.session import UNFINISHED, Session, ToolCalls
from supervisor.model.step import RunTier
from supervisor.store import Owner, SessionEnd

logger = logging.getLogger(__name__)

# No process has this pid, so only the mark is looked for.
_NO_PID = 0


async def recover(ladder: Ladder, *, own: Collection[int] | None = None) -> None:
    """Settle every running cycle whose owner is gone, and clear away the posts of runs that are.

    ``own`` are the cycles that this process runs, if it knows: any other that names it as owner is lost, too.
    """
    await asyncio.to_thread(sweep_posts, guard_places(ladder.settings))
    lost = await asyncio.to_thread(_lost_cycles, ladder, own)
    if not lost:
        return
    # One look for all of them: the dead start nothing any more.
    marks = await asyncio.to_thread(marks_alive)
    for owner in {owner for _, owner in lost}:
        for cycle in await asyncio.to_thread(_take_over, ladder, owner, own):
            logger.warning("A cycle lost its supervisor", extra={"cycle": cycle.id, "pid": owner.pid})
            await _wait_or_finish(ladder, await settle(ladder, cycle, marks), owner)
    await asyncio.to_thread(show_cooldowns, ladder, lost[-1][0].id)


async def settle(ladder: Ladder, cycle: Cycle, marks: Collection[str] | None = None) -> Chain:
    """End what still runs of a cycle that nobody carries on, and complete its records. Returns what it is then.

    ``marks`` are those of all processes that live, where somebody has looked already.
    """
    chain = await insist(ladder.store_patience_seconds, ladder.store.chain, cycle.id)
    settled = []
    for session in chain.sessions:
        is_over = session.status not in UNFINISHED
        settled.append(session if is_over else await _settle_session(ladder, session, marks))
        # Also of a finished one: its supervisor may have died between the record and the file.
        discard_stream(ladder.settings.state.dir, session.id)
    discard_handoffs(ladder.settings.state.dir, cycle.id)
    return replace(chain, sessions=tuple(settled))


async def _wait_or_finish(ladder: Ladder, chain: Chain, owner: Owner) -> None:
    """Ask of a settled cycle what is next. What is left to do waits; a cycle with nothing left to do is over."""
    cycle, patience = chain.cycle, ladder.store_patience_seconds
    if cycle.stop_asked_by is not None:
        await finish(ladder, cycle, stopped(cycle.stop_asked_by))
        return
    waits = interrupted(cycle, f"The supervisor of cycle {cycle.id} (pid {owner.pid}) died in the middle of it.")
    # Most that were lost are like this, and need no look around.
    if has_to_go_on(chain, max_resumes=ladder.settings.continuity.max_resumes):
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


def _lost_cycles(ladder: Ladder, own: Collection[int] | None) -> list[tuple[Cycle, Owner]]:
    def is_lost(cycle: Cycle, owner: Owner) -> bool:
        return is_gone(owner) or (own is not None and owner == this_process() and cycle.id not in own)

    return [(cycle, owner) for cycle, owner in ladder.store.running_cycles() if is_lost(cycle, owner)]


def _take_over(ladder: Ladder, owner: Owner, own: Collection[int] | None) -> list[Cycle]:
    """The cycles of a lost owner that are ours from here on; none when another supervisor was faster."""
    if owner == this_process():
        return [cycle for cycle, whose in _lost_cycles(ladder, own) if whose == owner]
    return ladder.store.take_over(gone=owner, owner=this_process())


async def _end_processes(ladder: Ladder, session: Session, marks: Collection[str] | None) -> None:
    """End what a run left. Its pid may not be recorded, and its tools may have left its tree: the mark finds them."""
    is_there = pid_exists(session.pid or _NO_PID)
    if marks is not None and not marks and not is_there:
        return
    mark = await insist(ladder.store_patience_seconds, _mark, ladder, session)
    if marks is not None and mark not in marks and not is_there:
        return
    await end_tree(
        session.pid or _NO_PID,
        session.pid_started or 0.0,
        marker=mark,
        grace_seconds=ladder.settings.claude.end_grace_seconds,
    )


async def _settle_session(ladder: Ladder, session: Session, marks: Collection[str] | None) -> Session:
    await _end_processes(ladder, session, marks)
    recorder, end = await insist(ladder.store_patience_seconds, _account, ladder, session)
    return await recorder.finish(end)


def _account(ladder: Ladder, session: Session) -> tuple[Recorder, SessionEnd]:
    """Put together what is known of a run whose supervisor died. Reads files and the store; may be done again."""
    store = ladder.store
    stream_file = stream_path(ladder.settings.state.dir, session.id)
    spoken_at = _written_at(stream_file) or ladder.clock()
    recorder = Recorder(
        store,
        session,
        price=price_table(ladder),
        masker=ladder.settings.masker(),
        watch=lambda _: None,
        clock=lambda: spoken_at,
        patience_seconds=ladder.store_patience_seconds,
        catching_up=True,
    )
    heard: list[ToolResult] = []

    def on_event(event: StreamEvent) -> None:
        recorder.on_event(event)
        if isinstance(event, ToolResult):
            heard.append(event)

    told = replay_stream(stream_file, on_event)
    # Not what only the transcript tells: a call that we have just ended ourselves has a result there too.
    results = dict(recorder.gatherer.results)
    replay_transcript(session, ladder.settings.agent_env, told, recorder.on_event)
    calls = store.calls(session.id)
    bypassed = _bypassed(calls, [result for result in heard if result.tool_use_id in results])
    _end_calls(ladder, calls, results)
    transcript = recorder.gatherer.transcript()
    parent = None if session.parent_session_id is None else store.session(session.parent_session_id)
    end = conclude(
        session,
        transcript,
        Departure(ended=Ended.GUARD_BYPASSED if bypassed else Ended.INTERRUPTED, exit_code=None),
        inherited=inherited_usage(session, parent),
        version=ladder.runtime.version,
        price=price_table(ladder),
        configured_window=ladder.settings.models.window(session.model),
        last_message_at=recorder.last_message_at or session.last_message_at,
        now=ladder.clock(),
    )
    end = replace(end, tool_calls=store.call_counts(session.id) if calls else ToolCalls())
    return recorder, end if transcript.messages >= session.messages else _without_figures(end)


def _bypassed(calls: Sequence[RecordedCall], results: Sequence[ToolResult]) -> bool:
    """Whether a call ran that the guard had not let through, which the supervisor died too early to notice."""
    answers = {c.tool_use_id: Decision(verdict=c.verdict, rule=c.rule, sentence=c.sentence) for c in calls}
    return any(ran_unasked(result, answers.get(result.tool_use_id)) is not None for result in results)


def _end_calls(ladder: Ladder, calls: Sequence[RecordedCall], results: Mapping[str, bool]) -> None:
    """Keep how calls ended whose result is in the stream; how the others ended stays unknown."""
    for call in calls:
        if call.tool_use_id in results and call.verdict is Verdict.ALLOW and call.outcome is None:
            failed = results[call.tool_use_id]
            ladder.store.end_call(
                session=call.session_id, tool_use_id=call.tool_use_id, failed=failed, now=ladder.clock()
            )


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
