"""Decide what a cycle does next. Pure. Called from climb.cycle after every record, and by recovery.

Invariants:
- a tier above ``max_tier``, above the last tier, or above the first in a dry run is never answered;
- a rejected resume is answered with exactly one more run of that tier, never a resume, and only if no tool had run;
- a paused run is gone on from only when what it waits for has come, and then on the same tier;
- a run that was cut off is gone on from on the same tier, at most ``max_resumes`` times;
- while the switch is off or a budget is used up, no run is answered;
- every other failure ends the cycle;
- a run without a valid report never ends a cycle as healthy or resolved.
"""

import datetime as dt
from dataclasses import dataclass, field, replace

from supervisor.decide.budget import Budget, over_budget
from supervisor.decide.continuity import ContinuityPolicy, Surroundings, continuity
from supervisor.decide.cut_off import ANSWERS, is_cut_off, left_no_trace, occasion_from, starting_point
from supervisor.model.cycle import Chain, CycleStatus
from supervisor.model.outcome import Failure
from supervisor.model.report import Report
from supervisor.model.session import ContinuityKind, Reason, Session, SessionStatus
from supervisor.model.step import Continuity, Finish, RunTier, Step

_PAUSES = frozenset({Failure.APPROVAL, Failure.USAGE_LIMIT, Failure.BUDGET})
# A usage limit that does not say when it ends is tried again after this.
_UNKNOWN_RESET = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the operator set for this cycle. ``budget_approved_at`` is when a person agreed to go on spending."""

    tiers: int
    max_tier: int
    start_tier: int
    dry_run: bool
    continuity: ContinuityPolicy
    budget: Budget = field(default_factory=Budget)
    budget_approved_at: dt.datetime | None = None


def next_step(chain: Chain, policy: Policy, around: Surroundings, *, now: dt.datetime) -> Step:
    """The next thing to do for this chain."""
    step = _wanted(chain, policy, around, now)
    if isinstance(step, RunTier) and step.tier > policy.max_tier:
        # It was allowed when the cycle began to wait, and is not any more.
        return Finish(
            status=CycleStatus.BLOCKED,
            reason="max_tier",
            detail=f"Tier {step.tier} was to go on, and tier {policy.max_tier} is the highest allowed by now.",
            tell=True,
            would_run_tier=step.tier,
        )
    return step


def _wanted(chain: Chain, policy: Policy, around: Surroundings, now: dt.datetime) -> Step:
    if not chain.sessions:
        return _first(chain, policy, around, now)
    last = chain.sessions[-1]
    match last.status:
        case SessionStatus.CREATED | SessionStatus.ACTIVE:
            raise ValueError(f"session record {last.id} is not over, so there is no next step yet")
        case SessionStatus.COMPLETED:
            return _after_completed(chain, last, policy, around, now)
        case SessionStatus.REJECTED:
            return _after_rejected(chain, last, policy, around)
        case SessionStatus.STOPPED:
            return Finish(status=CycleStatus.STOPPED, reason="stopped", detail=_detail(last, "was stopped"))
        case _ if last.failure in _PAUSES:
            # Also when it has expired meanwhile: what it waits for may come all the same.
            return _after_paused(chain, last, policy, around, now)
        case _ if is_cut_off(last):
            return _after_cut_off(chain, last, policy, around, now)
        case _:
            return Finish(
                status=CycleStatus.FAILED, reason=_name(last.failure), detail=_detail(last, "failed"), tell=True
            )


def _first(chain: Chain, policy: Policy, around: Surroundings, now: dt.datetime) -> Step:
    if policy.start_tier > policy.max_tier:
        return Finish(
            status=CycleStatus.BLOCKED,
            reason="max_tier",
            detail=f"Tier {policy.start_tier} was asked for, and tier {policy.max_tier} is the highest allowed.",
            tell=True,
        )
    held = _held_back(chain, policy, around)
    if held is not None:
        return held
    if around.earlier is not None and left_no_trace(around.earlier):
        # There is nothing to go on from; the link to what is done again stays.
        fresh = Continuity(kind=ContinuityKind.FRESH, reason=around.occasion, parent=around.earlier.id)
        return RunTier(tier=policy.start_tier, continuity=fresh)
    plan = continuity(
        around.earlier,
        around.others,
        tier=policy.start_tier,
        occasion=around.occasion,
        policy=policy.continuity,
        around=around,
        now=now,
    )
    return RunTier(tier=policy.start_tier, continuity=plan)


def _after_completed(chain: Chain, last: Session, policy: Policy, around: Surroundings, now: dt.datetime) -> Step:
    report = last.report
    if report is None:
        return Finish(
            status=CycleStatus.UNRESOLVED,
            reason="no_report",
            detail=_detail(last, "ended without a valid report, so nothing it found is trusted"),
            tell=True,
        )
    if not report.escalation_needed:
        return _settled(chain, last, report)
    affected = ", ".join(report.affected) or "services it did not name"
    if last.tier >= policy.tiers:
        return Finish(
            status=CycleStatus.UNRESOLVED,
            reason="top_tier",
            detail=f"Tier {last.tier}, the last one, still reports trouble with {affected}: {report.escalation_reason}",
            tell=True,
            services=report.affected,
        )
    following = last.tier + 1
    if following > policy.max_tier:
        return Finish(
            status=CycleStatus.BLOCKED,
            reason="max_tier",
            detail=f"Tier {following} is needed for {affected} but above max_tier: {report.escalation_reason}",
            tell=True,
            would_run_tier=following,
            services=report.affected,
        )
    if policy.dry_run:
        return Finish(
            status=CycleStatus.BLOCKED,
            reason="dry_run",
            detail=f"Dry run: tier {following} would have run for {affected}: {report.escalation_reason}",
            would_run_tier=following,
            services=report.affected,
        )
    held = _held_back(chain, policy, around)
    if held is not None:
        return held
    return _on(chain, last, following, Reason.NEXT_TIER, 0, policy, around, now)


def _settled(chain: Chain, last: Session, report: Report) -> Finish:
    if report.broken:
        # The agent contradicts itself. A service that does not serve is never filed as healthy.
        return Finish(
            status=CycleStatus.UNRESOLVED,
            reason="services_down",
            detail=f"Tier {last.tier} asks for no escalation but reports {', '.join(report.broken)} as not serving.",
            tell=True,
            services=report.broken,
        )
    climbed = len({s.tier for s in chain.sessions}) > 1
    status = CycleStatus.RESOLVED if climbed or report.actions else CycleStatus.HEALTHY
    return Finish(status=status, reason=None, detail=report.summary)


def _after_rejected(chain: Chain, last: Session, policy: Policy, around: Surroundings) -> Step:
    if last.tools_executed or last.continuity is not ContinuityKind.RESUME:
        return Finish(
            status=CycleStatus.FAILED,
            reason=Failure.RESUME_REJECTED.value,
            detail=_detail(last, "lost its session after it had run tools: it is not repeated"),
            tell=True,
        )
    held = _held_back(chain, policy, around)
    if held is not None:
        return held
    if last.parent_session_id is None:
        plan = Continuity(kind=ContinuityKind.FRESH, reason=Reason.RESUME_REJECTED)
    else:
        plan = Continuity(kind=ContinuityKind.HANDOFF, reason=Reason.RESUME_REJECTED, parent=last.parent_session_id)
    return RunTier(tier=last.tier, continuity=plan, resumes=last.resumes)


def _after_paused(chain: Chain, last: Session, policy: Policy, around: Surroundings, now: dt.datetime) -> Step:
    occasion = _may_go_on(last, policy, around, now)
    if occasion is None:
        detail = _detail(last, "is paused")
        if last.failure is Failure.BUDGET:
            detail += f" {_more_money(chain)}"
        return Finish(status=CycleStatus.PAUSED, reason=_name(last.failure), detail=detail, tell=True)
    # A limit that is reached again at once would otherwise be run into for ever.
    again = last.resumes + (occasion is Reason.USAGE_LIMIT_RESET)
    if again > policy.continuity.max_resumes:
        return _too_often(last)
    held = _held_back(chain, policy, around)
    if held is not None:
        return held
    if left_no_trace(last) and last.failure is not Failure.APPROVAL:
        # Of what never got to say anything, nothing can be resumed or handed on.
        before = chain.by_id(last.parent_session_id)
        return _again(chain, before and starting_point(chain, before), last, again, policy, around, now)
    return _on(chain, last, last.tier, occasion, again, policy, around, now)


def _after_cut_off(chain: Chain, last: Session, policy: Policy, around: Surroundings, now: dt.datetime) -> Step:
    if last.resumes >= policy.continuity.max_resumes:
        return _too_often(last)
    held = _held_back(chain, policy, around)
    if held is not None:
        return held
    return _again(chain, starting_point(chain, last), last, last.resumes + 1, policy, around, now)


def _again(
    chain: Chain,
    start: Session | None,
    last: Session,
    resumes: int,
    policy: Policy,
    around: Surroundings,
    now: dt.datetime,
) -> Step:
    """Do what ``last`` was to do, from an earlier record or, without one, from the beginning."""
    if start is None:
        first = _first(chain, policy, around, now)
        return replace(first, resumes=resumes) if isinstance(first, RunTier) else first
    occasion = occasion_from(start, last, around.approvals.get(start.id))
    return _on(chain, start, last.tier, occasion, resumes, policy, around, now)


def _too_often(last: Session) -> Finish:
    return Finish(
        status=CycleStatus.FAILED,
        reason=_name(last.failure),
        detail=_detail(last, f"was cut off again, and had been gone on with {last.resumes} times before")
        + f" It is left there: `opsladder retry {last.id}` goes on with it.",
        tell=True,
    )


def _on(
    chain: Chain,
    start: Session,
    tier: int,
    occasion: Reason,
    resumes: int,
    policy: Policy,
    around: Surroundings,
    now: dt.datetime,
) -> RunTier:
    """Run a tier from a record of the chain."""
    plan = continuity(
        start,
        chain.sessions,
        tier=tier,
        occasion=occasion,
        policy=policy.continuity,
        around=around,
        now=now,
    )
    return RunTier(tier=tier, continuity=plan, resumes=resumes)


def _may_go_on(last: Session, policy: Policy, around: Surroundings, now: dt.datetime) -> Reason | None:
    """On what occasion a paused record is gone on from, if what it waits for has come."""
    paused_at = last.ended_at or last.created_at
    match last.failure:
        case Failure.APPROVAL:
            answer = around.approvals.get(last.id)
            return ANSWERS.get(answer) if answer else None
        case Failure.USAGE_LIMIT:
            until = around.usage_limit_resets_at or paused_at + _UNKNOWN_RESET
            return Reason.USAGE_LIMIT_RESET if now >= until else None
        case Failure.BUDGET:
            approved = policy.budget_approved_at is not None and policy.budget_approved_at > paused_at
            another_day = now.astimezone(dt.UTC).date() > paused_at.astimezone(dt.UTC).date()
            return Reason.BUDGET_APPROVED if approved or another_day else None
        case _:
            return None


def _held_back(chain: Chain, policy: Policy, around: Surroundings) -> Finish | None:
    """Why no run may start now, whichever it would be."""
    if around.switch.paused:
        by = f" by {around.switch.by}" if around.switch.by else ""
        why = f" ({around.switch.reason})" if around.switch.reason else ""
        return Finish(
            status=CycleStatus.PAUSED,
            reason="switch",
            detail=f"opsladder was paused{by}{why}, so no further run is started. `opsladder unpause`, and the next "
            "cycle of this schedule goes on with this one.",
            tell=True,
        )
    spent = Budget(cycle_usd=chain.cost_usd or 0.0, day_usd=around.spent_today_usd)
    over = over_budget(spent, policy.budget)
    if over is not None:
        return Finish(
            status=CycleStatus.PAUSED,
            reason=Failure.BUDGET.value,
            detail=f"{over.sentence} No further run is started. {_more_money(chain)}",
            tell=True,
        )
    return None


def _more_money(chain: Chain) -> str:
    # With its schedule: without one the command goes on with the first schedule's.
    again = f"opsladder cycle {chain.cycle.schedule}"
    return f"`{again} --approve-budget` goes on at once, the next cycle tomorrow by itself."


def _name(failure: Failure | None) -> str | None:
    return failure.value if failure else None


def _detail(last: Session, what: str) -> str:
    return f"Tier {last.tier} {what}. {last.detail or ''}".strip()
