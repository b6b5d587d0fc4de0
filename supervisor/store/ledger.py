"""What stays of records when they are pruned: sums by day. Does I/O. Entered by ``writes``, read by ``costs``.

A record is entered in the transaction that ends it, once and with the status it ended with: what becomes of it later,
such as a paused session that expires, changes nothing here. An unknown cost is counted as unknown, never as 0.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import Connection, RowMapping, text

from supervisor.model.session import CostBasis

_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_SUMS = ("sessions", "cost_usd", "unknown", "estimated", *_TOKENS)
_KEYS = ("day", "schedule", "tier", "model", "status", "continuity")


def _added(table: str, *columns: str) -> str:
    return ", ".join(f"{column} = {table}.{column} + excluded.{column}" for column in columns)


# In SQL, as in ``cooldowns``: SQLAlchemy has a statement of its own for each dialect, and loading both takes long.
_ENTER_SESSION = text(
    f"INSERT INTO ledger ({', '.join((*_KEYS, *_SUMS))}) "  # noqa: S608 - names of our own columns
    "VALUES (:day, (SELECT schedule FROM cycles WHERE id = :cycle_id), :tier, :model, :status, :continuity, "
    f"{', '.join(f':{column}' for column in _SUMS)}) "
    f"ON CONFLICT ({', '.join(_KEYS)}) DO UPDATE SET {_added('ledger', *_SUMS)}"
)
_ENTER_CYCLE = text(
    "INSERT INTO cycle_ledger (day, schedule, status, cycles) VALUES (:day, :schedule, :status, 1) "  # noqa: S608
    f"ON CONFLICT (day, schedule, status) DO UPDATE SET {_added('cycle_ledger', 'cycles')}"
)


def enter_sessions(connection: Connection, rows: Sequence[RowMapping]) -> None:
    """Count sessions that have just ended."""
    connection.execute(_ENTER_SESSION, [_values(row) for row in rows])


def _values(row: RowMapping) -> dict[str, object]:
    cost = row["cost_usd"]
    return {
        "day": utc_day(row["ended_at"]),
        "cycle_id": row["cycle_id"],
        **{name: row[name] for name in ("tier", "model", "status", "continuity")},
        "sessions": 1,
        "cost_usd": 0.0 if cost is None else cost,
        "unknown": int(cost is None),
        "estimated": int(row["cost_basis"] == CostBasis.ESTIMATED),
        **{name: row[name] or 0 for name in _TOKENS},
    }


def enter_cycle(connection: Connection, row: RowMapping) -> None:
    """Count a cycle that has just ended. One that is paused has not."""
    values = {"day": utc_day(row["ended_at"]), "schedule": row["schedule"], "status": row["status"]}
    connection.execute(_ENTER_CYCLE, values)


def utc_day(at: datetime) -> str:
    """The day to which a time belongs in the ledger."""
    return f"{at.astimezone(UTC):%Y-%m-%d}"
