"""What a person said to a call whose conversation cannot be resumed. Reads the store. Called from climb.cycle.

An answer holds for exactly that call in exactly that conversation. Where this one ends, the run that starts anew is
told what was asked and answered, and whoever approved is told that the call has not run.
"""

from supervisor.climb.ladder import Ladder
from supervisor.model.guarding import Approval, ApprovalStatus
from supervisor.model.outcome import Failure
from supervisor.model.session import ContinuityKind, Session
from supervisor.model.step import RunTier

_CALL_LENGTH = 1000


def lost_answer(ladder: Ladder, step: RunTier, parent: Session | None) -> Approval | None:
    """The question that the run before put to a person, when this one cannot go on in its conversation."""
    if parent is None or parent.failure is not Failure.APPROVAL or step.continuity.kind is ContinuityKind.RESUME:
        return None
    return ladder.store.approval_of_session(parent.id)


def for_the_model(asked: Approval | None) -> str:
    """What a run is told of it that starts anew."""
    if asked is None:
        return ""
    text = asked.text if len(asked.text) <= _CALL_LENGTH else asked.text[:_CALL_LENGTH] + "…"
    call = f"The run before you stopped at a call that a person has to decide on, {asked.tool}: {text}"
    match asked.status:
        case ApprovalStatus.APPROVED:
            return (
                f"{call}\nIt was approved, but has not run, and the approval ended with that conversation. "
                "If the call is still right, make it again: a person is asked again."
            )
        case ApprovalStatus.DENIED:
            return f"{call}\nIt was refused, and has not run. The reason given: {asked.reason or 'none'}"
        case ApprovalStatus.USED:
            return f"{call}\nIt was approved and let through, and nobody knows how it ended. Look before anything else."
        case ApprovalStatus.EXPIRED | ApprovalStatus.WAITING:
            return f"{call}\nNobody answered in time, so it was refused, and has not run."


def for_people(asked: Approval | None, step: RunTier) -> str | None:
    """What whoever approved the call has to know."""
    if asked is None or asked.status is not ApprovalStatus.APPROVED:
        return None
    return (
        f"The call of approval {asked.id} has not run, although it was approved: its conversation could not be resumed "
        f"({step.continuity.reason.value}). Tier {step.tier} begins anew, and asks again if it makes the call again."
    )
