"""How work goes on that was cut off: on which occasion, and from which record. Pure. Asked by next_step and recovery.

Invariants:
- a run that may have done something is gone on from, never from before it;
- a run that certainly did nothing is passed over, so that its context is that of the record it was to continue;
- a person's approval is used by going on from the very record that asked for it, as long as it was not used.
"""

from supervisor.model.cycle import Chain
from supervisor.model.guarding import ApprovalStatus
from supervisor.model.outcome import Failure
from supervisor.model.session import UNFINISHED, Reason, Session, SessionStatus

# What ends a run in the middle of its work without saying anything against going on with it.
OCCASIONS = {
    Failure.INTERRUPTED: Reason.INTERRUPTED,
    Failure.KILLED: Reason.INTERRUPTED,
    Failure.STORE_UNAVAILABLE: Reason.INTERRUPTED,
    Failure.WALL_CLOCK: Reason.INTERRUPTED,
    Failure.SILENCE: Reason.INTERRUPTED,
    Failure.TURN_LIMIT: Reason.TURN_LIMIT,
}

# Nobody who waits for an answer waits for ever: a refusal is told to the model like an approval is.
ANSWERS = {
    ApprovalStatus.APPROVED: Reason.APPROVED,
    ApprovalStatus.DENIED: Reason.DENIED,
    ApprovalStatus.EXPIRED: Reason.DENIED,
}


def left_no_trace(session: Session) -> bool:
    """Whether a run that was cut off certainly did nothing: no message of it was seen, no call of it let through."""
    return not session.got_a_message and not session.tool_calls.allowed and not session.tools_executed


def starting_point(chain: Chain, last: Session) -> Session | None:
    """The record to go on from: ``last``, or the nearest above it that got anywhere; ``None`` when none did."""
    session: Session | None = last
    while session is not None and session.failure in OCCASIONS and (left_no_trace(session) or _fell_short(session)):
        session = chain.by_id(session.parent_session_id)
    return session


def _fell_short(session: Session) -> bool:
    """Whether a run was to make the call that a person had approved and never got to it, whatever it said.

    A CLI that outlives its supervisor is refused every call, and goes on to talk about that.
    """
    return session.reason is Reason.APPROVED and not session.tool_calls.allowed


def occasion_from(start: Session, last: Session, answer: ApprovalStatus | None) -> Reason:
    """Why the work of ``last`` goes on from ``start``, to whose question a person gave this ``answer``."""
    if start is last:
        return OCCASIONS.get(last.failure, Reason.INTERRUPTED) if last.failure else Reason.INTERRUPTED
    if start.tier < last.tier:
        return Reason.NEXT_TIER
    if start.failure is Failure.APPROVAL and answer in ANSWERS:
        return ANSWERS[answer]
    return Reason.INTERRUPTED


def is_cut_off(session: Session) -> bool:
    """Whether a record that is over ended in the middle of its work, and may be gone on from."""
    over = session.status not in UNFINISHED and session.status is not SessionStatus.PAUSED
    return over and session.failure in OCCASIONS


def has_to_go_on(chain: Chain, *, max_resumes: int) -> bool:
    """Whether something is left to do in a chain that nobody runs, whatever is true around it."""
    if not chain.sessions:
        return True
    last = chain.sessions[-1]
    return is_cut_off(last) and last.resumes < max_resumes
