"""What callers hand to the store and get back beside the model: plain data. No I/O, no SQL."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from supervisor.model.cycle import CycleStatus, NewEvent
from supervisor.model.outcome import Failure
from supervisor.model.report import Report
from supervisor.model.session import ContinuityKind, CostBasis, Reason, SessionStatus, Tokens, ToolCalls, UsageByModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The supervisor process that runs a cycle. ``started`` tells it from a later process with the same pid.

    ``silent_for`` is the age of its heartbeat, where that was asked for.
    """

    host: str
    pid: int
    started: float
    silent_for: timedelta | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    """What is known of a session before its process starts."""

    cycle_id: int
    tier: int
    model: str
    session_id: str | None
    parent_session_id: int | None
    continuity: ContinuityKind
    reason: Reason
    work_dir: str
    runtime_id: str
    created_at: datetime
    resumed_from: str | None = None
    resumes: int = 0
    prompt_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd:
    """How a session ended. A field left ``None`` keeps what was recorded while the session ran.

    So an end that knows less than the live figures, such as one written after a crash, erases nothing.
    ``cost_basis`` belongs to ``cost_usd`` and is written with it.
    """

    status: SessionStatus
    ended_at: datetime
    failure: Failure | None = None
    detail: str | None = None
    session_id: str | None = None
    model_id: str | None = None
    cost_usd: float | None = None
    cost_basis: CostBasis = CostBasis.UNKNOWN
    tokens: Tokens | None = None
    context_tokens: int | None = None
    context_window: int | None = None
    first_call_tokens: int | None = None
    reported_usage: UsageByModel | None = None
    num_turns: int | None = None
    messages: int | None = None
    exit_code: int | None = None
    stop_reason: str | None = None
    tool_calls: ToolCalls | None = None
    tools_executed: int | None = None
    report: Report | None = None
    unknown_lines: int | None = None
    last_message_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleEnd:
    """How a cycle ended, or why it waits. ``event`` says so on its record; ``expect`` is what it has to be before."""

    cycle_id: int
    status: CycleStatus
    reason: str | None
    detail: str | None
    at: datetime
    event: NewEvent | None = None
    by: str | None = None
    expect: CycleStatus | None = None


class CostBy(StrEnum):
    """What costs are added up by. ``day`` is a UTC date."""

    TIER = "tier"
    SCHEDULE = "schedule"
    MODEL = "model"
    DAY = "day"


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """What the sessions under one key cost. ``cost_usd`` adds up what is known; ``None`` when nothing is."""

    key: str
    sessions: int
    cost_usd: float | None
    unknown: int
    estimated: int
    tokens: Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaState:
    """Whether a database has the tables this version needs. ``detail`` is a sentence for a person."""

    current: str | None
    head: str
    ok: bool
    detail: str
