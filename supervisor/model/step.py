"""What happens next in a cycle. No I/O. Made by ``decide.next_step``, carried out by ``climb.cycle``."""

from dataclasses import dataclass

from supervisor.model.cycle import CycleStatus
from supervisor.model.session import ContinuityKind, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuity:
    """One answer: how the run gets its context, and why.

    ``resume_session_id`` is set if and only if ``kind`` is ``resume``; the handoff is left out in just that case, so
    "no resume and no context" cannot be expressed.
    """

    kind: ContinuityKind
    reason: Reason
    parent: int | None = None
    resume_session_id: str | None = None
    context_tokens: int | None = None
    context_window: int | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        if (self.kind is ContinuityKind.RESUME) != (self.resume_session_id is not None):
            raise ValueError("a resume, and nothing but a resume, names the session it resumes")
        if self.kind is ContinuityKind.HANDOFF and self.parent is None:
            raise ValueError("a handoff names the record it comes from")

    @property
    def context_ratio(self) -> float | None:
        if self.context_tokens is None or not self.context_window:
            return None
        return self.context_tokens / self.context_window


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTier:
    """Run this tier now. ``resumes`` is how often its work was cut off and gone on with, this run included."""

    tier: int
    continuity: Continuity
    resumes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The cycle is over. ``tell`` says that a person has to know."""

    status: CycleStatus
    reason: str | None
    detail: str
    tell: bool = False
    would_run_tier: int | None = None
    services: tuple[str, ...] = ()


Step = RunTier | Finish
