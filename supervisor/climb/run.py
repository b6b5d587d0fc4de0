"""Do one session: record it, start its CLI, listen, record how it ended. Called from climb.cycle.

The order is the point: the record stands before the process does anything, the process has its whole tree ended before
the outcome is recorded, and the outcome is recorded before anyone asks what is next.
"""

import asyncio
import logging
import os
from dataclasses import replace

from supervisor.claude.process import Limits, Running, watch
from supervisor.climb.conclude import Departure, conclude
from supervisor.climb.files import discard_stream, stream_path
from supervisor.climb.insist import insist, or_find_it_done
from supervisor.climb.ladder import Ladder
from supervisor.climb.launch import Launched, approval_limit, launch, new_session_id
from supervisor.climb.recorder import Recorder
from supervisor.climb.spending import Spending, day_of
from supervisor.climb.stop import StopRequest
from supervisor.climb.warden import Regime, Warden
from supervisor.decide.budget import Budget
from supervisor.decide.cost import PriceOf
from supervisor.errors import ClaudeNotUsable
from supervisor.guard.server import GuardServer
from supervisor.model.cycle import Cycle, EventKind, NewEvent
from supervisor.model.events import StreamEvent
from supervisor.model.outcome import Ended, Failure
from supervisor.model.progress import TierEnded, TierStarted
from supervisor.model.session import CostBasis, Session, SessionStatus, UsageByModel
from supervisor.model.step import RunTier
from supervisor.store import NewSession, SessionEnd

logger = logging.getLogger(__name__)

# By this the processes of a run are found again. The session id will not do: a CLI may mint its own.
RUN_MARK = "run"


async def run_session(
    ladder: Ladder,
    cycle: Cycle,
    step: RunTier,
    *,
    prompt: str,
    parent: Session | None,
    warm: Launched | None,
    stop: StopRequest,
    limits: Budget,
) -> Session:
    """Run one tier to its end and return its finished record."""
    settings, store = ladder.settings, ladder.store
    tier = settings.tiers[step.tier - 1]
    session_id = warm.session_id if warm else new_session_id()
    patience = ladder.store_patience_seconds
    new = NewSession(
        cycle_id=cycle.id,
        tier=step.tier,
        model=tier.model,
        session_id=session_id if ladder.runtime.abilities.session_id else None,
        parent_session_id=step.continuity.parent,
        continuity=step.continuity.kind,
        reason=step.continuity.reason,
        work_dir=str(settings.claude.work_dir),
        runtime_id=ladder.runtime.id,
        resumed_from=step.continuity.resume_session_id,
        prompt_bytes=len(prompt.encode()),
        resumes=step.resumes,
        created_at=ladder.clock(),
    )
    session = await insist(patience, _create, ladder, new)
    if parent is not None and parent.status is SessionStatus.PAUSED:
        # Nobody goes on from it a second time.
        await insist(patience, _leave, ladder, parent)
    told = NewEvent(
        kind=EventKind.PROMPT,
        at=ladder.clock(),
        text=settings.masker().text(prompt),
        session_id=session.id,
        data={RUN_MARK: session_id},
    )
    await insist(patience, store.append_events, cycle.id, [told])
    ladder.watch(TierStarted(session=session))
    recorder = Recorder(
        store,
        session,
        price=price_table(ladder),
        masker=settings.masker(),
        watch=ladder.watch,
        clock=ladder.clock,
        patience_seconds=patience,
    )
    try:
        launched = warm or await launch(
            settings,
            ladder.runtime,
            tier=step.tier,
            session_id=session_id,
            resume_session_id=step.continuity.resume_session_id,
            dry_run=cycle.dry_run,
        )
    except (ClaudeNotUsable, OSError) as error:
        end = _never_started(ladder, str(error))
    else:
        end = await _attend(ladder, session, launched, recorder, prompt, parent, stop, limits)
    finished = await recorder.finish(end)
    discard_stream(settings.state.dir, session.id)
    logger.info(
        "Tier finished",
        extra={
            "cycle": cycle.id,
            "session": finished.id,
            "tier": finished.tier,
            "status": finished.status.value,
            "failure": finished.failure.value if finished.failure else None,
            "cost_usd": finished.cost_usd,
            "context_tokens": finished.context_tokens,
            "context_window": finished.context_window,
        },
    )
    ladder.watch(TierEnded(session=finished))
    return finished


async def _attend(
    ladder: Ladder,
    session: Session,
    launched: Launched,
    recorder: Recorder,
    prompt: str,
    parent: Session | None,
    stop: StopRequest,
    limits: Budget,
) -> SessionEnd:
    settings, running = ladder.settings, launched.running
    tier = settings.tiers[session.tier - 1]
    halt = stop.for_run()
    writing: asyncio.Task[None] | None = None
    preparing: asyncio.Task[None] | None = None
    try:
        warden = await insist(ladder.store_patience_seconds, _warden, ladder, session, launched, recorder, halt, limits)

        def on_event(event: StreamEvent) -> None:
            recorder.on_event(event)
            warden.on_event(event)

        await insist(ladder.store_patience_seconds, _activate, ladder, session, running)
        writing = asyncio.create_task(recorder.keep_writing())
        # Whatever ended the writing, patience or a fault of ours: a run that nobody records must not go on.
        writing.add_done_callback(lambda task: None if task.cancelled() else stop.ask(Ended.STORE_UNAVAILABLE))
        preparing = asyncio.create_task(asyncio.to_thread(warden.prepare))
        async with GuardServer(launched.post, answer=warden.answer, ended=warden.ended, bounds=launched.bounds):
            gone = await watch(
                running,
                prompt=prompt,
                limits=Limits(
                    first_output_seconds=settings.claude.first_output_seconds,
                    # A CLI whose hook waits for an answer says nothing meanwhile.
                    silence_seconds=settings.claude.silence_seconds + launched.bounds.watchdog_seconds,
                    wall_clock_seconds=tier.timeout_minutes * 60,
                    end_grace_seconds=settings.claude.end_grace_seconds,
                    overload_wait_seconds=settings.claude.overload_wait_seconds,
                ),
                on_event=on_event,
                stop=halt.event,
                copy_to=stream_path(settings.state.dir, session.id),
            )
    finally:
        await launched.end(settings.claude.end_grace_seconds)
        if preparing is not None:
            await asyncio.gather(preparing, return_exceptions=True)
        if writing is not None:
            writing.cancel()
            [problem] = await asyncio.gather(writing, return_exceptions=True)
            if isinstance(problem, Exception):
                logger.error("The session could not be recorded", extra={"session": session.id}, exc_info=problem)
    ended = halt.ended if gone.ended is Ended.INTERRUPTED else gone.ended
    end = conclude(
        session,
        recorder.gatherer.transcript(),
        Departure(
            ended=Ended.GUARD_BYPASSED if warden.breached else ended,
            exit_code=gone.exit_code,
            stderr=gone.stderr_tail,
            last_retry=gone.last_retry,
        ),
        inherited=inherited_usage(session, parent),
        version=ladder.runtime.version,
        price=price_table(ladder),
        window_of=settings.models.window,
        last_message_at=recorder.last_message_at,
        now=ladder.clock(),
    )
    await insist(ladder.store_patience_seconds, warden.settle)
    return replace(end, tool_calls=await insist(ladder.store_patience_seconds, ladder.store.call_counts, session.id))


def _warden(
    ladder: Ladder,
    session: Session,
    launched: Launched,
    recorder: Recorder,
    stop: StopRequest,
    limits: Budget,
) -> Warden:
    settings, store = ladder.settings, ladder.store
    tier = settings.tiers[session.tier - 1]
    day = day_of(ladder.clock())
    before = Budget(cycle_usd=store.spent_in_cycle(session.cycle_id), day_usd=store.spent_since(day))
    return Warden(
        ladder,
        session,
        Regime(
            own_paths=(*settings.own_paths(), str(launched.post.directory)),
            own_pids=frozenset({os.getpid(), launched.running.pid}),
            dry_run=launched.dry_run,
            waits=not ladder.runtime.abilities.defer,
            approval_limit=approval_limit(settings, ladder.runtime, session.tier),
        ),
        recorder=recorder,
        spending=Spending(
            store=store, clock=ladder.clock, limits=replace(limits, run_usd=tier.max_budget_usd), before=before, day=day
        ),
        stop=stop,
    )


def _leave(ladder: Ladder, paused: Session) -> Session:
    return or_find_it_done(
        lambda: ladder.store.leave(paused.id, SessionStatus.COMPLETED, why="gone on", now=ladder.clock()),
        find=lambda: ladder.store.session(paused.id),
        is_ours=lambda found: found.status is SessionStatus.COMPLETED,
    )


def _create(ladder: Ladder, new: NewSession) -> Session:
    # All sessions before are over, so an unfinished one is this one: the store made it, but could not say so any more.
    begun = ladder.store.unfinished_sessions(new.cycle_id)
    return begun[-1] if begun else ladder.store.create_session(new)


def _activate(ladder: Ladder, session: Session, running: Running) -> Session:
    return or_find_it_done(
        lambda: ladder.store.activate_session(
            session.id, pid=running.pid, pid_started=running.pid_started, now=ladder.clock()
        ),
        find=lambda: ladder.store.session(session.id),
        is_ours=lambda found: found.status is SessionStatus.ACTIVE and found.pid == running.pid,
    )


def inherited_usage(session: Session, parent: Session | None) -> UsageByModel | None:
    """The account a resumed run may have started from: empty when fresh, ``None`` when the parent never gave one."""
    if session.resumed_from is None or parent is None:
        return {}
    return parent.reported_usage or None


def price_table(ladder: Ladder) -> PriceOf:
    return ladder.settings.models.cost


def _never_started(ladder: Ladder, why: str) -> SessionEnd:
    return SessionEnd(
        status=SessionStatus.FAILED,
        failure=Failure.SPAWN_FAILED,
        detail=f"The CLI could not be started: {why}",
        cost_usd=0.0,
        cost_basis=CostBasis.REPORTED,
        ended_at=ladder.clock(),
    )
