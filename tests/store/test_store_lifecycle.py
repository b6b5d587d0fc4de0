"""Every change of a status: allowed by the one table, entered in the history, made by one of several who try."""

import itertools
import os
from datetime import timedelta

import pytest
from sqlalchemy import update

from supervisor.decide.lifecycle import CYCLE_MOVES, SESSION_MOVES
from supervisor.errors import Conflict
from supervisor.model.cycle import CycleStatus, Trigger
from supervisor.model.session import SessionStatus
from supervisor.store import Owner, Store
from supervisor.store.history import moved
from supervisor.store.tables import CYCLES, SESSIONS
from tests.store.store_examples import NOON, OWNER, add_session, begin, end, minutes

OTHER = Owner(host="ops2", pid=7, started=1.0)


def put(store: Store, table: object, record: int, status: str) -> None:
    """Bring a record into a status without asking."""
    with store._database.writing() as connection:
        connection.execute(update(table).where(table.c.id == record).values(status=status))


@pytest.mark.parametrize(
    ("was", "to"), list(itertools.product(SessionStatus, SessionStatus)), ids=lambda status: status.value
)
def test_a_session_moves_as_the_table_allows_and_not_otherwise(
    store: Store, was: SessionStatus, to: SessionStatus
) -> None:
    session = add_session(store, begin(store))
    put(store, SESSIONS, session.id, was)
    with store._database.writing() as connection:
        if to in SESSION_MOVES[was]:
            assert moved(connection, SESSIONS, session.id, to, {}, at=NOON, why=None)["status"] == to
        else:
            with pytest.raises(Conflict, match=f"what is {was} does not become {to}"):
                moved(connection, SESSIONS, session.id, to, {}, at=NOON, why=None)


@pytest.mark.parametrize(
    ("was", "to"), list(itertools.product(CycleStatus, CycleStatus)), ids=lambda status: status.value
)
def test_a_cycle_moves_as_the_table_allows_and_not_otherwise(store: Store, was: CycleStatus, to: CycleStatus) -> None:
    cycle = begin(store)
    put(store, CYCLES, cycle.id, was)
    with store._database.writing() as connection:
        if to in CYCLE_MOVES[was]:
            assert moved(connection, CYCLES, cycle.id, to, {}, at=NOON, why=None)["status"] == to
        else:
            with pytest.raises(Conflict, match=f"what is {was} does not become {to}"):
                moved(connection, CYCLES, cycle.id, to, {}, at=NOON, why=None)


def test_the_history_tells_when_from_to_why_and_by_whom(store: Store) -> None:
    cycle = begin(store)
    session = add_session(store, cycle)
    end(store, session, SessionStatus.INTERRUPTED, ended_at=NOON + minutes(1))
    store.leave(session.id, SessionStatus.EXPIRED, why="idle", now=NOON + minutes(40), by="ada")
    store.finish_cycle(
        cycle.id, status=CycleStatus.STOPPED, reason="interrupted", detail=None, now=NOON + minutes(41), by="ada"
    )

    told = [(t.session_id, t.from_status, t.to_status, t.why, t.at) for t in store.history(cycle_id=cycle.id)]
    assert told == [
        (None, None, "running", "manual", NOON),
        (session.id, None, "created", "fresh: first_tier", NOON),
        (session.id, "created", "active", "pid 1", NOON + minutes(1)),
        (session.id, "active", "interrupted", None, NOON + minutes(1)),
        (session.id, "interrupted", "expired", "idle", NOON + minutes(40)),
        (None, "running", "stopped", "interrupted", NOON + minutes(41)),
    ]
    by = [t.made_by for t in store.history(cycle_id=cycle.id)]
    assert f"opsladder {os.getpid()} on " in by[0]
    assert by[-2:] == ["ada", "ada"]
    assert [t.to_status for t in store.history(session_id=session.id)] == [
        "created",
        "active",
        "interrupted",
        "expired",
    ]


def test_a_refused_change_leaves_no_trace_in_the_history(store: Store) -> None:
    cycle = begin(store)
    session = end(store, add_session(store, cycle))
    before = store.history(cycle_id=cycle.id)
    with pytest.raises(Conflict):
        store.leave(session.id, SessionStatus.EXPIRED, why="idle", now=NOON)
    assert store.history(cycle_id=cycle.id) == before


def test_only_the_owner_of_a_cycle_keeps_it_alive(store: Store) -> None:
    cycle = begin(store)
    assert store.beat(cycle.id, owner=OWNER) == store.owned_cycle(cycle.id, owner=OWNER) == cycle
    for ask in (store.beat, store.owned_cycle):
        with pytest.raises(Conflict, match="no longer run by this process"):
            ask(cycle.id, owner=OTHER)


def test_an_owner_of_several_cycles_is_named_once_with_its_newest_heartbeat(store: Store) -> None:
    silent, beaten = begin(store), begin(store, "nightly")
    begin(store, "others", owner=OTHER)

    def silent_for() -> dict[int, timedelta]:
        return {cycle.id: owner.silent_for or timedelta() for cycle, owner in store.running_cycles()}

    while silent_for()[silent.id] < timedelta(milliseconds=10):
        # Until the clock of the database can tell the two apart.
        pass
    store.beat(beaten.id, owner=OWNER)

    found = {owner: owner.silent_for for owner in store.owners()}

    assert sorted(owner.pid for owner in found) == sorted([OWNER.pid, OTHER.pid])
    after = silent_for()
    assert found[OWNER] <= after[beaten.id] < after[silent.id]
    store.finish_cycle(silent.id, status=CycleStatus.HEALTHY, reason=None, detail=None, now=NOON)
    store.finish_cycle(beaten.id, status=CycleStatus.HEALTHY, reason=None, detail=None, now=NOON)
    assert store.owners() == [OTHER]


def test_the_cycles_of_an_owner_are_taken_over_once(store: Store) -> None:
    cycle = begin(store)
    nightly = begin(store, "nightly")
    begin(store, "others", owner=Owner(host="ops3", pid=8, started=2.0))
    assert [c.id for c in store.take_over(gone=OWNER, owner=OTHER)] == [cycle.id, nightly.id]
    assert [owner.pid for _, owner in store.running_cycles()] == [OTHER.pid, OTHER.pid, 8]
    assert store.take_over(gone=OWNER, owner=Owner(host="ops4", pid=9, started=2.0)) == []
    with pytest.raises(Conflict, match="no longer run"):
        store.beat(cycle.id, owner=OWNER)


def test_a_wish_to_stop_reaches_whoever_keeps_the_cycle_alive(store: Store) -> None:
    cycle = begin(store)
    store.ask_to_stop(cycle.id, by="ada")
    assert store.beat(cycle.id, owner=OWNER).stop_asked_by == "ada"
    store.finish_cycle(cycle.id, status=CycleStatus.STOPPED, reason="stopped", detail=None, now=NOON)
    with pytest.raises(Conflict, match="is not running"):
        store.ask_to_stop(cycle.id, by="ada")


def test_beginning_again_outdates_what_is_below_and_nothing_else(store: Store) -> None:
    cycle = begin(store)
    first = end(store, add_session(store, cycle))
    second = end(store, add_session(store, cycle, first, tier=2))
    third = end(store, add_session(store, cycle, second, tier=3))
    beside = end(store, add_session(store, cycle, first, tier=2))

    store.finish_cycle(cycle.id, status=CycleStatus.UNRESOLVED, reason="top_tier", detail=None, now=NOON)
    begin(store, trigger=Trigger.RETRY, retry_of=second.id)
    assert {s.id: s.epoch for s in store.chain(cycle.id).sessions} == {
        first.id: 0,
        second.id: 0,
        third.id: 1,
        beside.id: 0,
    }
