"""What the service keeps: tallies for metrics, messages to people, and how far the schedules have been dealt with.
Run by Alembic."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "tallies",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("labels", sa.Text, primary_key=True),
        sa.Column("value", sa.Float, nullable=False),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", _KEY, primary_key=True),
        sa.Column("event_id", sa.BigInteger, unique=True),
        sa.Column("cycle_id", sa.BigInteger),
        sa.Column("schedule", sa.Text),
        sa.Column("level", sa.Text, nullable=False),
        sa.Column("topic", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("next_try_at", _TIME, nullable=False),
        sa.Column("sent_at", _TIME),
        sa.Column("error", sa.Text),
        sa.CheckConstraint("level IN ('info', 'warning', 'critical')", name="ck_deliveries_level"),
        sa.CheckConstraint("status IN ('waiting', 'sent', 'failed', 'held_back')", name="ck_deliveries_status"),
    )
    op.create_index("ix_deliveries_status_next_try_at", "deliveries", ["status", "next_try_at"])
    op.create_index("ix_deliveries_topic", "deliveries", ["topic", "id"])
    op.create_table(
        "firings",
        sa.Column("schedule", sa.Text, primary_key=True),
        sa.Column("dealt_until", _TIME, nullable=False),
    )
