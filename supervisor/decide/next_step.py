"""Decide what a cycle does next. Pure. Called from climb.cycle after every record, and by recovery.

Invariants:
- a tier above ``max_tier``, above the last tier, or above the first in a dry run is never answered;
- a rejected resume is answered with exactly one more run of that tier, never a resume, and only if no tool had run;
- every other failure ends the cycle;
- a run without a valid report never ends a cycle as healthy or resolved.
"""

import datetime as dt
from dataclasses import dataclass

from supervisor.decide.continuity import ContinuityPolicy, Surroundings, continuity
from supervisor.model.cycle import Chain, CycleStatus
from supervisor.model.outcome import Failure
from supervisor.model.report import Report
from supervisor.model.session import ContinuityKind, Reason, Session, SessionStatus
from supervisor.model.step import Continuity, Finish, RunTier, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the operator set for this cycle."""

    tiers: int
    max_tier: int
    start_tier: int
    dry_run: bool
    continuity: ContinuityPolicy
    per_cycle_usd: float | None = None
    per_day_usd: float | None = None


def next_step(chain: Chain, policy: Policy, around: Surroundings, *, now: dt.datetime) -> Step:
    """The next thing to do for this chain."""
    if not chain.sessions:
        return _first(policy, around, now)
    last = chain.sessions[-1]
    match last.status:
        case SessionStatus.COMPLETED:
            return _after_completed(chain, last, policy, around, now)
        case SessionStatus.REJECTED:
            return _after_rejected(last)
        case SessionStatus.PAUSED:
            return Finish(
                status=CycleStatus.PAUSED, reason=_name(last.failure), detail=_detail(last, "is paused"), tell=True
            )
        case SessionStatus.STOPPED:
            return Finish(status=CycleStatus.STOPPED, reason="stopped", detail=_detail(last, "was stopped"))
        case SessionStatus.INTERRUPTED if last.failure in (Failure.INTERRUPTED, Failure.KILLED):
            return Finish(
                status=CycleStatus.STOPPED, reason="interrupted", detail=_detail(last, "was interrupted"), tell=True
            )
        case SessionStatus.CREATED | SessionStatus.ACTIVE:
            raise ValueError(f"session record {last.id} is not over, so there is no next step yet")
        case _:
            return Finish(
                status=CycleStatus.FAILED, reason=_name(last.failure), detail=_detail(last, "failed"), tell=True
            )


def _first(policy: Policy, around: Surroundings, now: dt.datetime) -> Step:
    if policy.start_tier > policy.max_tier:
        return Finish(
            status=CycleStatus.BLOCKED,
            reason="max_tier",
            detail=f"Tier {policy.start_tier} was asked for, and tier {policy.max_tier} is the highest allowed.",
            tell=True,
        )
    over_budget = _over_budget(0.0, policy, around)
    if over_budget is not None:
        return over_budget
    plan = continuity(
        None,
        tier=policy.start_tier,
        occasion=Reason.FIRST_TIER,
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
    over_budget = _over_budget(chain.cost_usd or 0.0, policy, around)
    if over_budget is not None:
        return over_budget
    plan = continuity(
        last,
        chain.sessions,
        tier=following,
        occasion=Reason.NEXT_TIER,
        policy=policy.continuity,
        around=around,
        now=now,
    )
    return RunTier(tier=following, continuity=plan)


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


def _after_rejected(last: Session) -> Step:
    if last.tools_executed or last.continuity is not ContinuityKind.RESUME:
        return Finish(
            status=CycleStatus.FAILED,
            reason=Failure.RESUME_REJECTED.value,
            detail=_detail(last, "lost its session after it had run tools: it is not repeated"),
            tell=True,
        )
    if last.parent_session_id is None:
        plan = Continuity(kind=ContinuityKind.FRESH, reason=Reason.RESUME_REJECTED)
    else:
        plan = Continuity(kind=ContinuityKind.HANDOFF, reason=Reason.RESUME_REJECTED, parent=last.parent_session_id)
    return RunTier(tier=last.tier, continuity=plan)


def _over_budget(spent_in_cycle: float, policy: Policy, around: Surroundings) -> Finish | None:
    for spent, limit, what in (
        (spent_in_cycle, policy.per_cycle_usd, "this cycle"),
        (around.spent_today_usd, policy.per_day_usd, "today"),
    ):
        if limit is not None and spent >= limit:
            return Finish(
                status=CycleStatus.PAUSED,
                reason=Failure.BUDGET.value,
                detail=f"${spent:.2f} of the ${limit:.2f} allowed for {what} is spent: no further tier is started.",
                tell=True,
            )
    return None


def _name(failure: Failure | None) -> str | None:
    return failure.value if failure else None


def _detail(last: Session, what: str) -> str:
    return f"Tier {last.tier} {what}. {last.detail or ''}".strip()
