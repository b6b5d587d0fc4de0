"""Incidents: trouble that lasts over several cycles. Does I/O. Called from ``climb``, ``cli`` and ``web``.

What a cycle means for the incidents of its schedule is decided by ``decide.incident``, in one transaction with reading
and writing them, under a lock of the schedule: of two writers the later one sees what the earlier one wrote.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, case, delete, func, insert, select, text, update

from supervisor.decide.incident import Change, What, Why, in_words, judge
from supervisor.errors import NotFound
from supervisor.model.cycle import Chain, EventKind, NewEvent
from supervisor.model.incident import Incident, IncidentStatus, IncidentTotal
from supervisor.model.report import Level
from supervisor.model.session import CostBasis, Session
from supervisor.store.columns import AnyText, storable
from supervisor.store.engine import Database
from supervisor.store.lifecycle_tables import INCIDENTS, KEPT_SESSIONS
from supervisor.store.mapping import Values, cycle_of, event_values, session_of
from supervisor.store.statements import inserted
from supervisor.store.tables import CYCLES, EVENTS, SESSIONS

# A lock of the schedule's name and not of rows: the first incident of a schedule has none yet.
_LOCK = text("SELECT pg_advisory_xact_lock(4711, hashtext(:schedule))").bindparams(
    bindparam("schedule", type_=AnyText())
)

# What is entered in the record of the cycle that brought it about: a person wants to know of trouble that begins.
_TOLD: Mapping[What, tuple[EventKind, Level]] = {
    What.OPENED: (EventKind.NOTICE, Level.WARNING),
    What.REOPENED: (EventKind.NOTICE, Level.WARNING),
    What.UPDATED: (EventKind.DECISION, Level.INFO),
    What.CLOSED: (EventKind.DECISION, Level.INFO),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a cycle changed. ``incident`` is the one it belongs to, ``changed`` all that it had to do with."""

    why: Why
    incident: Incident | None
    changed: tuple[tuple[What, Incident], ...] = ()


class Incidents:
    """The incidents of a ``Store``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def judge_cycle(
        self, cycle_id: int, *, trouble: Collection[str], reopen_within: timedelta, now: datetime
    ) -> Judged:
        """Let a cycle with this trouble open, update and close incidents, and enter in its record what it did.

        Judged again, a cycle changes nothing and finds the incident it belongs to.
        """
        found = {storable(name) for name in trouble}
        with self._database.writing() as connection:
            schedule = _schedule_of(connection, cycle_id)
            if connection.dialect.name == "postgresql":
                connection.execute(_LOCK, {"schedule": schedule})
            belongs_to = connection.execute(select(CYCLES.c.incident).where(CYCLES.c.id == cycle_id)).scalar()
            judgement = judge(
                found,
                cycle=cycle_id,
                belongs_to=belongs_to,
                opened=_open(connection, schedule),
                closed=_closed_since(connection, schedule, now - reopen_within),
                reopen_within=reopen_within,
                now=now,
            )
            after = {change: _apply(connection, change, schedule, cycle_id, now) for change in judgement.changes}
            changed = tuple((change.what, incident) for change, incident in after.items())
            _enter(connection, cycle_id, changed, now)
            if judgement.joined is not None:
                belongs_to = after[judgement.joined].id
                connection.execute(update(CYCLES).where(CYCLES.c.id == cycle_id).values(incident=belongs_to))
            joined = None if belongs_to is None else _incident(connection, belongs_to)
        return Judged(why=judgement.why, incident=joined, changed=changed)

    def incident(self, incident_id: int) -> Incident:
        with self._database.reading() as connection:
            return _incident(connection, incident_id)

    def open_incidents(self, schedule: str) -> list[Incident]:
        """The open incidents of a schedule, the one that was in trouble last first; of several the oldest."""
        with self._database.reading() as connection:
            return _open(connection, schedule)

    def incidents(
        self, limit: int, status: IncidentStatus | None = None, schedule: str | None = None
    ) -> list[Incident]:
        """The incidents that changed last first."""
        statement = select(INCIDENTS).order_by(INCIDENTS.c.updated_at.desc(), INCIDENTS.c.id.desc()).limit(limit)
        if status is not None:
            statement = statement.where(INCIDENTS.c.status == status)
        if schedule is not None:
            statement = statement.where(INCIDENTS.c.schedule == schedule)
        with self._database.reading() as connection:
            return [_incident_of(row) for row in connection.execute(statement).mappings()]

    def incident_totals(self, incidents: Collection[int]) -> dict[int, IncidentTotal]:
        """How many cycles each of these has and what they cost, by its id."""
        cost = SESSIONS.c.cost_usd
        statement = (
            select(
                CYCLES.c.incident,
                func.count(CYCLES.c.id.distinct()).label("cycles"),
                func.count(SESSIONS.c.id).label("sessions"),
                func.sum(cost).label("cost_usd"),
                func.sum(case((SESSIONS.c.cost_basis != CostBasis.REPORTED, 1), else_=0)).label("inexact"),
            )
            .select_from(CYCLES.outerjoin(SESSIONS, SESSIONS.c.cycle_id == CYCLES.c.id))
            .where(CYCLES.c.incident.in_(sorted(incidents)))
            .group_by(CYCLES.c.incident)
        )
        with self._database.reading() as connection:
            rows = connection.execute(statement).all()
        found = {row.incident: _total_of(row) for row in rows}
        return {incident: found.get(incident, IncidentTotal()) for incident in incidents}

    def incident_chains(self, incident_id: int, limit: int) -> list[Chain]:
        """The newest cycles of an incident with their sessions, the oldest of these first."""
        newest = select(CYCLES).where(CYCLES.c.incident == incident_id).order_by(CYCLES.c.id.desc()).limit(limit)
        with self._database.reading() as connection:
            cycles = [cycle_of(row) for row in connection.execute(newest).mappings()]
            chosen = select(newest.with_only_columns(CYCLES.c.id).subquery().c.id)
            of_these = select(SESSIONS).where(SESSIONS.c.cycle_id.in_(chosen)).order_by(SESSIONS.c.id)
            by_cycle: dict[int, list[Session]] = defaultdict(list)
            for row in connection.execute(of_these).mappings():
                by_cycle[row["cycle_id"]].append(session_of(row))
        return [Chain(cycle=cycle, sessions=tuple(by_cycle[cycle.id])) for cycle in reversed(cycles)]


def _schedule_of(connection: Connection, cycle_id: int) -> str:
    schedule: str | None = connection.execute(select(CYCLES.c.schedule).where(CYCLES.c.id == cycle_id)).scalar()
    if schedule is None:
        raise NotFound(f"There is no cycle {cycle_id}.")
    return schedule


def _incident(connection: Connection, incident_id: int) -> Incident:
    row = connection.execute(select(INCIDENTS).where(INCIDENTS.c.id == incident_id)).mappings().one_or_none()
    if row is None:
        raise NotFound(f"There is no incident {incident_id}.")
    return _incident_of(row)


def _open(connection: Connection, schedule: str) -> list[Incident]:
    of_schedule = INCIDENTS.c.schedule == schedule, INCIDENTS.c.status == IncidentStatus.OPEN
    latest_first = INCIDENTS.c.updated_at.desc(), INCIDENTS.c.opened_at, INCIDENTS.c.id
    rows = connection.execute(select(INCIDENTS).where(*of_schedule).order_by(*latest_first)).mappings()
    return [_incident_of(row) for row in rows]


def _closed_since(connection: Connection, schedule: str, since: datetime) -> list[Incident]:
    # By the last change, which has an index: of a closed incident that is its closing.
    of_schedule = INCIDENTS.c.schedule == schedule, INCIDENTS.c.status == IncidentStatus.CLOSED
    rows = connection.execute(select(INCIDENTS).where(*of_schedule, INCIDENTS.c.updated_at > since)).mappings()
    return [_incident_of(row) for row in rows]


def _apply(connection: Connection, change: Change, schedule: str, cycle_id: int, now: datetime) -> Incident:
    """Write one incident as it is after a cycle; the sessions of one that closes are dropped with it."""
    values: Values = {"services": list(change.services), "healthy_streak": change.healthy_streak}
    before = change.incident
    if before is None:
        values |= {"schedule": schedule, "status": IncidentStatus.OPEN, "reopened": 0, "last_cycle": cycle_id}
        return _incident_of(inserted(connection, INCIDENTS, values | {"opened_at": now, "updated_at": now}))
    values["last_cycle"] = max(before.last_cycle, cycle_id)
    match change.what:
        case What.REOPENED:
            reopened = before.reopened + 1
            values |= {"status": IncidentStatus.OPEN, "closed_at": None, "updated_at": now, "reopened": reopened}
        case What.CLOSED:
            values |= {"status": IncidentStatus.CLOSED, "closed_at": now, "updated_at": now}
        case What.UPDATED:
            values["updated_at"] = now
    statement = update(INCIDENTS).where(INCIDENTS.c.id == before.id).values(values).returning(INCIDENTS)
    after = _incident_of(connection.execute(statement).mappings().one())
    if change.what is What.CLOSED:
        kept = KEPT_SESSIONS.c
        connection.execute(delete(KEPT_SESSIONS).where(kept.schedule == schedule, kept.incident == before.id))
    return after


def _enter(connection: Connection, cycle_id: int, changed: Collection[tuple[What, Incident]], now: datetime) -> None:
    """Enter what a cycle brought about in its record, in the same transaction: told once, and not lost either."""
    told = [(what, incident, *_TOLD[what]) for what, incident in changed if what in _TOLD]
    events = [
        NewEvent(
            kind=kind,
            at=now,
            level=level,
            text=in_words(what, incident),
            data={"incident": incident.id, "what": what.value},
        )
        for what, incident, kind, level in told
    ]
    if events:
        connection.execute(insert(EVENTS), [event_values(cycle_id, event) for event in events])


def _incident_of(row: RowMapping) -> Incident:
    return Incident(
        id=row["id"],
        schedule=row["schedule"],
        status=IncidentStatus(row["status"]),
        services=tuple(row["services"]),
        opened_at=row["opened_at"],
        updated_at=row["updated_at"],
        last_cycle=row["last_cycle"],
        healthy_streak=row["healthy_streak"],
        reopened=row["reopened"],
        closed_at=row["closed_at"],
    )


def _total_of(row: Any) -> IncidentTotal:
    return IncidentTotal(
        cycles=row.cycles, sessions=row.sessions, cost_usd=row.cost_usd, cost_is_exact=not int(row.inexact)
    )
