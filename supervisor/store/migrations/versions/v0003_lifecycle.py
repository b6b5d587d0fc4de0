"""What outlives one run: the history of statuses, heartbeats, incidents with their kept sessions, and the ledger.
Run by Alembic."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.DateTime(timezone=True)
_UNARCHIVED = sa.text("archived_at IS NULL")


def upgrade() -> None:
    op.add_column("cycles", sa.Column("request", sa.JSON))
    op.add_column("cycles", sa.Column("heartbeat_at", _TIME))
    op.add_column("cycles", sa.Column("stop_asked_by", sa.Text))
    op.add_column("cycles", sa.Column("archived_at", _TIME))
    op.add_column("cycles", sa.Column("message_bytes", sa.BigInteger))
    op.add_column("cycles", sa.Column("record_bytes", sa.BigInteger))
    op.create_index("ix_cycles_incident", "cycles", ["incident", "id"])
    op.create_index(
        "ix_cycles_unarchived",
        "cycles",
        ["started_at"],
        sqlite_where=_UNARCHIVED,
        postgresql_where=_UNARCHIVED,
    )
    op.add_column("sessions", sa.Column("resumes", sa.Integer, nullable=False, server_default="0"))
    op.create_index("ix_sessions_status", "sessions", ["status", "id"])

    op.create_table(
        "transitions",
        sa.Column("id", _KEY, primary_key=True),
        sa.Column("cycle_id", sa.BigInteger, sa.ForeignKey("cycles.id"), nullable=False),
        sa.Column("session_id", sa.BigInteger, sa.ForeignKey("sessions.id")),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("from_status", sa.Text),
        sa.Column("to_status", sa.Text, nullable=False),
        sa.Column("why", sa.Text),
        sa.Column("made_by", sa.Text, nullable=False),
    )
    op.create_index("ix_transitions_cycle_id", "transitions", ["cycle_id", "id"])
    op.create_index("ix_transitions_session_id", "transitions", ["session_id", "id"])

    op.create_table(
        "incidents",
        sa.Column("id", _KEY, primary_key=True),
        sa.Column("schedule", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("services", sa.JSON, nullable=False),
        sa.Column("healthy_streak", sa.Integer, nullable=False),
        sa.Column("reopened", sa.Integer, nullable=False),
        sa.Column("last_cycle", sa.BigInteger, nullable=False),
        sa.Column("opened_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.Column("closed_at", _TIME),
        sa.CheckConstraint("status IN ('open', 'closed')", name="ck_incidents_status"),
    )
    op.create_index("ix_incidents_schedule", "incidents", ["schedule", "status", "updated_at"])
    op.create_index("ix_incidents_updated_at", "incidents", ["updated_at"])

    op.create_table(
        "kept_sessions",
        sa.Column("schedule", sa.Text, primary_key=True),
        sa.Column("incident", sa.BigInteger, sa.ForeignKey("incidents.id"), primary_key=True),
        sa.Column("tier", sa.Integer, primary_key=True),
        sa.Column("session_id", sa.BigInteger, sa.ForeignKey("sessions.id"), nullable=False),
        sa.Column("kept_at", _TIME, nullable=False),
    )
    op.create_index("ix_kept_sessions_session_id", "kept_sessions", ["session_id"])

    op.create_table(
        "ledger",
        sa.Column("day", sa.Text, primary_key=True),
        sa.Column("schedule", sa.Text, primary_key=True),
        sa.Column("tier", sa.Integer, primary_key=True),
        sa.Column("model", sa.Text, primary_key=True),
        sa.Column("status", sa.Text, primary_key=True),
        sa.Column("continuity", sa.Text, primary_key=True),
        sa.Column("sessions", sa.BigInteger, nullable=False),
        sa.Column("cost_usd", sa.Float, nullable=False),
        sa.Column("unknown", sa.BigInteger, nullable=False),
        sa.Column("estimated", sa.BigInteger, nullable=False),
        sa.Column("input_tokens", sa.BigInteger, nullable=False),
        sa.Column("output_tokens", sa.BigInteger, nullable=False),
        sa.Column("cache_read_tokens", sa.BigInteger, nullable=False),
        sa.Column("cache_write_tokens", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "cycle_ledger",
        sa.Column("day", sa.Text, primary_key=True),
        sa.Column("schedule", sa.Text, primary_key=True),
        sa.Column("status", sa.Text, primary_key=True),
        sa.Column("cycles", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "sizes", sa.Column("kind", sa.Text, primary_key=True), sa.Column("bytes", sa.BigInteger, nullable=False)
    )
    _enter_what_is_there()


def _enter_what_is_there() -> None:
    """Count what ended before there was a ledger."""
    day = (
        "to_char(timezone('UTC', {0}), 'YYYY-MM-DD')"
        if op.get_bind().dialect.name == "postgresql"
        else "substr({0}, 1, 10)"
    )
    op.execute(
        f"""
        INSERT INTO ledger
        SELECT {day.format("s.ended_at")}, c.schedule, s.tier, s.model, s.status, s.continuity, count(*),
               coalesce(sum(s.cost_usd), 0.0), sum(CASE WHEN s.cost_usd IS NULL THEN 1 ELSE 0 END),
               sum(CASE WHEN s.cost_basis = 'estimated' THEN 1 ELSE 0 END), coalesce(sum(s.input_tokens), 0),
               coalesce(sum(s.output_tokens), 0), coalesce(sum(s.cache_read_tokens), 0),
               coalesce(sum(s.cache_write_tokens), 0)
        FROM sessions s JOIN cycles c ON c.id = s.cycle_id WHERE s.ended_at IS NOT NULL
        GROUP BY 1, 2, 3, 4, 5, 6
        """
    )
    op.execute(
        f"""
        INSERT INTO cycle_ledger
        SELECT {day.format("ended_at")}, schedule, status, count(*)
        FROM cycles WHERE ended_at IS NOT NULL AND status <> 'paused' GROUP BY 1, 2, 3
        """
    )
