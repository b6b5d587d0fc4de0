"""The loop: ask what is next, do it, ask again, until the answer is to finish. Called from cli and rehearsal.

Each transition is recorded before it is acted on, so a crash at any point leaves a chain that the same question can be
asked of.
"""

import asyncio
import datetime as dt
import logging
from dataclasses import replace

from supervisor import handoff as handoffs
from supervisor.climb.answered import for_people, for_the_model, lost_answer
from supervisor.climb.begin import begin, for_cycle
from supervisor.climb.brief import brief
from supervisor.climb.close import close, finish, interrupted, notice, stopped
from supervisor.climb.files import discard_handoffs, handoff_dir
from supervisor.climb.health import in_words, show_cooldowns
from supervisor.climb.heartbeat import beating
from supervisor.climb.incident import delta
from supervisor.climb.insist import insist
from supervisor.climb.ladder import CycleRequest, Ladder, unfailing
from supervisor.climb.launch import Launched
from supervisor.climb.outlook import policy_for, surroundings
from supervisor.climb.owner import this_process
from supervisor.climb.recovery import recover
from supervisor.climb.run import run_session
from supervisor.climb.settle import settle
from supervisor.climb.stop import StopRequest
from supervisor.decide.next_step import next_step
from supervisor.errors import HandoffInvalid, StoreError
from supervisor.model.cycle import Chain, Cycle, CycleStatus, EventKind, NewEvent
from supervisor.model.outcome import Ended
from supervisor.model.permission import Verdict
from supervisor.model.progress import CycleEnded, CycleStarted, Notice, TierDecided
from supervisor.model.report import Level
from supervisor.model.session import ContinuityKind, Reason, Session, SessionStatus
from supervisor.model.step import Finish, RunTier, Step
from supervisor.prompts import Delta

logger = logging.getLogger(__name__)

HANDOFF_INVALID = "handoff_invalid"
SUPERVISOR_ERROR = "supervisor_error"
# So many records of a line are handed on; what is further up has been superseded by what came after it.
_LINE = 12
_CALL_LENGTH = 300


async def run_cycle(
    ladder: Ladder, request: CycleRequest, *, warm: Launched | None = None, stop: StopRequest | None = None
) -> Chain:
    """One cycle from its first tier to its end. ``warm`` is a first CLI that was booted ahead."""
    stop = stop or StopRequest()
    ladder = replace(ladder, watch=unfailing(ladder.watch))
    try:
        await recover(ladder)
        asked_at = ladder.clock()
        cycle = await begin(ladder, request)
        request = for_cycle(request, cycle)
        if cycle.status is CycleStatus.SKIPPED:
            skipped = Chain(cycle=cycle, sessions=())
            ladder.watch(CycleEnded(chain=skipped, finish=_as_finish(cycle)))
            return skipped
        ladder.watch(CycleStarted(cycle=cycle, goes_on=cycle.started_at < asked_at))
        try:
            async with beating(ladder, cycle, stop):
                return await _climb(ladder, request, cycle, warm, stop)
        except BaseException as error:
            if stop.ended is not Ended.DISOWNED:
                await _break_off(ladder, cycle, error)
            raise
    finally:
        if warm is not None:
            await warm.end(ladder.settings.claude.end_grace_seconds)


async def _climb(
    ladder: Ladder, request: CycleRequest, cycle: Cycle, warm: Launched | None, stop: StopRequest
) -> Chain:
    store, patience = ladder.store, ladder.store_patience_seconds
    policy = await insist(patience, policy_for, ladder, request, await insist(patience, store.chain, cycle.id))
    while True:
        # Who was held up for long may find its cycle in other hands: then all that follows is theirs to do.
        await insist(patience, store.owned_cycle, cycle.id, owner=this_process())
        chain = await insist(patience, store.chain, cycle.id)
        around = await insist(patience, surroundings, ladder, request, chain)
        now = ladder.clock()
        step = _heeding(stop, chain.cycle, next_step(chain, policy, around, now=now))
        if isinstance(step, Finish):
            return await finish(ladder, cycle, step)
        await insist(patience, store.append_events, cycle.id, [_decision(step, now)])
        _log_decision(cycle, step)
        ladder.watch(TierDecided(step=step, model=ladder.settings.tiers[step.tier - 1].model))
        try:
            cooling = in_words(await insist(patience, show_cooldowns, ladder, cycle.id))
            parent = await insist(patience, _record, ladder, step.continuity.parent)
            unfinished = await insist(patience, _unfinished, ladder, parent)
            asked = await insist(patience, lost_answer, ladder, step, parent)
            if (untold := for_people(asked, step)) is not None:
                told = NewEvent(kind=EventKind.NOTICE, at=now, level=Level.WARNING, text=untold)
                await insist(patience, store.append_events, cycle.id, [told])
                ladder.watch(Notice(text=untold))
            try:
                text = await insist(patience, _hand_off, ladder, cycle, step, cooling, now)
            except (HandoffInvalid, OSError) as error:
                return await finish(ladder, cycle, _without_context(step, str(error)))
            prompt = brief(
                ladder,
                request,
                step,
                handoff=text,
                cooling=cooling,
                unfinished=unfinished,
                waited=for_the_model(asked),
                same_tier=parent is not None and parent.tier == step.tier,
                since=await insist(patience, _since, ladder, step, parent),
            )
            usable = warm if warm is not None and _fits(warm, step, cycle) else None
            if warm is not None and usable is None:
                # It was told nothing, so it has nothing to tidy up.
                await warm.end(0)
            await run_session(
                ladder, cycle, step, prompt=prompt, parent=parent, warm=usable, stop=stop, limits=policy.budget
            )
        finally:
            discard_handoffs(ladder.settings.state.dir, cycle.id)
        warm = None


def _heeding(stop: StopRequest, cycle: Cycle, step: Step) -> Step:
    """The step, unless somebody wishes that the cycle ends. Asked of the record too: the next look may be too late."""
    if isinstance(step, Finish) and step.status is not CycleStatus.PAUSED:
        return step
    if cycle.stop_asked_by is not None:
        # Nor does it wait for anything any more.
        return stopped(cycle.stop_asked_by)
    return _interrupted(cycle, stop) if isinstance(step, RunTier) and stop.event.is_set() else step


def _interrupted(cycle: Cycle, stop: StopRequest) -> Finish:
    if stop.ended is Ended.STORE_UNAVAILABLE:
        return interrupted(cycle, "No further tier was started, because the records could no longer be written.")
    return interrupted(cycle, "The cycle was interrupted.")


def _record(ladder: Ladder, record: int | None) -> Session | None:
    return None if record is None else ladder.store.session(record)


def _unfinished(ladder: Ladder, parent: Session | None) -> list[str]:
    """The calls of a run that was cut off of which nobody knows how they ended."""
    # By its failure: one that was paused counts as completed as soon as another has gone on from it, or was about to.
    if parent is None or (parent.status is SessionStatus.COMPLETED and parent.failure is None):
        return []
    calls = ladder.store.calls(parent.id)
    return [f"{c.tool}: {_one_line(c.text)}" for c in calls if c.verdict is Verdict.ALLOW and c.outcome is None]


def _since(ladder: Ladder, step: RunTier, parent: Session | None) -> Delta | None:
    """What became of the incident that this run meets again."""
    if step.continuity.reason is not Reason.SAME_INCIDENT or parent is None:
        return None
    incident = ladder.store.cycle(parent.cycle_id).incident
    return None if incident is None else delta(ladder, ladder.store.incident(incident), parent)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _CALL_LENGTH else line[:_CALL_LENGTH] + "…"


async def _break_off(ladder: Ladder, cycle: Cycle, error: BaseException) -> None:
    """Settle a cycle that cannot go on, as far as the store lets us; what it refuses, the next cycle settles."""
    step = interrupted(cycle, f"Cycle {cycle.id} was broken off.")
    if isinstance(error, Exception):
        detail = f"Cycle {cycle.id} was broken off by an error: {str(error) or type(error).__name__}"
        step = Finish(status=CycleStatus.FAILED, reason=SUPERVISOR_ERROR, detail=detail, tell=True)
    try:
        # What had to wait for the store has waited already.
        hasty = replace(ladder, store_patience_seconds=0.0)
        await asyncio.to_thread(ladder.store.owned_cycle, cycle.id, owner=this_process())
        await settle(hasty, cycle)
        ladder.watch(notice(await close(hasty, cycle, step)))
    except StoreError as problem:
        logger.warning("The cycle is left to whoever settles it", extra={"why": problem.message})


def _fits(warm: Launched, step: RunTier, cycle: Cycle) -> bool:
    """Whether a CLI that was booted for a new conversation can do this: what is handed off stands in the prompt."""
    is_new = step.continuity.kind is not ContinuityKind.RESUME
    return is_new and warm.tier == step.tier and warm.dry_run == cycle.dry_run


def _hand_off(ladder: Ladder, cycle: Cycle, step: RunTier, cooling: list[str], now: dt.datetime) -> str:
    """Write the handoff a run needs and return it for its prompt; empty when it resumes or starts from nothing."""
    if step.continuity.kind is not ContinuityKind.HANDOFF or step.continuity.parent is None:
        return ""
    line = ladder.store.line_to(step.continuity.parent, _LINE)
    events = [e for s in line for e in ladder.store.events(session_id=s.id)]
    handoff = handoffs.build(
        line,
        events,
        recommended_tier=step.tier,
        why=step.continuity.reason,
        cooldown_state={**ladder.settings.cooldown_rules(), "in_use": cooling},
        masker=ladder.settings.masker(),
        now=now,
        calls=[c for s in line for c in ladder.store.calls(s.id)],
        cycle_id=cycle.id,
    )
    path = handoffs.write(handoff_dir(ladder.settings.state.dir), handoff)
    text = path.read_text(encoding="utf-8")
    ladder.store.append_events(
        cycle.id,
        [
            NewEvent(
                kind=EventKind.HANDOFF,
                at=now,
                text=f"Handed off from record {handoff.from_session} to tier {step.tier}: {handoff.why_not_resumed}.",
                data={"from_session": handoff.from_session, "handoff": text},
            )
        ],
    )
    return handoffs.for_prompt(text)


def _without_context(step: RunTier, why: str) -> Finish:
    return Finish(
        status=CycleStatus.BLOCKED,
        reason=HANDOFF_INVALID,
        detail=f"Tier {step.tier} was not started, because its context could not be handed on: {why}",
        tell=True,
    )


def _decision(step: RunTier, now: dt.datetime) -> NewEvent:
    plan = step.continuity
    return NewEvent(
        kind=EventKind.DECISION,
        at=now,
        text=f"Run tier {step.tier}: {plan.kind.value} ({plan.reason.value}).",
        data={
            "tier": step.tier,
            "continuity": plan.kind.value,
            "reason": plan.reason.value,
            "parent": plan.parent,
            "context_tokens": plan.context_tokens,
            "context_window": plan.context_window,
            "context_ratio": plan.context_ratio,
            "threshold": plan.threshold,
        },
    )


def _log_decision(cycle: Cycle, step: RunTier) -> None:
    plan = step.continuity
    log = logger.warning if plan.kind is ContinuityKind.HANDOFF else logger.info
    log(
        "Tier decided",
        extra={
            "cycle": cycle.id,
            "tier": step.tier,
            "continuity": plan.kind.value,
            "reason": plan.reason.value,
            "context_tokens": plan.context_tokens,
            "context_window": plan.context_window,
            "threshold": plan.threshold,
        },
    )


def _as_finish(cycle: Cycle) -> Finish:
    return Finish(status=cycle.status, reason=cycle.reason, detail=cycle.detail or "")
