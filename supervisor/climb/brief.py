"""Choose and render what a run is told. Reads templates. Called from climb.cycle."""

from collections.abc import Sequence

from supervisor.climb.ladder import CycleRequest, Ladder
from supervisor.model.session import ContinuityKind, Reason
from supervisor.model.step import RunTier
from supervisor.prompts import Briefing, Delta

LOST = {
    Reason.NO_SESSION_ID: "its session id is not known",
    Reason.RESUME_UNSUPPORTED: "this CLI cannot resume sessions",
    Reason.RESUME_REJECTED: "the CLI refused to resume it",
    Reason.CONTEXT_THRESHOLD: "it is too large for your context window",
    Reason.SESSION_EXPIRED: "it is too old",
    Reason.WORK_DIR_CHANGED: "the working directory has changed",
    Reason.RUNTIME_CHANGED: "the CLI or the host has changed",
    Reason.EPOCH_CHANGED: "the work has moved on since",
    Reason.POISONED: "it can no longer be continued",
    Reason.RESUME_LIMIT: "it was continued too often",
    Reason.TRANSCRIPT_MISSING: "its transcript is gone",
    Reason.FORCED_FRESH: "an operator asked for a fresh session",
}

_DECIDED = frozenset({Reason.APPROVED, Reason.DENIED})
_GOES_ON = {
    Reason.INTERRUPTED: "the run was cut off",
    Reason.TURN_LIMIT: "it had used up the number of turns of one run",
    Reason.USAGE_LIMIT_RESET: "the account's usage limit was reached",
    Reason.BUDGET_APPROVED: "its budget was used up",
}


def brief(
    ladder: Ladder,
    request: CycleRequest,
    step: RunTier,
    *,
    handoff: str,
    cooling: Sequence[str],
    unfinished: Sequence[str] = (),
    waited: str = "",
    same_tier: bool = False,
    since: Delta | None = None,
) -> str:
    """The prompt for one run: short when it resumes, the tier's full prompt when it does not.

    ``unfinished`` are the calls of which it is not known how they ended, ``waited`` tells of one that a person was
    asked about; ``same_tier`` when it was this tier's own conversation; ``since`` what became of an incident that it
    met in an earlier cycle.
    """
    settings = ladder.settings
    tier = settings.tiers[step.tier - 1]
    resumes = step.continuity.kind is ContinuityKind.RESUME
    if resumes and step.continuity.reason in _DECIDED:
        # The CLI asks once more about the call it stopped at. Any word of ours would make it drop that call.
        return ""
    briefing = Briefing(
        tier=step.tier,
        tier_name=tier.name,
        tiers=len(settings.tiers),
        dry_run=request.dry_run,
        environment=settings.schedule(request.schedule).environment_text,
        cooldowns=settings.cooldown_rules(),
        cooling=cooling,
        instructions=request.instructions,
        handoff=handoff,
        lost=LOST.get(step.continuity.reason, ""),
        unfinished=unfinished,
        waited=waited,
    )
    if resumes and step.continuity.reason in _GOES_ON:
        return ladder.prompts.again(briefing, why=_GOES_ON[step.continuity.reason])
    if resumes and step.continuity.reason is Reason.OPERATOR_RETRY and same_tier:
        return ladder.prompts.retry(briefing)
    if resumes and since is not None:
        return ladder.prompts.delta(briefing, since)
    template = tier.escalation_prompt if resumes and tier.escalation_prompt else tier.prompt
    return ladder.prompts.tier(template, briefing)
