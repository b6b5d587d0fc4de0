"""Decide whether a run may resume the one before. Pure. Called from decide.next_step.

One answer for both halves of the question: the ``--resume`` flag and leaving the handoff out are derived from it,
so "no resume and no context" cannot happen.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from supervisor.decide.context import over
from supervisor.model.guarding import ApprovalStatus, SwitchState
from supervisor.model.outcome import POISONING
from supervisor.model.runtime import Runtime
from supervisor.model.session import ContinuityKind, Reason, Session, SessionStatus
from supervisor.model.step import Continuity

REJECTIONS_THAT_POISON = 2
# What a person has decided can only be carried out in the conversation that asked.
_ANSWERED = frozenset({Reason.APPROVED, Reason.DENIED})

OCCASIONS = frozenset(
    {
        Reason.FIRST_TIER,
        Reason.NEXT_TIER,
        Reason.INTERRUPTED,
        Reason.APPROVED,
        Reason.USAGE_LIMIT_RESET,
        Reason.SAME_INCIDENT,
        Reason.OPERATOR_RETRY,
        Reason.TURN_LIMIT,
        Reason.DENIED,
        Reason.BUDGET_APPROVED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuityPolicy:
    """What the operator set."""

    context_threshold: float
    max_age: dt.timedelta
    max_resumes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is true outside the chain right now. Gathered by ``climb``.

    ``transcripts`` says of a CLI session id whether its transcript is on disk and whole; an id that is not in it could
    not be checked. ``windows`` are by tier. ``approvals`` is how the question stands that a record of the chain put
    before a person, ``answered_at`` since when. ``force_fresh`` was asked for now, ``began_fresh`` when the cycle
    began. ``earlier`` is the record of another cycle that the first run continues, on ``occasion``; ``others`` have
    continued it before.
    """

    runtime: Runtime
    work_dir: str
    windows: Mapping[int, int | None]
    transcripts: Mapping[str, bool] = field(default_factory=dict)
    force_fresh: bool = False
    began_fresh: bool = False
    spent_today_usd: float = 0.0
    switch: SwitchState = field(default_factory=lambda: SwitchState(paused=False))
    approvals: Mapping[int, ApprovalStatus] = field(default_factory=dict)
    answered_at: Mapping[int, dt.datetime] = field(default_factory=dict)
    usage_limit_resets_at: dt.datetime | None = None
    earlier: Session | None = None
    others: tuple[Session, ...] = ()
    occasion: Reason = Reason.FIRST_TIER


def continuity(
    previous: Session | None,
    others: Sequence[Session] = (),
    *,
    tier: int,
    occasion: Reason,
    policy: ContinuityPolicy,
    around: Surroundings,
    now: dt.datetime,
) -> Continuity:
    """How the run of ``tier`` gets the context of ``previous``, which some of ``others`` may have resumed before."""
    if previous is None:
        forced = (around.force_fresh or around.began_fresh) and occasion is not Reason.FIRST_TIER
        reason = Reason.FORCED_FRESH if forced else occasion
        return Continuity(kind=ContinuityKind.FRESH, reason=reason)
    limit = around.windows.get(tier)
    refusal = _refusal(previous, others, limit, occasion, policy, around, now)
    kind = ContinuityKind.RESUME if refusal is None else ContinuityKind.HANDOFF
    return Continuity(
        kind=kind,
        reason=refusal or occasion,
        parent=previous.id,
        resume_session_id=previous.session_id if refusal is None else None,
        context_tokens=previous.context_tokens,
        context_window=limit,
        threshold=policy.context_threshold,
    )


def is_poisoned(session: Session, rejections: int) -> bool:
    """Whether resuming this session can only fail. Overload, rate limits and network trouble do not poison."""
    return session.failure in POISONING or rejections >= REJECTIONS_THAT_POISON


def _refusal(
    previous: Session,
    others: Sequence[Session],
    limit: int | None,
    occasion: Reason,
    policy: ContinuityPolicy,
    around: Surroundings,
    now: dt.datetime,
) -> Reason | None:
    answered_at = around.answered_at.get(previous.id) if occasion in _ANSWERED else None
    resumed_by = [s for s in others if s.parent_session_id == previous.id and s.continuity is ContinuityKind.RESUME]
    rejections = sum(s.status is SessionStatus.REJECTED for s in resumed_by)
    if around.force_fresh or (around.began_fresh and occasion not in _ANSWERED):
        return Reason.FORCED_FRESH
    if not around.runtime.abilities.resume:
        return Reason.RESUME_UNSUPPORTED
    if not previous.session_id or not previous.got_a_message:
        # A session that never got as far as a message has nothing that could be resumed.
        return Reason.NO_SESSION_ID
    if is_poisoned(previous, rejections):
        return Reason.POISONED
    if rejections or previous.status is SessionStatus.REJECTED:
        return Reason.RESUME_REJECTED
    if previous.epoch:
        return Reason.EPOCH_CHANGED
    if previous.work_dir != around.work_dir:
        return Reason.WORK_DIR_CHANGED
    if previous.runtime_id != around.runtime.id:
        return Reason.RUNTIME_CHANGED
    if previous.status is SessionStatus.EXPIRED or _age(previous, answered_at, now) > policy.max_age:
        return Reason.SESSION_EXPIRED
    if len(resumed_by) >= policy.max_resumes:
        return Reason.RESUME_LIMIT
    if around.transcripts.get(previous.session_id) is False:
        return Reason.TRANSCRIPT_MISSING
    if over(previous.context_tokens, limit, policy.context_threshold):
        return Reason.CONTEXT_THRESHOLD
    return None


def _age(session: Session, answered_at: dt.datetime | None, now: dt.datetime) -> dt.timedelta:
    """How long nothing has happened in a session. The time that a person took to answer is not its own."""
    last = answered_at or session.last_message_at or session.ended_at or session.created_at
    # A clock that went back must not make a session look younger than new.
    return max(now - last, dt.timedelta(0))
