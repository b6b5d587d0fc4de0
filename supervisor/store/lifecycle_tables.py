"""The declared schema of what outlives one run: history, incidents, ledger. No I/O. Read by the modules of those names.

A change here needs a migration with the same effect, as in ``tables``. Plain tables for the same reason as in
``guard_tables``. ``session_id`` is the record's id, not the CLI's.
"""

from sqlalchemy import JSON, BigInteger, Column, Float, ForeignKey, Index, Integer, Table

from supervisor.model.incident import IncidentStatus
from supervisor.store.base import Record, one_of
from supervisor.store.columns import AnyText, Key, UtcDateTime

# One change of a status. Rows are only ever added. Without a session it is the cycle's own.
TRANSITIONS = Table(
    "transitions",
    Record.metadata,
    Column("id", Key, primary_key=True),
    Column("cycle_id", BigInteger, ForeignKey("cycles.id"), nullable=False),
    Column("session_id", BigInteger, ForeignKey("sessions.id")),
    Column("at", UtcDateTime, nullable=False),
    Column("from_status", AnyText),
    Column("to_status", AnyText, nullable=False),
    Column("why", AnyText),
    Column("made_by", AnyText, nullable=False),
    Index("ix_transitions_cycle_id", "cycle_id", "id"),
    Index("ix_transitions_session_id", "session_id", "id"),
)

# Trouble with some services of a schedule, over all the cycles that met it.
INCIDENTS = Table(
    "incidents",
    Record.metadata,
    Column("id", Key, primary_key=True),
    Column("schedule", AnyText, nullable=False),
    Column("status", AnyText, nullable=False),
    Column("services", JSON, nullable=False),
    Column("healthy_streak", Integer, nullable=False),
    Column("reopened", Integer, nullable=False),
    # Not a reference: an incident outlives the cycles that are pruned.
    Column("last_cycle", BigInteger, nullable=False),
    Column("opened_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("closed_at", UtcDateTime),
    Index("ix_incidents_schedule", "schedule", "status", "updated_at"),
    Index("ix_incidents_updated_at", "updated_at"),
    one_of("incidents", "status", IncidentStatus),
)

# The session a tier of a later cycle may resume, by its stable key.
KEPT_SESSIONS = Table(
    "kept_sessions",
    Record.metadata,
    Column("schedule", AnyText, primary_key=True),
    Column("incident", BigInteger, ForeignKey("incidents.id"), primary_key=True),
    Column("tier", Integer, primary_key=True),
    Column("session_id", BigInteger, ForeignKey("sessions.id"), nullable=False),
    Column("kept_at", UtcDateTime, nullable=False),
    Index("ix_kept_sessions_session_id", "session_id"),
)

# What ended sessions cost, by UTC day: totals stay when the records go.
LEDGER = Table(
    "ledger",
    Record.metadata,
    Column("day", AnyText, primary_key=True),
    Column("schedule", AnyText, primary_key=True),
    Column("tier", Integer, primary_key=True),
    Column("model", AnyText, primary_key=True),
    Column("status", AnyText, primary_key=True),
    Column("continuity", AnyText, primary_key=True),
    Column("sessions", BigInteger, nullable=False),
    Column("cost_usd", Float, nullable=False),
    Column("unknown", BigInteger, nullable=False),
    Column("estimated", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cache_read_tokens", BigInteger, nullable=False),
    Column("cache_write_tokens", BigInteger, nullable=False),
)

# How cycles ended, by UTC day.
CYCLE_LEDGER = Table(
    "cycle_ledger",
    Record.metadata,
    Column("day", AnyText, primary_key=True),
    Column("schedule", AnyText, primary_key=True),
    Column("status", AnyText, primary_key=True),
    Column("cycles", BigInteger, nullable=False),
)

# What all measured cycles hold together, by kind: adding it up anew would read them all.
SIZES = Table(
    "sizes",
    Record.metadata,
    Column("kind", AnyText, primary_key=True),
    Column("bytes", BigInteger, nullable=False),
)
