"""Complete the record of a run whose supervisor died. Does I/O. Called from climb.recovery and climb.cycle.

The CLI is ended with its whole tree, and the record catches up from the raw stream that the CLI had written.
"""

import datetime as dt
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from psutil import pid_exists

from supervisor.claude.process import end_tree
from supervisor.climb.conclude import Departure, conclude
from supervisor.climb.entries import ending
from supervisor.climb.files import discard_handoffs, discard_stream, stream_path
from supervisor.climb.insist import insist
from supervisor.climb.ladder import Ladder
from supervisor.climb.recorder import Recorder
from supervisor.climb.replay import replay_stream, replay_transcript
from supervisor.climb.run import RUN_MARK, inherited_usage, price_table
from supervisor.decide.breach import ran_unasked
from supervisor.errors import Conflict, StoreError, StoreUnavailable
from supervisor.model.cycle import Chain, Cycle, EventKind
from supervisor.model.events import StreamEvent, ToolResult
from supervisor.model.guarding import RecordedCall
from supervisor.model.outcome import Ended, Failure
from supervisor.model.permission import Decision, Verdict
from supervisor.model.session import UNFINISHED, Session, SessionStatus, ToolCalls
from supervisor.store import SessionEnd

logger = logging.getLogger(__name__)

# No process has this pid, so only the mark is looked for.
_NO_PID = 0


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


async def end_processes(ladder: Ladder, session: Session, marks: Collection[str] | None) -> None:
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
    await end_processes(ladder, session, marks)
    calls = await insist(ladder.store_patience_seconds, ladder.store.calls, session.id)
    known = await insist(ladder.store_patience_seconds, account, ladder, session, calls)
    try:
        return await known.recorder.finish(known.end)
    except (StoreUnavailable, Conflict):
        raise
    except StoreError as error:
        # What cannot be stored now never can; without an end, the schedule would be taken for ever.
        logger.exception("How a lost run ended cannot be stored", extra={"session": session.id})
        bare = await insist(ladder.store_patience_seconds, _as_recorded, ladder, session, error.message)
        return await bare.recorder.finish(bare.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """All that is known of a run, to be recorded. ``end`` has no secrets in it."""

    recorder: Recorder
    end: SessionEnd


def account(ladder: Ladder, session: Session, calls: Sequence[RecordedCall]) -> Account:
    """Put together what is known of a run whose supervisor died. Reads files and the store; may be done again.

    ``calls`` are those of the run that the guard has answered. Of a run whose files cannot be read that is what was
    recorded while it ran: it must not keep every other cycle from being settled, and from beginning, for ever.
    """
    try:
        return _caught_up(ladder, session, calls)
    except StoreError:
        raise
    except Exception as error:
        logger.exception("What a lost run said cannot be read", extra={"session": session.id})
        return _as_recorded(ladder, session, f"{type(error).__name__}: {error}")


def _caught_up(ladder: Ladder, session: Session, calls: Sequence[RecordedCall]) -> Account:
    store = ladder.store
    stream_file = stream_path(ladder.settings.state.dir, session.id)
    masker = ladder.settings.masker()
    recorder = _recorder(ladder, session, _written_at(stream_file) or ladder.clock())
    heard: list[ToolResult] = []

    def on_event(event: StreamEvent) -> None:
        recorder.on_event(event)
        if isinstance(event, ToolResult):
            heard.append(event)

    told = replay_stream(stream_file, on_event)
    # Not what only the transcript tells: a call that we have just ended ourselves has a result there too.
    results = dict(recorder.gatherer.results)
    replay_transcript(session, ladder.settings.agent_env, told, recorder.on_event)
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
        window_of=ladder.settings.models.window,
        last_message_at=recorder.last_message_at or session.last_message_at,
        now=ladder.clock(),
    )
    end = replace(end, tool_calls=store.call_counts(session.id) if calls else ToolCalls())
    return Account(
        recorder=recorder, end=ending(end if transcript.messages >= session.messages else _without_figures(end), masker)
    )


def _as_recorded(ladder: Ladder, session: Session, why: str) -> Account:
    """The end of a run of which only that is known which was recorded while it ran."""
    now = ladder.clock()
    end = SessionEnd(
        status=SessionStatus.INTERRUPTED,
        failure=Failure.INTERRUPTED,
        detail=f"The run was interrupted, and what it said last cannot be kept: {why.rstrip('.')}. Its session is.",
        tool_calls=ladder.store.call_counts(session.id),
        ended_at=now,
    )
    return Account(recorder=_recorder(ladder, session, now), end=ending(end, ladder.settings.masker()))


def _recorder(ladder: Ladder, session: Session, spoken_at: dt.datetime) -> Recorder:
    return Recorder(
        ladder.store,
        session,
        price=price_table(ladder),
        masker=ladder.settings.masker(),
        watch=lambda _: None,
        clock=lambda: spoken_at,
        patience_seconds=ladder.store_patience_seconds,
        catching_up=True,
    )


def _bypassed(calls: Sequence[RecordedCall], results: Sequence[ToolResult]) -> bool:
    """Whether a call ran that the guard had not let through, which the supervisor died too early to notice."""
    answers = {c.tool_use_id: Decision(verdict=c.verdict, rule=c.rule, sentence=c.sentence) for c in calls}
    # Perhaps it was being ended when its supervisor died.
    return any(ran_unasked(result, answers.get(result.tool_use_id), ending=True) is not None for result in results)


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
