"""The declared schema of what the guard records. No I/O. Read by ``calls``, ``cooldowns``, ``approvals``, ``switch``.

A change here needs a migration with the same effect, as in ``tables``. These are plain tables: as SQLModel classes,
which nothing would instantiate, they would make every start of opsladder wait a tenth longer for this package. In all
of them ``session_id`` is the record's id, not the CLI's.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    UniqueConstraint,
    text,
)

from supervisor.model.guarding import ApprovalStatus, CallOutcome
from supervisor.model.permission import ActionKind, Verdict
from supervisor.model.report import Health
from supervisor.store.base import Record, one_of
from supervisor.store.columns import AnyText, Key, UtcDateTime

# Written out rather than bound: SQLite uses a partial index only for a condition it can recognise.
OPEN = text("cleared_at IS NULL")

# One answer of the guard. A session that asks again about the same call gets a row with the next "ask".
TOOL_CALLS = Table(
    "tool_calls",
    Record.metadata,
    Column("id", Key, primary_key=True),
    Column("session_id", BigInteger, ForeignKey("sessions.id"), nullable=False),
    Column("cycle_id", BigInteger, ForeignKey("cycles.id"), nullable=False),
    Column("tool_use_id", AnyText, nullable=False),
    Column("ask", Integer, nullable=False),
    Column("tool", AnyText, nullable=False),
    Column("input", JSON, nullable=False),
    Column("text", AnyText, nullable=False),
    Column("verdict", AnyText, nullable=False),
    Column("rule", AnyText, nullable=False),
    Column("sentence", AnyText, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("outcome", AnyText),
    Column("ended_at", UtcDateTime),
    # No CLI asks about one call twice at the same moment: whoever does so gets an error, and no call through.
    UniqueConstraint("session_id", "tool_use_id", "ask", name="uq_tool_calls_ask"),
    Index("ix_tool_calls_session_id", "session_id", "id"),
    Index("ix_tool_calls_cycle_id", "cycle_id"),
    one_of("tool_calls", "verdict", Verdict),
    one_of("tool_calls", "outcome", CallOutcome),
)

# One slot of a cooldown that a call took. A call that does one thing twice takes two, told apart by "number".
SERVICE_ACTIONS = Table(
    "service_actions",
    Record.metadata,
    Column("id", Key, primary_key=True),
    Column("kind", AnyText, nullable=False),
    Column("service", AnyText, nullable=False),
    Column("session_id", BigInteger, ForeignKey("sessions.id"), nullable=False),
    Column("tool_use_id", AnyText, nullable=False),
    Column("number", Integer, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("cleared_at", UtcDateTime),
    UniqueConstraint("session_id", "tool_use_id", "number", name="uq_service_actions_call"),
    Index("ix_service_actions_open", "service", "at", sqlite_where=OPEN),
    Index("ix_service_actions_at", "at"),
    one_of("service_actions", "kind", ActionKind),
)

# One service. Its row is also the lock under which its slots are taken and cleared.
SERVICES = Table(
    "services",
    Record.metadata,
    Column("name", AnyText, primary_key=True),
    Column("status", AnyText),
    Column("healthy_streak", Integer, nullable=False),
    Column("since", UtcDateTime),
    # Not a reference: a service outlives the cycles that are pruned.
    Column("last_cycle", BigInteger),
    one_of("services", "status", Health),
)

# A tool call put before a person, and the answer.
APPROVALS = Table(
    "approvals",
    Record.metadata,
    Column("id", Key, primary_key=True),
    Column("session_id", BigInteger, ForeignKey("sessions.id"), nullable=False),
    Column("cycle_id", BigInteger, ForeignKey("cycles.id"), nullable=False),
    Column("tier", Integer, nullable=False),
    Column("tool_use_id", AnyText, nullable=False),
    Column("tool", AnyText, nullable=False),
    Column("input", JSON, nullable=False),
    Column("input_hash", AnyText, nullable=False),
    Column("text", AnyText, nullable=False),
    Column("rule", AnyText, nullable=False),
    Column("sentence", AnyText, nullable=False),
    Column("services", JSON, nullable=False),
    Column("status", AnyText, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("decided_at", UtcDateTime),
    Column("decided_by", AnyText),
    Column("reason", AnyText),
    Column("used_at", UtcDateTime),
    Column("used_by", BigInteger, ForeignKey("sessions.id")),
    UniqueConstraint("session_id", "tool_use_id", name="uq_approvals_call"),
    Index("ix_approvals_status_expires_at", "status", "expires_at"),
    Index("ix_approvals_cycle_id", "cycle_id"),
    Index("ix_approvals_used_by", "used_by"),
    one_of("approvals", "status", ApprovalStatus),
)

# One turn of the switch. Rows are only ever added: the newest one is the state.
SWITCH = Table(
    "switch",
    Record.metadata,
    Column("id", Key, primary_key=True),
    Column("paused", Boolean, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("turned_by", AnyText, nullable=False),
    Column("reason", AnyText),
)
