"""One session: the record of one CLI process. No I/O. Read by every room."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from supervisor.model.outcome import Failure
from supervisor.model.report import Report

# Of English prose and Markdown, which our prompts are.
_BYTES_PER_TOKEN = 4


class SessionStatus(StrEnum):
    """Where a session is in its life."""

    CREATED = "created"
    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    REJECTED = "rejected"
    EXPIRED = "expired"


UNFINISHED = frozenset({SessionStatus.CREATED, SessionStatus.ACTIVE})
# Cut off before their work was done, and kept so that it can be gone on with.
WAITING = frozenset({SessionStatus.PAUSED, SessionStatus.INTERRUPTED, SessionStatus.TIMED_OUT})


class ContinuityKind(StrEnum):
    """How a run gets the context of the work before it."""

    FRESH = "fresh"
    RESUME = "resume"
    HANDOFF = "handoff"


class Reason(StrEnum):
    """Why a run continues as it does: the occasion, or what stood against resuming."""

    FIRST_TIER = "first_tier"
    NEXT_TIER = "next_tier"
    INTERRUPTED = "interrupted"
    APPROVED = "approved"
    USAGE_LIMIT_RESET = "usage_limit_reset"
    SAME_INCIDENT = "same_incident"
    OPERATOR_RETRY = "operator_retry"
    TURN_LIMIT = "turn_limit"
    DENIED = "denied"
    BUDGET_APPROVED = "budget_approved"

    NO_SESSION_ID = "no_session_id"
    RESUME_UNSUPPORTED = "resume_unsupported"
    RESUME_REJECTED = "resume_rejected"
    CONTEXT_THRESHOLD = "context_threshold"
    SESSION_EXPIRED = "session_expired"
    WORK_DIR_CHANGED = "work_dir_changed"
    RUNTIME_CHANGED = "runtime_changed"
    EPOCH_CHANGED = "epoch_changed"
    POISONED = "poisoned"
    RESUME_LIMIT = "resume_limit"
    TRANSCRIPT_MISSING = "transcript_missing"
    FORCED_FRESH = "forced_fresh"


class CostBasis(StrEnum):
    """Where a cost comes from: the CLI's result, our price table, or nowhere."""

    REPORTED = "reported"
    ESTIMATED = "estimated"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Token counts of one call, one run or one chain."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def read(self) -> int:
        """All that the model had to read: fresh, cached and written to the cache."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> int:
        return self.read + self.output

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )

    def __sub__(self, other: "Tokens") -> "Tokens":
        return Tokens(
            input=self.input - other.input,
            output=self.output - other.output,
            cache_read=self.cache_read - other.cache_read,
            cache_write=self.cache_write - other.cache_write,
        )

    def covers(self, other: "Tokens") -> bool:
        """Whether every count is at least the other's."""
        return (
            self.input >= other.input
            and self.output >= other.output
            and self.cache_read >= other.cache_read
            and self.cache_write >= other.cache_write
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """What the CLI's result says of one model."""

    tokens: Tokens
    cost_usd: float | None = None
    context_window: int | None = None


UsageByModel = Mapping[str, ModelUsage]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalls:
    """How many tool calls were let through, refused, or put before a person."""

    allowed: int = 0
    denied: int = 0
    deferred: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One record: one CLI process, from the intent to start it to its outcome.

    ``id`` is ours, ``session_id`` the CLI's. ``parent_session_id`` is the ``id`` of the record this one continues
    or was handed off from; ``resumed_from`` is the CLI session id given to ``--resume``. ``resumes`` counts how often
    its tier's work had been cut off and gone on with before. ``epoch`` counts how often somebody began again above it:
    beyond 0, what was handed to it no longer holds.
    """

    id: int
    cycle_id: int
    tier: int
    model: str
    session_id: str | None
    parent_session_id: int | None
    status: SessionStatus
    continuity: ContinuityKind
    reason: Reason
    work_dir: str
    runtime_id: str
    created_at: datetime

    resumed_from: str | None = None
    epoch: int = 0
    resumes: int = 0
    failure: Failure | None = None
    detail: str | None = None
    model_id: str | None = None
    cost_usd: float | None = None
    cost_basis: CostBasis = CostBasis.UNKNOWN
    tokens: Tokens | None = None
    context_tokens: int | None = None
    context_window: int | None = None
    first_call_tokens: int | None = None
    prompt_bytes: int | None = None
    reported_usage: UsageByModel = field(default_factory=dict)
    num_turns: int | None = None
    messages: int = 0
    exit_code: int | None = None
    stop_reason: str | None = None
    tool_calls: ToolCalls = ToolCalls()
    tools_executed: int = 0
    report: Report | None = None
    unknown_lines: int = 0
    pid: int | None = None
    pid_started: float | None = None
    started_at: datetime | None = None
    last_message_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def duration_seconds(self) -> float | None:
        if self.started_at is None or self.ended_at is None:
            return None
        # A clock that was set back meanwhile must not make it negative.
        return max(0.0, (self.ended_at - self.started_at).total_seconds())

    @property
    def fixed_tokens(self) -> int | None:
        """About what each call carries besides the conversation: what the first one read, less our prompt.

        Of a run that resumed it is unknown: its first call also read what had been said before.
        """
        if self.resumed_from is not None or self.first_call_tokens is None or self.prompt_bytes is None:
            return None
        return max(0, self.first_call_tokens - self.prompt_bytes // _BYTES_PER_TOKEN)

    @property
    def context_ratio(self) -> float | None:
        """How full the window is, by this record's own model."""
        if self.context_tokens is None or not self.context_window:
            return None
        return self.context_tokens / self.context_window

    @property
    def got_a_message(self) -> bool:
        return self.messages > 0
