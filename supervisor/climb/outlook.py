"""Gather what the next decision about a chain depends on. Reads disk and store. Called from climb.cycle and begin."""

import datetime as dt

from supervisor.claude.transcript import transcript_on_disk
from supervisor.climb.incident import FIRST_TIER, earlier_session
from supervisor.climb.ladder import CycleRequest, Ladder
from supervisor.climb.spending import day_of
from supervisor.decide.budget import Budget, at_least, extended
from supervisor.decide.continuity import ContinuityPolicy, Surroundings
from supervisor.decide.cut_off import left_no_trace
from supervisor.decide.next_step import Policy
from supervisor.model.cycle import Chain, EventKind
from supervisor.model.guarding import Approval
from supervisor.model.outcome import Failure
from supervisor.model.session import Reason, Session

# So far up it is looked for a record that got anywhere.
_LINE = 20
# Under this name a cycle keeps what a person approved to be spent.
APPROVED = "approved_budget"


def policy_for(ladder: Ladder, request: CycleRequest, chain: Chain) -> Policy:
    """What the operator set, with what was asked for this cycle. Reads the store when more money was approved."""
    settings = ladder.settings
    if request.approve_budget:
        budget = approved_budget(ladder, chain.cost_usd)
    else:
        today = day_of(ladder.clock())
        # A cycle that waits because of its budget goes on the next day by itself, with as much again.
        budget = extended(_budget(ladder), Budget(cycle_usd=_spent_before(chain, today)))
        budget = at_least(budget, _approved(chain, today))
    return Policy(
        tiers=len(settings.tiers),
        max_tier=min(request.max_tier, len(settings.tiers)),
        start_tier=request.start_tier,
        dry_run=request.dry_run,
        continuity=ContinuityPolicy(
            context_threshold=settings.continuity.context_threshold,
            max_age=dt.timedelta(minutes=settings.continuity.session_max_age_minutes),
            max_resumes=settings.continuity.max_resumes,
        ),
        budget=budget,
        budget_approved_at=ladder.clock() if request.approve_budget else None,
    )


def _budget(ladder: Ladder) -> Budget:
    limits = ladder.settings.budget
    return Budget(cycle_usd=limits.per_cycle_usd, day_usd=limits.per_day_usd)


def approved_budget(ladder: Ladder, spent_usd: float | None) -> Budget:
    """The limits of a cycle that has spent so much when a person agrees to go on. Reads the store."""
    spent_today = ladder.store.spent_since(day_of(ladder.clock()))
    return extended(_budget(ladder), Budget(cycle_usd=spent_usd, day_usd=spent_today))


def approval_of(ladder: Ladder, spent_usd: float | None) -> dict[str, object]:
    """The same to be kept with the cycle, for whoever goes on with it should it be cut off."""
    limits = approved_budget(ladder, spent_usd)
    kept = {"cycle_usd": limits.cycle_usd, "day_usd": limits.day_usd, "day": day_of(ladder.clock()).isoformat()}
    return {APPROVED: kept}


def _approved(chain: Chain, today: dt.datetime) -> Budget:
    """What a person approved before the cycle was cut off, of which the limit of a day holds on that day."""
    kept = chain.cycle.request.get(APPROVED)
    if not isinstance(kept, dict):
        return Budget()
    return Budget(cycle_usd=kept["cycle_usd"], day_usd=kept["day_usd"] if kept["day"] == today.isoformat() else None)


def _spent_before(chain: Chain, day: dt.datetime) -> float:
    """The known cost of what a cycle had ended before that day."""
    return sum(s.cost_usd or 0.0 for s in chain.sessions if s.ended_at is not None and s.ended_at < day)


def surroundings(ladder: Ladder, request: CycleRequest, chain: Chain) -> Surroundings:
    """Look at everything outside the chain that the next decision depends on. Reads disk and store."""
    settings, store = ladder.settings, ladder.store
    earlier, occasion = _earlier(ladder, request, chain)
    questions = _questions(ladder, chain)
    looked_at = [*chain.sessions, *([earlier] if earlier else [])]
    ids = [s.session_id for s in looked_at if s.session_id]
    found = {session_id: transcript_on_disk(settings.agent_env, session_id) for session_id in ids}
    return Surroundings(
        runtime=ladder.runtime,
        work_dir=str(settings.claude.work_dir),
        windows={
            number: store.known_window(tier.model, ladder.runtime.id) or settings.models.window(tier.model)
            for number, tier in enumerate(settings.tiers, start=1)
        },
        transcripts={session_id: there for session_id, there in found.items() if there is not None},
        force_fresh=request.force_fresh,
        began_fresh=request.began_fresh,
        spent_today_usd=store.spent_since(day_of(ladder.clock())) if settings.budget.per_day_usd is not None else 0.0,
        switch=store.switch(),
        approvals={record: asked.status for record, asked in questions.items()},
        answered_at={record: asked.decided_at or asked.expires_at for record, asked in questions.items()},
        usage_limit_resets_at=_resets_at(ladder, chain),
        earlier=earlier,
        occasion=occasion,
        others=tuple(store.children(earlier.id)) if earlier else (),
    )


def _earlier(ladder: Ladder, request: CycleRequest, chain: Chain) -> tuple[Session | None, Reason]:
    """The record of an earlier cycle that the first run continues, and on what occasion."""
    if not all(map(left_no_trace, chain.sessions)):
        return None, Reason.FIRST_TIER
    if request.retry_of is None:
        # A dry run looks at what is there; it has no part in what is being done about it.
        met = request.start_tier == FIRST_TIER and not request.dry_run
        kept = earlier_session(ladder, request.schedule) if met else None
        return kept, Reason.FIRST_TIER if kept is None else Reason.SAME_INCIDENT
    line = ladder.store.line_to(request.retry_of, _LINE)
    if not line:
        # The cycle has waited before its first run for so long that the record was pruned.
        return None, Reason.FIRST_TIER
    # A record that got nowhere has nothing to go on from; the one above it may have.
    return next((s for s in reversed(line) if not left_no_trace(s)), line[-1]), Reason.OPERATOR_RETRY


def _questions(ladder: Ladder, chain: Chain) -> dict[int, Approval]:
    """The questions that records of this chain put before a person."""
    asked = {s.id: ladder.store.approval_of_session(s.id) for s in chain.sessions if s.failure is Failure.APPROVAL}
    return {record: approval for record, approval in asked.items() if approval}


def _resets_at(ladder: Ladder, chain: Chain) -> dt.datetime | None:
    """When the usage limit ends that the last record waits for, as far as the CLI said."""
    last = chain.sessions[-1] if chain.sessions else None
    if last is None or last.failure is not Failure.USAGE_LIMIT:
        return None
    for event in reversed(ladder.store.events(session_id=last.id, kinds=(EventKind.RATE_LIMIT,))):
        resets = event.data.get("resets_at")
        if isinstance(resets, int):
            return dt.datetime.fromtimestamp(resets, dt.UTC)
    return None
