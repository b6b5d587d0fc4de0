"""Cycles, sessions and events. Run by Alembic."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.DateTime(timezone=True)
_RUNNING = sa.text("status = 'running'")


def upgrade() -> None:
    op.create_table(
        "cycles",
        sa.Column("id", _KEY, primary_key=True),
        sa.Column("schedule", sa.Text, nullable=False),
        sa.Column("trigger", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("dry_run", sa.Boolean, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("detail", sa.Text),
        sa.Column("incident", sa.BigInteger),
        sa.Column("fire_key", sa.Text),
        sa.Column("max_tier", sa.Integer),
        sa.Column("owner_host", sa.Text),
        sa.Column("owner_pid", sa.Integer),
        sa.Column("owner_started", sa.Float),
        sa.Column("started_at", _TIME, nullable=False),
        sa.Column("ended_at", _TIME),
        sa.UniqueConstraint("schedule", "fire_key", name="uq_cycles_fire_key"),
        sa.CheckConstraint(
            "trigger IN ('schedule', 'manual', 'api', 'alert', 'retry', 'demo')",
            name="ck_cycles_trigger",
        ),
        sa.CheckConstraint(
            "status IN ('running', 'healthy', 'resolved', 'unresolved', 'blocked', 'paused', 'failed', 'stopped', "
            "'skipped')",
            name="ck_cycles_status",
        ),
    )
    op.create_index(
        "uq_cycles_running", "cycles", ["schedule"], unique=True, sqlite_where=_RUNNING, postgresql_where=_RUNNING
    )
    op.create_index("ix_cycles_started_at", "cycles", ["started_at"])
    op.create_index("ix_cycles_schedule_started_at", "cycles", ["schedule", "started_at"])
    op.create_index("ix_cycles_status_started_at", "cycles", ["status", "started_at"])

    op.create_table(
        "sessions",
        sa.Column("id", _KEY, primary_key=True),
        sa.Column("cycle_id", sa.BigInteger, sa.ForeignKey("cycles.id"), nullable=False),
        sa.Column("tier", sa.Integer, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text),
        sa.Column("parent_session_id", sa.BigInteger, sa.ForeignKey("sessions.id")),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("continuity", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("work_dir", sa.Text, nullable=False),
        sa.Column("runtime_id", sa.Text, nullable=False),
        sa.Column("resumed_from", sa.Text),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("failure", sa.Text),
        sa.Column("detail", sa.Text),
        sa.Column("model_id", sa.Text),
        sa.Column("cost_usd", sa.Float),
        sa.Column("cost_basis", sa.Text, nullable=False),
        sa.Column("input_tokens", sa.BigInteger),
        sa.Column("output_tokens", sa.BigInteger),
        sa.Column("cache_read_tokens", sa.BigInteger),
        sa.Column("cache_write_tokens", sa.BigInteger),
        sa.Column("context_tokens", sa.BigInteger),
        sa.Column("context_window", sa.BigInteger),
        sa.Column("first_call_tokens", sa.BigInteger),
        sa.Column("prompt_bytes", sa.BigInteger),
        sa.Column("reported_usage", sa.JSON, nullable=False),
        sa.Column("num_turns", sa.Integer),
        sa.Column("messages", sa.Integer, nullable=False),
        sa.Column("exit_code", sa.Integer),
        sa.Column("stop_reason", sa.Text),
        sa.Column("tool_calls_allowed", sa.Integer, nullable=False),
        sa.Column("tool_calls_denied", sa.Integer, nullable=False),
        sa.Column("tool_calls_deferred", sa.Integer, nullable=False),
        sa.Column("tools_executed", sa.Integer, nullable=False),
        sa.Column("report", sa.JSON),
        sa.Column("unknown_lines", sa.Integer, nullable=False),
        sa.Column("pid", sa.Integer),
        sa.Column("pid_started", sa.Float),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("started_at", _TIME),
        sa.Column("last_message_at", _TIME),
        sa.Column("ended_at", _TIME),
        sa.CheckConstraint(
            "status IN ('created', 'active', 'paused', 'completed', 'failed', 'timed_out', 'interrupted', 'stopped', "
            "'rejected', 'expired')",
            name="ck_sessions_status",
        ),
        sa.CheckConstraint("continuity IN ('fresh', 'resume', 'handoff')", name="ck_sessions_continuity"),
        sa.CheckConstraint("cost_basis IN ('reported', 'estimated', 'unknown')", name="ck_sessions_cost_basis"),
    )
    op.create_index("ix_sessions_cycle_id", "sessions", ["cycle_id"])
    op.create_index("ix_sessions_parent_session_id", "sessions", ["parent_session_id"])
    op.create_index("ix_sessions_session_id", "sessions", ["session_id"])
    op.create_index("ix_sessions_ended_at", "sessions", ["ended_at"])
    op.create_index("ix_sessions_model_runtime_id", "sessions", ["model", "runtime_id", "id"])

    op.create_table(
        "events",
        sa.Column("id", _KEY, primary_key=True),
        sa.Column("cycle_id", sa.BigInteger, sa.ForeignKey("cycles.id"), nullable=False),
        sa.Column("session_id", sa.BigInteger, sa.ForeignKey("sessions.id")),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("level", sa.Text, nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("data", sa.JSON, nullable=False),
    )
    op.create_index("ix_events_cycle_id", "events", ["cycle_id", "id"])
    op.create_index("ix_events_session_id", "events", ["session_id", "id"])
