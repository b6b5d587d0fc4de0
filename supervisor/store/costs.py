"""Adding costs up by tier, schedule, model or day. Does I/O on the caller's connection. Used by ``reads``.

Whole days come from the ledger, so that pruned records count and a million of them take no longer than a thousand. What
the ledger cannot say comes from the records: the first day as far as it counts, and sessions that have not ended.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, String, and_, case, cast, func, literal_column, or_, select

from supervisor.model.session import CostBasis, Tokens
from supervisor.store.ledger import utc_day
from supervisor.store.lifecycle_tables import LEDGER
from supervisor.store.records import CostBy, CostRow
from supervisor.store.tables import CYCLES, SESSIONS

_TOKENS = ("input", "output", "cache_read", "cache_write")
_DAY = timedelta(days=1)


def cost_rows(connection: Connection, since: datetime | None, by: CostBy) -> list[CostRow]:
    """What sessions cost that ended since then or have not ended yet, by key in ascending order."""
    key = _key(by, connection.dialect.name)
    live = _of_records(key).group_by(key)
    if by is CostBy.SCHEDULE:
        live = live.join(CYCLES, CYCLES.c.id == SESSIONS.c.cycle_id)
    kept = _of_ledger(LEDGER.c[by.value]).group_by(LEDGER.c[by.value])
    unfinished = SESSIONS.c.ended_at.is_(None)
    if since is None:
        live = live.where(unfinished)
    elif _day_is_in_records(connection, since):
        rest_of_day = and_(SESSIONS.c.ended_at >= since, SESSIONS.c.ended_at < _midnight(since) + _DAY)
        live = live.where(or_(rest_of_day, unfinished))
        kept = kept.where(LEDGER.c.day > utc_day(since))
    else:
        live = live.where(unfinished)
        kept = kept.where(LEDGER.c.day >= utc_day(since))
    rows = (_cost_row(row) for statement in (kept, live) for row in connection.execute(statement))
    merged = _merged(rows)
    return (
        sorted(merged, key=lambda row: int(row.key)) if by is CostBy.TIER else sorted(merged, key=lambda row: row.key)
    )


def _day_is_in_records(connection: Connection, since: datetime) -> bool:
    """Whether the day of ``since`` has to be read from the records, and can be: none of it was pruned."""
    start = _midnight(since)
    if start == since:
        return False
    of_day = and_(SESSIONS.c.ended_at >= start, SESSIONS.c.ended_at < start + _DAY)
    live = connection.execute(select(func.count()).select_from(SESSIONS).where(of_day)).scalar_one()
    counted = select(func.coalesce(func.sum(LEDGER.c.sessions), 0)).where(LEDGER.c.day == utc_day(since))
    return bool(live >= connection.execute(counted).scalar_one())


def _midnight(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _key(by: CostBy, dialect: str) -> ColumnElement[Any]:
    match by:
        case CostBy.TIER:
            return SESSIONS.c.tier
        case CostBy.SCHEDULE:
            return CYCLES.c.schedule
        case CostBy.MODEL:
            # An expression, so that SQLite finds the rows by time and does not walk the index on models to save a sort.
            return cast(SESSIONS.c.model, String)
        case CostBy.DAY:
            return _utc_day(dialect)


def _utc_day(dialect: str) -> ColumnElement[Any]:
    """The date on which a session ended; of one that runs, the date it was last heard of."""
    moment = func.coalesce(SESSIONS.c.ended_at, SESSIONS.c.last_message_at, SESSIONS.c.created_at)
    # Literals, so that the database sees one and the same expression in SELECT and GROUP BY.
    if dialect == "postgresql":
        return func.to_char(func.timezone(literal_column("'UTC'"), moment), literal_column("'YYYY-MM-DD'"))
    return func.substr(cast(moment, String), literal_column("1"), literal_column("10"))


def _of_records(key: ColumnElement[Any]) -> Select[Any]:
    cost = SESSIONS.c.cost_usd
    return select(
        key.label("key"),
        func.count().label("sessions"),
        func.sum(cost).label("cost_usd"),
        func.sum(case((cost.is_(None), 1), else_=0)).label("unknown"),
        func.sum(case((SESSIONS.c.cost_basis == CostBasis.ESTIMATED, 1), else_=0)).label("estimated"),
        *(func.coalesce(func.sum(SESSIONS.c[f"{kind}_tokens"]), 0).label(kind) for kind in _TOKENS),
    ).select_from(SESSIONS)


def _of_ledger(key: ColumnElement[Any]) -> Select[Any]:
    sums = (func.sum(LEDGER.c[name]).label(name) for name in ("sessions", "cost_usd", "unknown", "estimated"))
    tokens = (func.sum(LEDGER.c[f"{kind}_tokens"]).label(kind) for kind in _TOKENS)
    return select(key.label("key"), *sums, *tokens)


def _cost_row(row: Any) -> CostRow:
    # PostgreSQL adds big integers up to a Decimal.
    sessions, unknown = int(row.sessions), int(row.unknown)
    return CostRow(
        key=str(row.key),
        sessions=sessions,
        cost_usd=row.cost_usd if unknown < sessions else None,
        unknown=unknown,
        estimated=int(row.estimated),
        tokens=Tokens(**{kind: int(getattr(row, kind)) for kind in _TOKENS}),
    )


def _merged(rows: Iterable[CostRow]) -> list[CostRow]:
    """The rows with those of one key made one."""
    by_key: dict[str, CostRow] = {}
    for row in rows:
        other = by_key.get(row.key)
        by_key[row.key] = row if other is None else _sum(other, row)
    return list(by_key.values())


def _sum(one: CostRow, other: CostRow) -> CostRow:
    known = [row.cost_usd for row in (one, other) if row.cost_usd is not None]
    return CostRow(
        key=one.key,
        sessions=one.sessions + other.sessions,
        cost_usd=sum(known) if known else None,
        unknown=one.unknown + other.unknown,
        estimated=one.estimated + other.estimated,
        tokens=one.tokens + other.tokens,
    )
