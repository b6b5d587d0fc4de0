"""What is counted for good. Does I/O. Entered by ``writes``, ``calls`` and ``firings``, read by ``metrics``.

Each count is made in the transaction that makes it true, so one-shot runs, restarts and pruned records are all in it,
and a commit that fails counts nothing. The ledger has some of the same sums by day and schedule; adding those up would
take longer with every day.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from sqlalchemy import Connection, RowMapping, select, text

from supervisor.model.cycle import CycleStatus
from supervisor.model.permission import Verdict
from supervisor.model.session import ContinuityKind
from supervisor.store.engine import Database
from supervisor.store.service_tables import TALLIES
from supervisor.store.tables import SESSIONS

# The upper ends of the classes into which durations fall, in seconds: runs take seconds to an hour.
DURATION_BOUNDS = (5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0)

TOKEN_KINDS = ("input", "output", "cache_read", "cache_write")

_RAN = frozenset(CycleStatus) - {CycleStatus.SKIPPED}
_SUCCEEDED = frozenset({CycleStatus.HEALTHY, CycleStatus.RESOLVED})

# In SQL, as in ``ledger``: SQLAlchemy has a statement of its own for each dialect, and loading both takes long.
_UPSERT = "INSERT INTO tallies (name, labels, value) VALUES (:name, :labels, :value) ON CONFLICT (name, labels) "
_ADD = text(f"{_UPSERT} DO UPDATE SET value = tallies.value + excluded.value")
_SET = text(f"{_UPSERT} DO UPDATE SET value = excluded.value")


class TallyName(StrEnum):
    """What is tallied. As in the metrics, without the prefix."""

    CYCLES = "cycles_total"
    SESSIONS = "sessions_total"
    COST = "cost_usd_total"
    TOKENS = "tokens_total"
    # How many ended with a duration up to "le", and above the bound before it: not cumulative.
    DURATION_CLASS = "session_duration_seconds_bucket"
    DURATION_SUM = "session_duration_seconds_sum"
    FAILURES = "session_failures_total"
    ESCALATIONS = "escalations_total"
    FALLBACKS = "fallbacks_total"
    GUARD_DECISIONS = "guard_decisions_total"
    MISSED_FIRES = "missed_fires_total"
    # These are kept as they were last, not added up.
    CONTEXT_USED = "context_used_ratio"
    LAST_SUCCESS = "last_success_timestamp_seconds"
    LAST_CYCLE = "last_cycle_timestamp_seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """One number and what it is about."""

    name: TallyName
    labels: Mapping[str, str]
    value: float

    @classmethod
    def of(cls, name: TallyName, value: float = 1.0, **labels: object) -> Self:
        return cls(name=name, labels={label: str(said) for label, said in labels.items()}, value=value)


class Tallies:
    """The tallies of a ``Store``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tallies(self) -> list[Tally]:
        """All of them, in one query. How many there are depends on the configuration, not on the records."""
        with self._database.reading() as connection:
            rows = connection.execute(select(TALLIES)).all()
        known = frozenset(TallyName)
        # What a later version tallied in this database is its own business.
        return [_tally_of(row.name, row.labels, row.value) for row in rows if row.name in known]

    def tally(self, counted: Tally) -> None:
        """Add to a tally something that no record says."""
        with self._database.writing() as connection:
            _enter(connection, added=[counted])


def count_created(connection: Connection, row: RowMapping) -> None:
    """Count a session that is about to start: whether it climbs, and whether it has to be told all in writing."""
    counted = []
    if row["parent_session_id"] is not None:
        parent = _tier(connection, row["parent_session_id"])
        if row["tier"] > parent:
            decided = {"decision": row["continuity"], "reason": row["reason"]}
            counted.append(Tally.of(TallyName.ESCALATIONS, from_tier=parent, **decided))
    if row["continuity"] == ContinuityKind.HANDOFF:
        counted.append(Tally.of(TallyName.FALLBACKS, reason=row["reason"]))
    _enter(connection, added=counted)


def count_ended(connection: Connection, rows: Iterable[RowMapping]) -> None:
    """Count sessions that have just ended, each with the status it has now."""
    added: list[Tally] = []
    latest: dict[int, Tally] = {}
    for row in rows:
        added += _of_ended(row)
        if row["context_tokens"] is not None and row["context_window"]:
            used = row["context_tokens"] / row["context_window"]
            latest[row["tier"]] = Tally.of(TallyName.CONTEXT_USED, used, tier=row["tier"])
    _enter(connection, added=added, latest=latest.values())


def _of_ended(row: RowMapping) -> list[Tally]:
    """What a session adds. What is not known of it adds nothing."""
    tier = row["tier"]
    added = [Tally.of(TallyName.SESSIONS, tier=tier, status=row["status"], continuity=row["continuity"])]
    if row["cost_usd"] is not None:
        added.append(Tally.of(TallyName.COST, row["cost_usd"], tier=tier, model=row["model"]))
    used = ((kind, row[f"{kind}_tokens"]) for kind in TOKEN_KINDS)
    added += [Tally.of(TallyName.TOKENS, count, tier=tier, kind=kind) for kind, count in used if count is not None]
    if row["failure"] is not None:
        added.append(Tally.of(TallyName.FAILURES, tier=tier, failure=row["failure"]))
    if row["started_at"] is not None:
        # A clock that was put back meanwhile must not make the sum smaller.
        seconds = max(0.0, (row["ended_at"] - row["started_at"]).total_seconds())
        added.append(Tally.of(TallyName.DURATION_CLASS, tier=tier, le=_bound_above(seconds)))
        added.append(Tally.of(TallyName.DURATION_SUM, seconds, tier=tier))
    return added


def count_cycle_ended(connection: Connection, row: RowMapping) -> None:
    """Count a cycle that has just ended, or a firing that was skipped: how, and when. One that is paused has not."""
    schedule, status = row["schedule"], row["status"]
    added = [Tally.of(TallyName.CYCLES, schedule=schedule, status=status)]
    if status == CycleStatus.BLOCKED and (from_tier := _last_tier(connection, row["id"])) is not None:
        decided = {"decision": status, "reason": row["reason"]}
        added.append(Tally.of(TallyName.ESCALATIONS, from_tier=from_tier, **decided))
    latest = [
        Tally.of(name, row["ended_at"].timestamp(), schedule=schedule)
        for name, statuses in ((TallyName.LAST_CYCLE, _RAN), (TallyName.LAST_SUCCESS, _SUCCEEDED))
        if status in statuses
    ]
    _enter(connection, added=added, latest=latest)


def count_decision(connection: Connection, session: int, verdict: Verdict) -> None:
    """Count an answer of the guard."""
    tier = _tier(connection, session)
    _enter(connection, added=[Tally.of(TallyName.GUARD_DECISIONS, tier=tier, decision=verdict)])


def count_missed(connection: Connection, schedule: str, count: int) -> None:
    """Count firings of a schedule that passed without a cycle."""
    _enter(connection, added=[Tally.of(TallyName.MISSED_FIRES, count, schedule=schedule)])


def _tier(connection: Connection, session: int) -> int:
    tier: int = connection.execute(select(SESSIONS.c.tier).where(SESSIONS.c.id == session)).scalar_one()
    return tier


def _last_tier(connection: Connection, cycle: int) -> int | None:
    """The tier a cycle had come to; ``None`` when nothing ran in it, so that there was nothing to climb from."""
    last = select(SESSIONS.c.tier).where(SESSIONS.c.cycle_id == cycle).order_by(SESSIONS.c.id.desc()).limit(1)
    tier: int | None = connection.execute(last).scalar()
    return tier


def _bound_above(seconds: float) -> str:
    place = bisect_left(DURATION_BOUNDS, seconds)
    return str(DURATION_BOUNDS[place]) if place < len(DURATION_BOUNDS) else "+Inf"


def _enter(connection: Connection, *, added: Iterable[Tally], latest: Iterable[Tally] = ()) -> None:
    # Always in one order: two transactions that lock the same rows of PostgreSQL in different orders could wait for
    # each other. No name is both added to and set.
    for statement, tallies in ((_ADD, added), (_SET, latest)):
        rows = sorted((tally.name.value, _as_key(tally.labels), float(tally.value)) for tally in tallies)
        if rows:
            connection.execute(statement, [dict(zip(("name", "labels", "value"), row, strict=True)) for row in rows])


def _as_key(labels: Mapping[str, str]) -> str:
    return json.dumps(dict(labels), sort_keys=True)


def _tally_of(name: str, labels: str, value: float) -> Tally:
    return Tally(name=TallyName(name), labels=json.loads(labels), value=value)
