"""The declared schema of what the service keeps: tallies, deliveries, firings. No I/O. Read by modules of those names.

A change here needs a migration with the same effect, as in ``tables``. Plain tables for the same reason as in
``guard_tables``.
"""

from sqlalchemy import BigInteger, Column, Float, Index, Integer, Table

from supervisor.model.delivery import DeliveryStatus
from supervisor.model.report import Level
from supervisor.store.base import Record, one_of
from supervisor.store.columns import AnyText, Key, UtcDateTime

# What is counted for good, each in the transaction that makes it true: it outlives restarts and pruned records.
# "labels" is a JSON object with sorted keys.
TALLIES = Table(
    "tallies",
    Record.metadata,
    Column("name", AnyText, primary_key=True),
    Column("labels", AnyText, primary_key=True),
    Column("value", Float, nullable=False),
)

# Something that a person is told, and whether that has worked. Made from a notice on a cycle's record, once each.
DELIVERIES = Table(
    "deliveries",
    Record.metadata,
    Column("id", Key, primary_key=True),
    # Not references: what was told stays known when the records are pruned.
    Column("event_id", BigInteger, unique=True),
    Column("cycle_id", BigInteger),
    Column("schedule", AnyText),
    Column("level", AnyText, nullable=False),
    Column("topic", AnyText, nullable=False),
    Column("title", AnyText, nullable=False),
    Column("body", AnyText, nullable=False),
    Column("status", AnyText, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("next_try_at", UtcDateTime, nullable=False),
    Column("sent_at", UtcDateTime),
    Column("error", AnyText),
    Index("ix_deliveries_status_next_try_at", "status", "next_try_at"),
    Index("ix_deliveries_topic", "topic", "id"),
    one_of("deliveries", "level", Level),
    one_of("deliveries", "status", DeliveryStatus),
)

# Up to which time the firings of a schedule have been dealt with.
FIRINGS = Table(
    "firings",
    Record.metadata,
    Column("schedule", AnyText, primary_key=True),
    Column("dealt_until", UtcDateTime, nullable=False),
)
