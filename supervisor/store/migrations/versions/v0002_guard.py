"""What the guard records: tool calls, cooldowns, services, approvals and the switch. Run by Alembic."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.DateTime(timezone=True)
_OPEN = sa.text("cleared_at IS NULL")


def upgrade() -> None:
    op.create_table(
        "tool_calls",
        sa.Column("id", _KEY, primary_key=True),
        sa.Column("session_id", sa.BigInteger, sa.ForeignKey("sessions.id"), nullable=False),
        sa.Column("cycle_id", sa.BigInteger, sa.ForeignKey("cycles.id"), nullable=False),
        sa.Column("tool_use_id", sa.Text, nullable=False),
        sa.Column("ask", sa.Integer, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("input", sa.JSON, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("sentence", sa.Text, nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("outcome", sa.Text),
        sa.Column("ended_at", _TIME),
        sa.UniqueConstraint("session_id", "tool_use_id", "ask", name="uq_tool_calls_ask"),
        sa.CheckConstraint("verdict IN ('allow', 'deny', 'defer')", name="ck_tool_calls_verdict"),
        sa.CheckConstraint("outcome IN ('succeeded', 'failed')", name="ck_tool_calls_outcome"),
    )
    op.create_index("ix_tool_calls_session_id", "tool_calls", ["session_id", "id"])
    op.create_index("ix_tool_calls_cycle_id", "tool_calls", ["cycle_id"])

    op.create_table(
        "service_actions",
        sa.Column("id", _KEY, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("service", sa.Text, nullable=False),
        sa.Column("session_id", sa.BigInteger, sa.ForeignKey("sessions.id"), nullable=False),
        sa.Column("tool_use_id", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("cleared_at", _TIME),
        sa.UniqueConstraint("session_id", "tool_use_id", "number", name="uq_service_actions_call"),
        sa.CheckConstraint("kind IN ('restart', 'redeploy')", name="ck_service_actions_kind"),
    )
    op.create_index(
        "ix_service_actions_open", "service_actions", ["service", "at"], sqlite_where=_OPEN, postgresql_where=_OPEN
    )
    op.create_index("ix_service_actions_at", "service_actions", ["at"])

    op.create_table(
        "services",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("status", sa.Text),
        sa.Column("healthy_streak", sa.Integer, nullable=False),
        sa.Column("since", _TIME),
        sa.Column("last_cycle", sa.BigInteger),
        sa.CheckConstraint("status IN ('healthy', 'degraded', 'down', 'unreachable')", name="ck_services_status"),
    )

    op.create_table(
        "approvals",
        sa.Column("id", _KEY, primary_key=True),
        sa.Column("session_id", sa.BigInteger, sa.ForeignKey("sessions.id"), nullable=False),
        sa.Column("cycle_id", sa.BigInteger, sa.ForeignKey("cycles.id"), nullable=False),
        sa.Column("tier", sa.Integer, nullable=False),
        sa.Column("tool_use_id", sa.Text, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("input", sa.JSON, nullable=False),
        sa.Column("input_hash", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("sentence", sa.Text, nullable=False),
        sa.Column("services", sa.JSON, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.Column("decided_at", _TIME),
        sa.Column("decided_by", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("used_at", _TIME),
        sa.Column("used_by", sa.BigInteger, sa.ForeignKey("sessions.id")),
        sa.UniqueConstraint("session_id", "tool_use_id", name="uq_approvals_call"),
        sa.CheckConstraint(
            "status IN ('waiting', 'approved', 'denied', 'expired', 'used')", name="ck_approvals_status"
        ),
    )
    op.create_index("ix_approvals_status_expires_at", "approvals", ["status", "expires_at"])
    op.create_index("ix_approvals_cycle_id", "approvals", ["cycle_id"])
    op.create_index("ix_approvals_used_by", "approvals", ["used_by"])

    op.create_table(
        "switch",
        sa.Column("id", _KEY, primary_key=True),
        sa.Column("paused", sa.Boolean, nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("turned_by", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
    )
