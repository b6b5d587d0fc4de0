"""Reading: chains from any record, lists, events, costs, and that no question reads a whole table."""

import re
from pathlib import Path

import pytest

from supervisor.errors import NotFound
from supervisor.model.cycle import Chain, CycleStatus, EventKind, NewEvent
from supervisor.model.session import CostBasis, Session, Tokens
from supervisor.store import CostBy, CostRow, Store, open_store
from supervisor.store.reads import Reads
from tests.store.explain import statements, whole_tables_read
from tests.store.store_examples import NOON, add_session, begin, end, minutes, text_event


@pytest.fixture
def tree(store: Store) -> list[Session]:
    """A root with two children, one of which has a child of its own; and one that was begun again from nothing."""
    cycle = begin(store)
    root = add_session(store, cycle)
    middle = add_session(store, cycle, root, tier=2)
    leaf = add_session(store, cycle, middle, tier=3)
    second = add_session(store, cycle, root, tier=2)
    return [root, middle, leaf, second, add_session(store, cycle)]


@pytest.mark.parametrize("start", [0, 1, 2, 3, 4], ids=["root", "middle", "leaf", "second child", "apart"])
def test_a_chain_is_the_same_from_each_of_its_records(store: Store, tree: list[Session], start: int) -> None:
    chain = store.chain_of(tree[start].id)
    assert chain == Chain(cycle=store.cycle(tree[0].cycle_id), sessions=tuple(tree))


def test_a_chain_that_crosses_cycles_is_shown_with_the_cycle_of_the_record_asked_for(
    store: Store, tree: list[Session]
) -> None:
    store.finish_cycle(tree[0].cycle_id, status=CycleStatus.STOPPED, reason=None, detail=None, now=NOON)
    later = add_session(store, begin(store, now=NOON + minutes(60)), tree[2])
    chain = store.chain_of(later.id)
    assert chain.cycle.id == later.cycle_id
    assert [cycle.id for cycle in chain.others] == [tree[0].cycle_id]
    assert chain.sessions == (*tree, later)
    assert store.chain_of(tree[0].id).sessions == chain.sessions
    assert store.chain(later.cycle_id).sessions == (later,)


def test_the_line_to_a_record_goes_up_through_earlier_cycles_as_far_as_asked(store: Store, tree: list[Session]) -> None:
    root, middle, leaf, _, _ = tree
    later = add_session(store, begin(store, "other"), leaf)
    assert store.line_to(later.id, 10) == [root, middle, leaf, later]
    assert store.line_to(later.id, 2) == [leaf, later]
    assert store.children(leaf.id) == [later]


def test_the_chain_of_a_cycle_has_all_its_sessions_oldest_first(store: Store, tree: list[Session]) -> None:
    sessions = store.chain(tree[0].cycle_id).sessions
    assert [session.id for session in sessions] == sorted(session.id for session in sessions)
    assert len(sessions) == 5


def test_what_is_not_there_is_not_found(store: Store) -> None:
    for question in (store.session, store.cycle, store.chain, store.chain_of):
        with pytest.raises(NotFound, match="99"):
            question(99)


def test_chains_come_newest_first_in_two_queries(store: Store) -> None:
    for number in range(6):
        cycle = begin(store, now=NOON + minutes(number))
        for _ in range(number % 3):
            add_session(store, cycle)
        status = CycleStatus.HEALTHY if number % 2 else CycleStatus.FAILED
        store.finish_cycle(cycle.id, status=status, reason=None, detail=None, now=NOON + minutes(10))
    other = begin(store, "nightly", now=NOON - minutes(5))
    with statements() as sent:
        chains = store.chains(4)
    assert len(sent) == 2
    assert [chain.cycle.started_at for chain in chains] == [NOON + minutes(number) for number in (5, 4, 3, 2)]
    assert [len(chain.sessions) for chain in chains] == [2, 1, 0, 2]
    assert all(session.cycle_id == chain.cycle.id for chain in chains for session in chain.sessions)
    assert [chain.cycle.started_at for chain in store.chains(2, status=CycleStatus.FAILED)] == [
        NOON + minutes(4),
        NOON + minutes(2),
    ]
    assert [chain.cycle for chain in store.chains(9, schedule="nightly")] == [other]
    assert store.chains(9, schedule="nightly", status=CycleStatus.FAILED) == []


def test_events_are_read_by_session_or_cycle_by_kind_and_from_a_place_on(store: Store) -> None:
    cycle = begin(store)
    session = add_session(store, cycle)
    store.append_events(cycle.id, [text_event("one", session_id=session.id), text_event("two")])
    notice = NewEvent(
        kind=EventKind.NOTICE, at=NOON, text="three", session_id=session.id, data={"why": {"cost": 0.5, "turns": [1]}}
    )
    store.append_events(cycle.id, [notice])

    everything = store.events(cycle_id=cycle.id)
    assert [entry.text for entry in everything] == ["one", "two", "three"]
    assert [entry.text for entry in store.events(session_id=session.id)] == ["one", "three"]
    assert [entry.text for entry in store.events(cycle_id=cycle.id, kinds={EventKind.NOTICE})] == ["three"]
    assert store.events(cycle_id=cycle.id, kinds=()) == []
    assert [entry.text for entry in store.events(cycle_id=cycle.id, after_id=everything[0].id, limit=1)] == ["two"]
    assert everything[2].data == notice.data
    with pytest.raises(ValueError, match="by session or by cycle"):
        store.events()
    with pytest.raises(ValueError, match="by session or by cycle"):
        store.events(session_id=1, cycle_id=1)


@pytest.fixture
def spent(store: Store) -> Store:
    """Costs over two days: reported, estimated, unknown, and of a session that still runs."""
    day, night = begin(store, "day"), begin(store, "night")
    tokens = Tokens(input=1, output=2, cache_read=3, cache_write=4)

    def add(cycle: object, ended: float | None, cost: float | None, basis: CostBasis, **fields: object) -> None:
        session = add_session(store, cycle, **fields)
        if ended is not None:
            end(store, session, ended_at=NOON + minutes(ended), cost_usd=cost, cost_basis=basis, tokens=tokens)
            return
        store.activate_session(session.id, pid=1, pid_started=1.0, now=NOON)
        store.record_progress(
            session.id, messages=1, tools_executed=0, tokens=None, cost_usd=cost, cost_basis=basis, now=NOON
        )

    add(day, -24 * 60, 1.0, CostBasis.REPORTED)
    add(day, 0, 0.25, CostBasis.REPORTED, tier=2, model="sonnet")
    add(day, 1, 0.5, CostBasis.ESTIMATED)
    add(night, 2, None, CostBasis.UNKNOWN, tier=10, model="opus")
    add(day, None, 0.125, CostBasis.ESTIMATED, tier=2, model="sonnet")
    return store


def row(key: str, sessions: int, cost: float | None, unknown: int, estimated: int, counted: int) -> CostRow:
    tokens = Tokens(input=counted, output=2 * counted, cache_read=3 * counted, cache_write=4 * counted)
    return CostRow(key=key, sessions=sessions, cost_usd=cost, unknown=unknown, estimated=estimated, tokens=tokens)


@pytest.mark.parametrize(
    ("by", "rows"),
    [
        (CostBy.TIER, [row("1", 2, 1.5, 0, 1, 2), row("2", 2, 0.375, 0, 1, 1), row("10", 1, None, 1, 0, 1)]),
        (CostBy.SCHEDULE, [row("day", 4, 1.875, 0, 2, 3), row("night", 1, None, 1, 0, 1)]),
        (
            CostBy.MODEL,
            [row("haiku", 2, 1.5, 0, 1, 2), row("opus", 1, None, 1, 0, 1), row("sonnet", 2, 0.375, 0, 1, 1)],
        ),
        (CostBy.DAY, [row("2026-02-28", 1, 1.0, 0, 0, 1), row("2026-03-01", 4, 0.875, 1, 2, 3)]),
    ],
    ids=[by.value for by in CostBy],
)
def test_costs_are_added_up_by(spent: Store, by: CostBy, rows: list[CostRow]) -> None:
    assert spent.cost(None, by) == rows


@pytest.mark.parametrize("by", list(CostBy))
def test_what_was_spent_is_the_sum_of_the_cost_rows_and_counts_what_still_runs(spent: Store, by: CostBy) -> None:
    assert spent.spent_since(NOON) == 0.875
    assert sum(line.cost_usd or 0 for line in spent.cost(NOON, by)) == 0.875
    assert spent.spent_since(NOON + minutes(60)) == 0.125


def test_what_a_cycle_spent_is_known_while_it_runs(spent: Store) -> None:
    by_schedule = {cycle.schedule: cycle.id for cycle, _ in spent.running_cycles()}
    assert spent.spent_in_cycle(by_schedule["day"]) == 1.875
    assert spent.spent_in_cycle(by_schedule["night"]) == 0.0


def test_nothing_was_spent_in_an_empty_store(store: Store) -> None:
    assert store.spent_in_cycle(1) == 0.0
    assert store.spent_since(NOON) == 0.0
    assert store.cost(None, CostBy.DAY) == []


def test_the_known_window_is_the_newest_of_that_model_and_binary(store: Store) -> None:
    cycle = begin(store)
    for window, fields in (
        (200_000, {}),
        (1_000_000, {}),
        (None, {}),
        (500_000, {"basis": CostBasis.ESTIMATED}),
        (300_000, {"model": "opus"}),
        (400_000, {"runtime_id": "other"}),
    ):
        basis = fields.pop("basis", CostBasis.REPORTED)
        end(store, add_session(store, cycle, **fields), context_window=window, cost_usd=0.5, cost_basis=basis)
    assert store.known_window("haiku", "ops1:2.1.325") == 1_000_000
    assert store.known_window("sonnet", "ops1:2.1.325") is None


def test_unfinished_sessions_are_those_without_an_outcome(store: Store) -> None:
    cycle = begin(store)
    created, active, ended = (add_session(store, cycle) for _ in range(3))
    store.activate_session(active.id, pid=1, pid_started=1.0, now=NOON)
    end(store, ended)
    add_session(store, begin(store, "other"))
    assert [session.id for session in store.unfinished_sessions(cycle.id)] == [created.id, active.id]


def test_chains_of_named_cycles_come_in_their_order(store: Store) -> None:
    first, other, last = begin(store), begin(store, "other"), begin(store, "third")
    kept = add_session(store, last)
    add_session(store, other)
    found = store.chains_of_cycles([last.id, first.id, 99])
    assert [(chain.cycle, chain.sessions) for chain in found] == [(first, ()), (last, (kept,))]


QUESTIONS = {
    "session": lambda store: store.session(1),
    "cycle": lambda store: store.cycle(1),
    "running_cycles": lambda store: store.running_cycles(),
    "owners": lambda store: store.owners(),
    "chain": lambda store: store.chain(1),
    "chain_of": lambda store: store.chain_of(1),
    "children": lambda store: store.children(1),
    "line_to": lambda store: store.line_to(1, 5),
    "chains": lambda store: store.chains(5),
    "chains by status": lambda store: store.chains(5, status=CycleStatus.RUNNING),
    "chains by schedule": lambda store: store.chains(5, schedule="default"),
    "chains by both": lambda store: store.chains(5, status=CycleStatus.RUNNING, schedule="default"),
    "chains_of_cycles": lambda store: store.chains_of_cycles([1, 2]),
    "events of a session": lambda store: store.events(session_id=1, kinds={EventKind.TEXT}, after_id=1, limit=5),
    "event_counts": lambda store: store.event_counts([1, 2], {EventKind.TEXT}),
    "events of a cycle": lambda store: store.events(cycle_id=1),
    "cost by tier": lambda store: store.cost(NOON, CostBy.TIER),
    "cost by schedule": lambda store: store.cost(NOON, CostBy.SCHEDULE),
    "cost by model": lambda store: store.cost(NOON, CostBy.MODEL),
    "cost by day": lambda store: store.cost(NOON, CostBy.DAY),
    "spent_since": lambda store: store.spent_since(NOON),
    "spent_in_cycle": lambda store: store.spent_in_cycle(1),
    "known_window": lambda store: store.known_window("haiku", "r"),
    "unfinished_sessions": lambda store: store.unfinished_sessions(1),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_question_reads_a_whole_table(question: str, sqlite_url: str, tmp_path: Path) -> None:
    with open_store(sqlite_url) as store:
        add_session(store, begin(store))
        with statements() as sent:
            QUESTIONS[question](store)
    scans = whole_tables_read(sent, tmp_path / "state" / "opsladder.db")
    if question == "chains":
        # Without a filter the newest cycles are read from the end of the index until there are enough.
        assert all(re.fullmatch(r"SCAN cycles USING (COVERING )?INDEX ix_cycles_started_at", step) for step in scans)
    else:
        assert scans == []


def test_every_public_question_is_among_those_explained() -> None:
    public = {name for name in vars(Reads) if not name.startswith("_")}
    assert public == {question.split()[0] for question in QUESTIONS}
