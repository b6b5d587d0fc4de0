"""The ledger says at any time what the records say, and goes on saying it when they are gone."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete

from supervisor.errors import Conflict
from supervisor.model.cycle import Cycle, CycleStatus, Trigger
from supervisor.model.session import CostBasis, Session, SessionStatus, Tokens
from supervisor.store import CostBy, CostRow, Store, open_store
from supervisor.store.declared import declared_schema
from supervisor.store.tallies import TallyName
from tests.store.races import race
from tests.store.store_examples import NOON, OWNER, add_session, begin, end, minutes, tallied

ENDS = [
    SessionStatus.COMPLETED,
    SessionStatus.FAILED,
    SessionStatus.PAUSED,
    SessionStatus.TIMED_OUT,
    SessionStatus.INTERRUPTED,
]
TOKENS = Tokens(input=1, output=2, cache_read=3, cache_write=4)


def over(store: Store, cycle_id: int, status: CycleStatus = CycleStatus.HEALTHY, at: timedelta = timedelta()) -> None:
    store.finish_cycle(cycle_id, status=status, reason=None, detail=None, now=NOON + at)


def added_up(store: Store, by: CostBy) -> list[CostRow]:
    """What the costs have to be, added up from the records that are there."""
    rows: dict[str, CostRow] = {}
    for chain in store.chains(1000):
        for session in chain.sessions:
            row = rows.get(key := key_of(chain.cycle, session, by))
            rows[key] = CostRow(
                key=key,
                sessions=1 + (row.sessions if row else 0),
                cost_usd=sum_known(session.cost_usd, row and row.cost_usd),
                unknown=int(session.cost_usd is None) + (row.unknown if row else 0),
                estimated=int(session.cost_basis is CostBasis.ESTIMATED) + (row.estimated if row else 0),
                tokens=(session.tokens or Tokens()) + (row.tokens if row else Tokens()),
            )
    return sorted(rows.values(), key=lambda row: row.key)


def key_of(cycle: Cycle, session: Session, by: CostBy) -> str:
    match by:
        case CostBy.TIER:
            return str(session.tier)
        case CostBy.SCHEDULE:
            return cycle.schedule
        case CostBy.MODEL:
            return session.model
        case CostBy.DAY:
            return f"{session.ended_at or session.created_at:%Y-%m-%d}"


def sum_known(one: float | None, other: float | None) -> float | None:
    known = [usd for usd in (one, other) if usd is not None]
    return sum(known) if known else None


@pytest.fixture
def fresh(url: str) -> Callable[[], Store]:
    """The store without records, as often as it is asked for."""

    def opened() -> Store:
        store = open_store(url)
        with store._database.writing() as connection:
            for table in reversed(declared_schema().sorted_tables):
                connection.execute(delete(table))
        return store

    return opened


session_ends = st.tuples(
    st.sampled_from([1, 2, 3]),
    st.sampled_from(["haiku", "opus"]),
    st.sampled_from(ENDS),
    st.one_of(st.none(), st.sampled_from([0.0, 0.25, 0.5])),
    st.integers(min_value=0, max_value=3),
    st.booleans(),
)
cycle_ends = st.sampled_from([CycleStatus.HEALTHY, CycleStatus.UNRESOLVED, CycleStatus.PAUSED, CycleStatus.STOPPED])


@settings(max_examples=25)
@given(work=st.lists(st.tuples(st.lists(session_ends, max_size=4), cycle_ends), min_size=1, max_size=4))
def test_the_costs_are_the_sum_of_the_records_at_any_time(
    fresh: Callable[[], Store], work: list[tuple[list[tuple[object, ...]], CycleStatus]]
) -> None:
    with fresh() as store:
        for number, (sessions, status) in enumerate(work):
            cycle = begin(store, f"schedule-{number}", now=NOON + minutes(number))
            for tier, model, how, cost, days, leaves in sessions:
                session = add_session(store, cycle, tier=tier, model=model)
                at = NOON + timedelta(days=days)
                basis = CostBasis.UNKNOWN if cost is None else CostBasis.ESTIMATED
                end(store, session, how, ended_at=at, cost_usd=cost, cost_basis=basis, tokens=TOKENS)
                if leaves and how in (SessionStatus.PAUSED, SessionStatus.INTERRUPTED, SessionStatus.TIMED_OUT):
                    store.leave(session.id, SessionStatus.EXPIRED, why="idle", now=at)
                assert {by: store.cost(None, by) for by in CostBy} == {by: added_up(store, by) for by in CostBy}
            over(store, cycle.id, status)
            add_session(store, cycle)
            assert {by: store.cost(None, by) for by in CostBy} == {by: added_up(store, by) for by in CostBy}


def test_a_paused_cycle_is_counted_when_it_ends_and_once(store: Store) -> None:
    cycle = begin(store)
    over(store, cycle.id, CycleStatus.PAUSED)
    assert tallied(store, TallyName.CYCLES) == {}
    store.reopen_cycle(cycle.id, owner=OWNER, now=NOON)
    over(store, cycle.id, CycleStatus.RESOLVED)
    assert tallied(store, TallyName.CYCLES) == {("default", "resolved"): 1}


def test_a_skipped_firing_is_counted(store: Store) -> None:
    store.skip_cycle(schedule="night", trigger=Trigger.SCHEDULE, dry_run=False, reason="switch", detail="off", now=NOON)
    assert tallied(store, TallyName.CYCLES) == {("night", "skipped"): 1}


def test_a_session_is_counted_with_the_status_it_ended_with_and_once(store: Store) -> None:
    session = add_session(store, begin(store))
    end(store, session, SessionStatus.PAUSED)
    with pytest.raises(Conflict):
        end(store, session, SessionStatus.COMPLETED)
    store.leave(session.id, SessionStatus.COMPLETED, why="gone on", now=NOON)
    assert tallied(store, TallyName.SESSIONS) == {("fresh", "paused", "1"): 1}
    assert [row.sessions for row in store.cost(None, CostBy.TIER)] == [1]


def test_an_end_that_is_refused_is_not_counted(store: Store) -> None:
    cycle = begin(store)
    over(store, cycle.id)
    with pytest.raises(Conflict):
        over(store, cycle.id, CycleStatus.FAILED)
    assert tallied(store, TallyName.CYCLES) == {("default", "healthy"): 1}


FINISH_MANY = """
import sys
from datetime import UTC, datetime
from supervisor.model.session import CostBasis, SessionStatus, Tokens
from supervisor.store import SessionEnd, open_store
at = datetime(2026, 3, 1, 12, tzinfo=UTC)
with open_store(sys.argv[1]) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    counted = 0
    for session in store.unfinished_sessions(1):
        end = SessionEnd(status=SessionStatus.COMPLETED, ended_at=at, cost_usd=0.25, cost_basis=CostBasis.REPORTED,
                         tokens=Tokens(input=5))
        try:
            store.finish_session(session.id, end)
            counted += 1
        except Exception as error:
            if type(error).__name__ != "Conflict":
                raise
print(counted)
"""


def test_processes_that_end_sessions_at_once_count_each_once(url: str, store: Store) -> None:
    cycle = begin(store)
    for _ in range(40):
        store.activate_session(add_session(store, cycle).id, pid=1, pid_started=1.0, now=NOON)

    counted = race(FINISH_MANY, url, processes=2)

    assert sum(map(int, counted)) == 40
    assert tallied(store, TallyName.SESSIONS) == {("fresh", "completed", "1"): 40}
    (row,) = store.cost(None, CostBy.MODEL)
    assert (row.sessions, row.cost_usd, row.tokens) == (40, 10.0, Tokens(input=200))


@pytest.fixture
def two_days(store: Store) -> Store:
    """A cycle that is over: on the first day 1 $ in the morning and an unknown cost at noon, on the next one 2 $."""
    cycle = begin(store, now=NOON)
    for at, cost in ((-3 * 60, 1.0), (0, None), (24 * 60, 2.0)):
        basis = CostBasis.UNKNOWN if cost is None else CostBasis.REPORTED
        end(
            store,
            add_session(store, cycle),
            ended_at=NOON + minutes(at),
            cost_usd=cost,
            cost_basis=basis,
            tokens=TOKENS,
        )
    over(store, cycle.id, at=minutes(25 * 60))
    return store


def prune_all(store: Store) -> None:
    for chain in store.chains(1000):
        assert store.delete_records(chain.cycle.id)


def summed(rows: list[CostRow]) -> tuple[int, float | None, int]:
    known = [row.cost_usd for row in rows if row.cost_usd is not None]
    return sum(row.sessions for row in rows), sum(known) if known else None, sum(row.unknown for row in rows)


@pytest.mark.parametrize("by", list(CostBy))
@pytest.mark.parametrize(
    ("since", "before_pruning", "after_pruning"),
    [
        (None, (3, 3.0, 1), (3, 3.0, 1)),
        (NOON.replace(hour=0, minute=0, second=0, microsecond=0), (3, 3.0, 1), (3, 3.0, 1)),
        (NOON - minutes(60), (2, 2.0, 1), (3, 3.0, 1)),
        (NOON + minutes(1), (1, 2.0, 0), (3, 3.0, 1)),
        (NOON + timedelta(days=1, minutes=1), (0, None, 0), (1, 2.0, 0)),
        (NOON + timedelta(days=2), (0, None, 0), (0, None, 0)),
    ],
    ids=["ever", "from midnight", "within a day", "past all of a day", "within the last day", "later"],
)
def test_costs_of_whole_days_survive_pruning_and_a_pruned_day_counts_whole(
    two_days: Store, by: CostBy, since: object, before_pruning: object, after_pruning: object
) -> None:
    assert summed(two_days.cost(since, by)) == before_pruning
    prune_all(two_days)
    assert two_days.chains(1) == []
    assert summed(two_days.cost(since, by)) == after_pruning


def test_the_totals_are_the_same_after_pruning(two_days: Store) -> None:
    before, costs = two_days.tallies(), {by: two_days.cost(None, by) for by in CostBy}
    prune_all(two_days)
    assert two_days.tallies() == before
    assert {by: two_days.cost(None, by) for by in CostBy} == costs


def test_what_has_not_ended_is_not_counted_but_in_the_costs(store: Store) -> None:
    session = add_session(store, begin(store))
    store.activate_session(session.id, pid=1, pid_started=1.0, now=NOON)
    store.record_progress(
        session.id, messages=1, tools_executed=0, tokens=TOKENS, cost_usd=0.5, cost_basis=CostBasis.ESTIMATED, now=NOON
    )
    assert store.tallies() == []
    (row,) = store.cost(NOON, CostBy.TIER)
    assert (row.cost_usd, row.estimated, row.tokens) == (0.5, 1, TOKENS)
