"""Fill a database with very many cycles and sessions, fast. Does I/O. Used by ``records``.

One cycle is recorded through the store; all others are its likeness with their own numbers and times, written past the
store: by ``executemany`` into SQLite, by ``COPY`` into PostgreSQL. Nothing here names a column that does not differ.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from sqlalchemy import Table

from supervisor.model.cycle import CycleStatus, Trigger
from supervisor.model.report import Health, Report, ServiceState
from supervisor.model.session import ContinuityKind, CostBasis, Reason, SessionStatus, Tokens, ToolCalls
from supervisor.store import NewSession, Owner, SessionEnd, open_store, upgrade
from supervisor.store.backup import places, rows_in
from supervisor.store.columns import UtcDateTime
from supervisor.store.engine import SqliteFile, connect, locate
from supervisor.store.tables import CYCLES, SESSIONS

Values = list[Any]

_BEGAN = datetime(2025, 1, 1, tzinfo=UTC)
_EVERY = timedelta(minutes=15)


def fill(url: str, *, sessions: int) -> None:
    """Record that many sessions; every two cycles have five of them."""
    upgrade(url)
    _record_one(url)
    likeness = _likeness(url)
    for table, rows in ((CYCLES, _cycles(likeness, sessions)), (SESSIONS, _sessions(likeness, sessions))):
        _write(url, table, rows)


def _record_one(url: str) -> None:
    report = Report(
        summary="All services answer, the disks have room and no unit has failed.",
        escalation_needed=False,
        services=tuple(ServiceState(name=name, status=Health.HEALTHY) for name in ("web", "shop", "database")),
    )
    end = SessionEnd(
        status=SessionStatus.COMPLETED,
        ended_at=_BEGAN,
        session_id="00000000-0000-4000-8000-000000000000",
        model_id="claude-haiku",
        cost_usd=0.0123,
        cost_basis=CostBasis.REPORTED,
        tokens=Tokens(input=900, output=300, cache_read=20_000, cache_write=3_000),
        context_tokens=24_000,
        context_window=200_000,
        num_turns=4,
        messages=12,
        exit_code=0,
        stop_reason="end_turn",
        tool_calls=ToolCalls(allowed=4),
        tools_executed=4,
        report=report,
    )
    with open_store(url) as store:
        owner = Owner(host="ops1", pid=1, started=1.0)
        cycle = store.begin_cycle(schedule="default", trigger=Trigger.SCHEDULE, dry_run=False, owner=owner, now=_BEGAN)
        session = store.create_session(
            NewSession(
                cycle_id=cycle.id,
                tier=1,
                model="haiku",
                session_id=None,
                parent_session_id=None,
                continuity=ContinuityKind.FRESH,
                reason=Reason.FIRST_TIER,
                work_dir="/srv/ops",
                runtime_id="ops1:2.1.325",
                created_at=_BEGAN,
            )
        )
        store.activate_session(session.id, pid=1, pid_started=1.0, now=_BEGAN)
        store.finish_session(session.id, end)
        store.finish_cycle(cycle.id, status=CycleStatus.HEALTHY, reason=None, detail=report.summary, now=_BEGAN)


def _likeness(url: str) -> dict[str, Values]:
    """The recorded cycle and its session, by table, as a backup would have them."""
    database = connect(locate(url))
    try:
        with database.reading() as connection:
            return {row.table: row.values for row in rows_in(connection)}
    finally:
        database.close()


def _cycle_of(session: int) -> int:
    """Sessions 1 and 2 are the first cycle's, 3 to 5 the second's, and so on."""
    pair, rest = divmod(session - 1, 5)
    return 2 * pair + (1 if rest < 2 else 2)


def _cycles(likeness: dict[str, Values], sessions: int) -> Iterator[Values]:
    like = _Like(CYCLES, likeness)
    for number in range(2, _cycle_of(sessions) + 1):
        yield like.at(_BEGAN + number * _EVERY, id=number)


def _sessions(likeness: dict[str, Values], sessions: int) -> Iterator[Values]:
    like = _Like(SESSIONS, likeness)
    for number in range(2, sessions + 1):
        cycle = _cycle_of(number)
        parent = number - 1 if _cycle_of(number - 1) == cycle else None
        yield like.at(_BEGAN + cycle * _EVERY, id=number, cycle_id=cycle, parent_session_id=parent)


class _Like:
    """Makes rows that differ from a recorded one in their times and in what is named."""

    def __init__(self, table: Table, likeness: dict[str, Values]) -> None:
        self._values = likeness[table.name]
        self._places = {column.name: place for place, column in enumerate(table.columns)}
        self._times = [place for place in places(table, UtcDateTime) if self._values[place] is not None]

    def at(self, time: datetime, **others: int | None) -> Values:
        row = self._values.copy()
        # As the store writes it into SQLite; PostgreSQL's connection is told which zone is meant.
        moment = f"{time:%Y-%m-%d %H:%M:%S.%f}"
        for place in self._times:
            row[place] = moment
        for name, value in others.items():
            row[self._places[name]] = value
        return row


def _write(url: str, table: Table, rows: Iterable[Values]) -> None:
    names = ", ".join(column.name for column in table.columns)
    location = locate(url)
    if isinstance(location, SqliteFile):
        marks = ", ".join("?" * len(table.columns))
        with closing(sqlite3.connect(location.path)) as connection:
            connection.executemany(f"INSERT INTO {table.name} ({names}) VALUES ({marks})", rows)
            connection.commit()
        return
    with psycopg.connect(url, options="-c timezone=UTC") as server:
        with server.cursor() as cursor, cursor.copy(f"COPY {table.name} ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        # A server at work does so by itself, a little later.
        server.execute(f"ANALYZE {table.name}")
