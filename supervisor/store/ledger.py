"""What stays of records when they are pruned: sums by day. Does I/O. Entered by ``writes``, read by ``costs``.

A record is entered in the transaction that ends it, once and with the status it ended with: what becomes of it later,
such as a paused session that expires, changes nothing here. An unknown cost is counted as unknown, never as 0.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, RowMapping, func, select, text

from supervisor.model.session import CostBasis, Tokens
from supervisor.store.engine import Database
from supervisor.store.lifecycle_tables import CYCLE_LEDGER, LEDGER

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """All that ever ended, whether its records are still there or not.

    ``sessions`` by tier, status and continuity; ``cost_usd`` by tier and model, as far as it is known; ``tokens`` by
    tier; ``cycles`` by schedule and status.
    """

    sessions: Mapping[tuple[int, str, str], int]
    cost_usd: Mapping[tuple[int, str], float]
    tokens: Mapping[int, Tokens]
    cycles: Mapping[tuple[str, str], int]


class Ledger:
    """The sums of a ``Store``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def totals(self) -> Totals:
        """Everything that ended, in two queries, however many records that were."""
        keys = [LEDGER.c[name] for name in ("tier", "model", "status", "continuity")]
        sums = [func.sum(LEDGER.c[name]).label(name) for name in ("sessions", "cost_usd", *_TOKENS)]
        of_cycles = (CYCLE_LEDGER.c.schedule, CYCLE_LEDGER.c.status)
        with self._database.reading() as connection:
            rows = connection.execute(select(*keys, *sums).group_by(*keys)).all()
            ended = connection.execute(select(*of_cycles, func.sum(CYCLE_LEDGER.c.cycles)).group_by(*of_cycles)).all()
        sessions: Counter[tuple[int, str, str]] = Counter()
        cost: defaultdict[tuple[int, str], float] = defaultdict(float)
        tokens: defaultdict[int, Tokens] = defaultdict(Tokens)
        for row in rows:
            # PostgreSQL adds big integers up to a Decimal.
            sessions[row.tier, row.status, row.continuity] += int(row.sessions)
            cost[row.tier, row.model] += row.cost_usd
            tokens[row.tier] += Tokens(
                input=int(row.input_tokens),
                output=int(row.output_tokens),
                cache_read=int(row.cache_read_tokens),
                cache_write=int(row.cache_write_tokens),
            )
        cycles = {(schedule, status): int(count) for schedule, status, count in ended}
        return Totals(sessions=dict(sessions), cost_usd=dict(cost), tokens=dict(tokens), cycles=cycles)


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
