"""The declared schema: cycles, sessions and events. No I/O. Read by ``reads`` and ``writes``.

The tables are queried with SQLAlchemy Core only: nothing here is ever instantiated, so no process pays for setting up
the object mapper. A change here needs a migration with the same effect; the tests compare the two on both databases.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index, Table, UniqueConstraint, text
from sqlmodel import Field

from supervisor.model.cycle import CycleStatus, Trigger
from supervisor.model.session import ContinuityKind, CostBasis, SessionStatus
from supervisor.store.base import Record, one_of
from supervisor.store.columns import AnyText, Key, UtcDateTime

# Written out rather than bound: SQLite uses a partial index only for a condition it can recognise.
RUNNING = text("status = 'running'")
UNARCHIVED = text("archived_at IS NULL")


class CycleRow(Record, table=True):
    """One firing of a schedule, with the process that runs it."""

    __tablename__ = "cycles"
    __table_args__ = (
        # The lock: at most one running cycle per schedule, whoever starts it.
        Index("uq_cycles_running", "schedule", unique=True, sqlite_where=RUNNING),
        # A firing is claimed once; cycles without a key do not take part.
        UniqueConstraint("schedule", "fire_key", name="uq_cycles_fire_key"),
        Index("ix_cycles_started_at", "started_at"),
        Index("ix_cycles_schedule_started_at", "schedule", "started_at"),
        Index("ix_cycles_status_started_at", "status", "started_at"),
        Index("ix_cycles_incident", "incident", "id"),
        Index("ix_cycles_unarchived", "started_at", sqlite_where=UNARCHIVED),
        one_of("cycles", "trigger", Trigger),
        one_of("cycles", "status", CycleStatus),
    )

    id: int = Field(primary_key=True, sa_type=Key)
    schedule: str = Field(sa_type=AnyText)
    trigger: str = Field(sa_type=AnyText)
    status: str = Field(sa_type=AnyText)
    dry_run: bool
    reason: str | None = Field(sa_type=AnyText)
    detail: str | None = Field(sa_type=AnyText)
    incident: int | None = Field(sa_type=BigInteger)
    fire_key: str | None = Field(sa_type=AnyText)
    max_tier: int | None
    owner_host: str | None = Field(sa_type=AnyText)
    owner_pid: int | None
    owner_started: float | None
    started_at: datetime = Field(sa_type=UtcDateTime)
    ended_at: datetime | None = Field(sa_type=UtcDateTime)
    request: dict[str, Any] | None = Field(sa_type=JSON(none_as_null=True))
    heartbeat_at: datetime | None = Field(sa_type=UtcDateTime)
    stop_asked_by: str | None = Field(sa_type=AnyText)
    archived_at: datetime | None = Field(sa_type=UtcDateTime)
    # What it holds in this database, counted once it is over; see ``retention``.
    message_bytes: int | None = Field(sa_type=BigInteger)
    record_bytes: int | None = Field(sa_type=BigInteger)


class SessionRow(Record, table=True):
    """One CLI process, from the intent to start it to its outcome."""

    __tablename__ = "sessions"
    __table_args__ = (
        Index("ix_sessions_cycle_id", "cycle_id"),
        Index("ix_sessions_parent_session_id", "parent_session_id"),
        Index("ix_sessions_session_id", "session_id"),
        Index("ix_sessions_ended_at", "ended_at"),
        Index("ix_sessions_model_runtime_id", "model", "runtime_id", "id"),
        Index("ix_sessions_status", "status", "id"),
        one_of("sessions", "status", SessionStatus),
        one_of("sessions", "continuity", ContinuityKind),
        one_of("sessions", "cost_basis", CostBasis),
    )

    id: int = Field(primary_key=True, sa_type=Key)
    cycle_id: int = Field(foreign_key="cycles.id", sa_type=BigInteger)
    tier: int
    model: str = Field(sa_type=AnyText)
    session_id: str | None = Field(sa_type=AnyText)
    parent_session_id: int | None = Field(foreign_key="sessions.id", sa_type=BigInteger)
    status: str = Field(sa_type=AnyText)
    continuity: str = Field(sa_type=AnyText)
    reason: str = Field(sa_type=AnyText)
    work_dir: str = Field(sa_type=AnyText)
    runtime_id: str = Field(sa_type=AnyText)
    resumed_from: str | None = Field(sa_type=AnyText)
    epoch: int
    failure: str | None = Field(sa_type=AnyText)
    detail: str | None = Field(sa_type=AnyText)
    model_id: str | None = Field(sa_type=AnyText)
    cost_usd: float | None
    cost_basis: str = Field(sa_type=AnyText)
    input_tokens: int | None = Field(sa_type=BigInteger)
    output_tokens: int | None = Field(sa_type=BigInteger)
    cache_read_tokens: int | None = Field(sa_type=BigInteger)
    cache_write_tokens: int | None = Field(sa_type=BigInteger)
    context_tokens: int | None = Field(sa_type=BigInteger)
    context_window: int | None = Field(sa_type=BigInteger)
    first_call_tokens: int | None = Field(sa_type=BigInteger)
    prompt_bytes: int | None = Field(sa_type=BigInteger)
    reported_usage: dict[str, Any] = Field(sa_type=JSON)
    num_turns: int | None
    messages: int
    exit_code: int | None
    stop_reason: str | None = Field(sa_type=AnyText)
    tool_calls_allowed: int
    tool_calls_denied: int
    tool_calls_deferred: int
    tools_executed: int
    report: dict[str, Any] | None = Field(sa_type=JSON(none_as_null=True))
    unknown_lines: int
    pid: int | None
    pid_started: float | None
    created_at: datetime = Field(sa_type=UtcDateTime)
    started_at: datetime | None = Field(sa_type=UtcDateTime)
    last_message_at: datetime | None = Field(sa_type=UtcDateTime)
    ended_at: datetime | None = Field(sa_type=UtcDateTime)
    resumes: int = Field(sa_column_kwargs={"server_default": "0"})


class EventRow(Record, table=True):
    """One entry of a cycle's append-only record. ``session_id`` is the record's id, not the CLI's."""

    __tablename__ = "events"
    __table_args__ = (
        Index("ix_events_cycle_id", "cycle_id", "id"),
        Index("ix_events_session_id", "session_id", "id"),
    )

    id: int = Field(primary_key=True, sa_type=Key)
    cycle_id: int = Field(foreign_key="cycles.id", sa_type=BigInteger)
    session_id: int | None = Field(foreign_key="sessions.id", sa_type=BigInteger)
    kind: str = Field(sa_type=AnyText)
    level: str = Field(sa_type=AnyText)
    at: datetime = Field(sa_type=UtcDateTime)
    text: str = Field(sa_type=AnyText)
    data: dict[str, Any] = Field(sa_type=JSON)


CYCLES: Table = Record.metadata.tables["cycles"]
SESSIONS: Table = Record.metadata.tables["sessions"]
EVENTS: Table = Record.metadata.tables["events"]
