"""Every question put to the records. Does I/O. Called from ``climb``, ``cli`` and ``web`` in threads.

Each call is one transaction, so what it returns belongs together. No question reads a whole table, except what a person
asks about all time.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    bindparam,
    func,
    literal,
    or_,
    select,
)

from supervisor.errors import NotFound
from supervisor.model.cycle import Chain, Cycle, CycleStatus, Event, EventKind
from supervisor.model.session import UNFINISHED, CostBasis, Session
from supervisor.store.clock import database_now
from supervisor.store.costs import cost_rows
from supervisor.store.engine import Database
from supervisor.store.mapping import cycle_of, event_of, owner_of, session_of
from supervisor.store.records import CostBy, CostRow, Owner
from supervisor.store.tables import CYCLES, EVENTS, RUNNING, SESSIONS

# Asked all the time, so put together once.
_CYCLE = select(CYCLES).where(CYCLES.c.id == bindparam("cycle"))
_OF_CYCLE = select(SESSIONS).where(SESSIONS.c.cycle_id == bindparam("cycle")).order_by(SESSIONS.c.id)


class Reads:
    """The reading half of a ``Store``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def session(self, record: int) -> Session:
        with self._database.reading() as connection:
            row = connection.execute(select(SESSIONS).where(SESSIONS.c.id == record)).mappings().one_or_none()
        if row is None:
            raise NotFound(f"There is no session {record}.")
        return session_of(row)

    def cycle(self, cycle_id: int) -> Cycle:
        with self._database.reading() as connection:
            return _cycle(connection, cycle_id)

    def running_cycles(self) -> list[tuple[Cycle, Owner]]:
        """The cycles that hold their schedule's lock, each with the process that runs it."""
        statement = select(CYCLES).where(RUNNING).order_by(CYCLES.c.id)
        with self._database.reading() as connection:
            now = database_now(connection)
            return [(cycle_of(row), owner_of(row, now)) for row in connection.execute(statement).mappings()]

    def owners(self) -> list[Owner]:
        """The processes that run cycles, each once and with its newest heartbeat."""
        columns = CYCLES.c.owner_host, CYCLES.c.owner_pid, CYCLES.c.owner_started
        beat = func.max(CYCLES.c.heartbeat_at).label("heartbeat_at")
        statement = select(*columns, beat).where(RUNNING).group_by(*columns)
        with self._database.reading() as connection:
            now = database_now(connection)
            return [owner_of(row, now) for row in connection.execute(statement).mappings()]

    def chain(self, cycle_id: int) -> Chain:
        """A cycle with all its sessions."""
        with self._database.reading() as connection:
            cycle = _cycle(connection, cycle_id)
            rows = connection.execute(_OF_CYCLE, {"cycle": cycle_id}).mappings()
            return Chain(cycle=cycle, sessions=tuple(session_of(row) for row in rows))

    def chain_of(self, record: int) -> Chain:
        """Everything linked to a session by parents and children, with all else those cycles ran, and its own cycle."""
        with self._database.reading() as connection:
            cycle_id = connection.execute(select(SESSIONS.c.cycle_id).where(SESSIONS.c.id == record)).scalar()
            if cycle_id is None:
                raise NotFound(f"There is no session {record}.")
            touched = select(SESSIONS.c.cycle_id).where(SESSIONS.c.id.in_(select(_tree(record).c.id)))
            sessions = _sessions(connection, SESSIONS.c.cycle_id.in_(touched))
            ids = sorted({session.cycle_id for session in sessions})
            rows = connection.execute(select(CYCLES).where(CYCLES.c.id.in_(ids)).order_by(CYCLES.c.id)).mappings()
            cycles = {cycle.id: cycle for cycle in map(cycle_of, rows)}
            return Chain(cycle=cycles.pop(cycle_id), sessions=sessions, others=tuple(cycles.values()))

    def children(self, record: int) -> list[Session]:
        """The records that continue this one or were handed off from it."""
        with self._database.reading() as connection:
            return list(_sessions(connection, SESSIONS.c.parent_session_id == record))

    def line_to(self, record: int, limit: int) -> list[Session]:
        """The newest ``limit`` records from the root of the work down to this one, also those of earlier cycles."""
        columns = SESSIONS.c.id, SESSIONS.c.parent_session_id
        up = select(*columns, literal(1).label("step")).where(SESSIONS.c.id == record).cte("up", recursive=True)
        above = select(*columns, up.c.step + 1).where(SESSIONS.c.id == up.c.parent_session_id, up.c.step < limit)
        with self._database.reading() as connection:
            # Ids grow from parent to child.
            return list(_sessions(connection, SESSIONS.c.id.in_(select(up.union(above).c.id))))

    def chains(self, limit: int, status: CycleStatus | None = None, schedule: str | None = None) -> list[Chain]:
        """The newest cycles first, each with its sessions, in two queries however many there are."""
        newest = select(CYCLES).order_by(CYCLES.c.started_at.desc(), CYCLES.c.id.desc()).limit(limit)
        if status is not None:
            newest = newest.where(CYCLES.c.status == status)
        if schedule is not None:
            newest = newest.where(CYCLES.c.schedule == schedule)
        with self._database.reading() as connection:
            cycles = [cycle_of(row) for row in connection.execute(newest).mappings()]
            chosen = select(newest.with_only_columns(CYCLES.c.id).subquery().c.id)
            sessions = _sessions(connection, SESSIONS.c.cycle_id.in_(chosen))
        return _chains(cycles, sessions)

    def chains_of_cycles(self, ids: Collection[int]) -> list[Chain]:
        """These cycles, each with its sessions, in two queries however many there are."""
        chosen = sorted(ids)
        with self._database.reading() as connection:
            rows = connection.execute(select(CYCLES).where(CYCLES.c.id.in_(chosen)).order_by(CYCLES.c.id)).mappings()
            return _chains([cycle_of(row) for row in rows], _sessions(connection, SESSIONS.c.cycle_id.in_(chosen)))

    def unfinished_sessions(self, cycle_id: int) -> list[Session]:
        """The sessions of a cycle that have no outcome yet."""
        condition = (SESSIONS.c.cycle_id == cycle_id) & SESSIONS.c.status.in_(sorted(UNFINISHED))
        with self._database.reading() as connection:
            return list(_sessions(connection, condition))

    def events(
        self,
        *,
        session_id: int | None = None,
        cycle_id: int | None = None,
        kinds: Collection[EventKind] | None = None,
        after_id: int = 0,
        limit: int | None = None,
    ) -> list[Event]:
        """The entries of one session's or one cycle's record after ``after_id``, in the order they were written."""
        if (session_id is None) == (cycle_id is None):
            raise ValueError("events are asked for by session or by cycle")
        whose = EVENTS.c.cycle_id == cycle_id if session_id is None else EVENTS.c.session_id == session_id
        statement = select(EVENTS).where(whose, EVENTS.c.id > after_id).order_by(EVENTS.c.id).limit(limit)
        if kinds is not None:
            statement = statement.where(EVENTS.c.kind.in_(sorted(kinds)))
        with self._database.reading() as connection:
            return [event_of(row) for row in connection.execute(statement).mappings()]

    def event_counts(self, sessions: Collection[int], kinds: Collection[EventKind]) -> dict[int, int]:
        """How many entries of these kinds each of these sessions has on its record."""
        chosen = EVENTS.c.session_id.in_(sorted(sessions)) & EVENTS.c.kind.in_(sorted(kinds))
        statement = select(EVENTS.c.session_id, func.count()).where(chosen).group_by(EVENTS.c.session_id)
        with self._database.reading() as connection:
            return dict.fromkeys(sessions, 0) | {row[0]: row[1] for row in connection.execute(statement)}

    def cost(self, since: datetime | None, by: CostBy) -> list[CostRow]:
        """What sessions cost that ended since then or have not ended yet, by key in ascending order.

        Pruned records count too: whole days are read from the ledger. When ``since`` lies within a day of which records
        were pruned, that whole day is counted.
        """
        with self._database.reading() as connection:
            return cost_rows(connection, since, by)

    def spent_since(self, since: datetime) -> float:
        """The known cost of sessions that ended since then or have not ended yet: what a budget is held against."""
        statement = select(func.coalesce(func.sum(SESSIONS.c.cost_usd), 0.0)).where(_spent_since(since))
        with self._database.reading() as connection:
            return float(connection.execute(statement).scalar_one())

    def spent_in_cycle(self, cycle_id: int) -> float:
        """The known cost of a cycle's sessions, with the live figures of one that runs."""
        statement = select(func.coalesce(func.sum(SESSIONS.c.cost_usd), 0.0)).where(SESSIONS.c.cycle_id == cycle_id)
        with self._database.reading() as connection:
            return float(connection.execute(statement).scalar_one())

    def known_window(self, model: str, runtime_id: str) -> int | None:
        """The context window that the newest session with this configured model and binary reported."""
        statement = (
            select(SESSIONS.c.context_window)
            .where(
                SESSIONS.c.model == model,
                SESSIONS.c.runtime_id == runtime_id,
                SESSIONS.c.context_window.is_not(None),
                # Without a result of the CLI the recorded window is only what the table says.
                SESSIONS.c.cost_basis == CostBasis.REPORTED,
            )
            .order_by(SESSIONS.c.id.desc())
            .limit(1)
        )
        with self._database.reading() as connection:
            window: int | None = connection.execute(statement).scalar()
        return window


def _cycle(connection: Connection, cycle_id: int) -> Cycle:
    row = connection.execute(_CYCLE, {"cycle": cycle_id}).mappings().one_or_none()
    if row is None:
        raise NotFound(f"There is no cycle {cycle_id}.")
    return cycle_of(row)


def _sessions(connection: Connection, condition: ColumnElement[bool]) -> tuple[Session, ...]:
    """The matching sessions, oldest first."""
    statement = select(SESSIONS).where(condition).order_by(SESSIONS.c.id)
    return tuple(session_of(row) for row in connection.execute(statement).mappings())


def _chains(cycles: Sequence[Cycle], sessions: Iterable[Session]) -> list[Chain]:
    by_cycle: dict[int, list[Session]] = {cycle.id: [] for cycle in cycles}
    for session in sessions:
        by_cycle[session.cycle_id].append(session)
    return [Chain(cycle=cycle, sessions=tuple(by_cycle[cycle.id])) for cycle in cycles]


def _tree(record: int) -> CTE:
    """The ids of the root above a session and of everything below that root."""
    up = select(SESSIONS.c.id, SESSIONS.c.parent_session_id).where(SESSIONS.c.id == record).cte("up", recursive=True)
    parent = select(SESSIONS.c.id, SESSIONS.c.parent_session_id).where(SESSIONS.c.id == up.c.parent_session_id)
    up = up.union(parent)
    tree = select(up.c.id).where(up.c.parent_session_id.is_(None)).cte("tree", recursive=True)
    return tree.union(select(SESSIONS.c.id).where(SESSIONS.c.parent_session_id == tree.c.id))


def _spent_since(since: datetime) -> ColumnElement[bool]:
    return or_(SESSIONS.c.ended_at >= since, SESSIONS.c.ended_at.is_(None))
