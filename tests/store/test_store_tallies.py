"""What is counted for good: in the transaction that makes it true, once, and by several processes at a time."""

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, text

from supervisor.errors import Conflict, NotFound, StoreError
from supervisor.model.cycle import Cycle, CycleStatus, Trigger
from supervisor.model.guarding import NewApproval
from supervisor.model.outcome import Failure
from supervisor.model.permission import Decision, ToolCall, Verdict
from supervisor.model.session import ContinuityKind, CostBasis, Reason, Session, SessionStatus, Tokens
from supervisor.store import CostBy, CostRow, SessionEnd, Store, open_store
from supervisor.store.declared import declared_schema
from supervisor.store.tallies import DURATION_BOUNDS, Tally, TallyName
from tests.store.explain import statements, whole_tables_read
from tests.store.races import race
from tests.store.store_examples import NOON, OWNER, add_session, begin, end, minutes, tallied

TOKENS = Tokens(input=1, output=2, cache_read=3, cache_write=4)


def over(store: Store, cycle: Cycle, status: CycleStatus = CycleStatus.HEALTHY, **fields: object) -> None:
    store.finish_cycle(cycle.id, **{"status": status, "reason": None, "detail": None, "now": NOON} | fields)


def ask(store: Store, session: Session, verdict: Verdict, call: str = "toolu_1") -> None:
    store.record_call(
        session=session.id,
        cycle=session.cycle_id,
        call=ToolCall(tool_use_id=call, tool="Bash", input={}),
        text="",
        decision=Decision(verdict=verdict, rule="r", sentence="s"),
        now=NOON,
    )


def run_for(store: Store, cycle: Cycle, seconds: float, **fields: object) -> Session:
    session = add_session(store, cycle, **fields)
    store.activate_session(session.id, pid=1, pid_started=1.0, now=NOON)
    return end(store, session, ended_at=NOON + timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("seconds", "bound"),
    [(0, "5.0"), (5, "5.0"), (5.001, "15.0"), (3600, "3600.0"), (3601, "+Inf"), (-60, "5.0")],
    ids=["at once", "on a bound", "above it", "the last bound", "longer", "a clock put back"],
)
def test_a_duration_falls_into_one_class(store: Store, seconds: float, bound: str) -> None:
    run_for(store, begin(store), seconds, tier=2)
    assert tallied(store, TallyName.DURATION_CLASS) == {(bound, "2"): 1.0}
    assert tallied(store, TallyName.DURATION_SUM) == {("2",): pytest.approx(max(0, seconds))}


def test_durations_add_up_by_tier(store: Store) -> None:
    cycle = begin(store)
    for tier, seconds in ((1, 10), (1, 20), (2, 100)):
        run_for(store, cycle, seconds, tier=tier)
    assert tallied(store, TallyName.DURATION_SUM) == {("1",): 30.0, ("2",): 100.0}


def test_a_session_that_never_started_has_no_duration(store: Store) -> None:
    session = add_session(store, begin(store))
    never = SessionEnd(status=SessionStatus.FAILED, failure=Failure.SPAWN_FAILED, ended_at=NOON)
    store.finish_session(session.id, never)
    assert tallied(store, TallyName.DURATION_CLASS) == {}
    assert tallied(store, TallyName.FAILURES) == {("spawn_failed", "1"): 1.0}


def test_the_bounds_ascend() -> None:
    assert list(DURATION_BOUNDS) == sorted(set(DURATION_BOUNDS))


@pytest.mark.parametrize(
    ("tier", "continuity", "reason", "escalations", "fallbacks"),
    [
        (2, ContinuityKind.RESUME, Reason.NEXT_TIER, {("resume", "1", "next_tier"): 1.0}, {}),
        (
            2,
            ContinuityKind.HANDOFF,
            Reason.CONTEXT_THRESHOLD,
            {("handoff", "1", "context_threshold"): 1.0},
            {("context_threshold",): 1.0},
        ),
        (3, ContinuityKind.FRESH, Reason.INTERRUPTED, {("fresh", "1", "interrupted"): 1.0}, {}),
        (1, ContinuityKind.RESUME, Reason.OPERATOR_RETRY, {}, {}),
        (1, ContinuityKind.HANDOFF, Reason.SESSION_EXPIRED, {}, {("session_expired",): 1.0}),
    ],
    ids=["resumed", "handed off", "fresh", "the same tier again", "the same tier handed off"],
)
def test_a_run_is_an_escalation_when_it_is_above_its_parent_and_a_fallback_when_it_is_a_handoff(
    store: Store, tier: int, continuity: ContinuityKind, reason: Reason, escalations: object, fallbacks: object
) -> None:
    cycle = begin(store)
    add_session(store, cycle, add_session(store, cycle), tier=tier, continuity=continuity, reason=reason)
    assert tallied(store, TallyName.ESCALATIONS) == escalations
    assert tallied(store, TallyName.FALLBACKS) == fallbacks


def test_a_first_run_on_a_high_tier_is_no_escalation(store: Store) -> None:
    add_session(store, begin(store), tier=3)
    assert tallied(store, TallyName.ESCALATIONS) == {}


@pytest.mark.parametrize("reason", ["max_tier", "dry_run"])
def test_a_blocked_climb_is_counted_from_the_tier_it_had_come_to(store: Store, reason: str) -> None:
    cycle = begin(store)
    below = add_session(store, cycle)
    end(store, add_session(store, cycle, below, tier=2))
    over(store, cycle, CycleStatus.BLOCKED, reason=reason)
    assert tallied(store, TallyName.ESCALATIONS)["blocked", "2", reason] == 1.0


def test_a_cycle_blocked_before_its_first_run_is_no_climb(store: Store) -> None:
    over(store, begin(store), CycleStatus.BLOCKED, reason="max_tier")
    assert tallied(store, TallyName.ESCALATIONS) == {}


def test_answers_of_the_guard_are_counted_by_the_tier_that_asked(store: Store) -> None:
    cycle = begin(store)
    one, two = add_session(store, cycle), add_session(store, cycle, tier=2)
    for session, verdict in ((one, Verdict.ALLOW), (one, Verdict.ALLOW), (one, Verdict.DENY), (two, Verdict.DEFER)):
        ask(store, session, verdict)
    expected = {("allow", "1"): 2.0, ("deny", "1"): 1.0, ("defer", "2"): 1.0}
    assert tallied(store, TallyName.GUARD_DECISIONS) == expected


def test_an_answer_to_nobody_is_not_counted(store: Store) -> None:
    with pytest.raises(NotFound):
        store.record_call(
            session=99,
            cycle=99,
            call=ToolCall(tool_use_id="t", tool="Bash", input={}),
            text="",
            decision=Decision(verdict=Verdict.DENY, rule="r", sentence="s"),
            now=NOON,
        )
    assert store.tallies() == []


def test_the_context_used_is_the_last_that_is_known(store: Store) -> None:
    cycle = begin(store)
    end(store, add_session(store, cycle), context_tokens=150_000, context_window=200_000)
    end(store, add_session(store, cycle), context_tokens=50_000, context_window=200_000)
    end(store, add_session(store, cycle), context_tokens=None, context_window=200_000)
    assert tallied(store, TallyName.CONTEXT_USED) == {("1",): 0.25}


@pytest.mark.parametrize("status", [CycleStatus.HEALTHY, CycleStatus.RESOLVED])
def test_a_success_is_dated_by_schedule(store: Store, status: CycleStatus) -> None:
    over(store, begin(store, "night"), status, now=NOON)
    over(store, begin(store, "night"), CycleStatus.FAILED, now=NOON + minutes(5))
    assert tallied(store, TallyName.LAST_SUCCESS) == {("night",): NOON.timestamp()}
    assert tallied(store, TallyName.LAST_CYCLE) == {("night",): (NOON + minutes(5)).timestamp()}


def test_neither_a_pause_nor_a_skipped_firing_is_a_cycle_that_ended(store: Store) -> None:
    over(store, begin(store, "night"), CycleStatus.PAUSED)
    store.skip_cycle(schedule="day", trigger=Trigger.SCHEDULE, dry_run=False, reason="switch", detail="off", now=NOON)
    assert tallied(store, TallyName.LAST_CYCLE) == {}
    assert tallied(store, TallyName.CYCLES) == {("day", "skipped"): 1.0}


def test_missed_firings_add_up(store: Store) -> None:
    for schedule, missed in (("night", 2), ("day", 1), ("night", 3)):
        store.tally(Tally.of(TallyName.MISSED_FIRES, missed, schedule=schedule))
    assert tallied(store, TallyName.MISSED_FIRES) == {("night",): 5.0, ("day",): 1.0}


def test_labels_in_another_order_are_the_same_tally(store: Store) -> None:
    store.tally(Tally.of(TallyName.GUARD_DECISIONS, tier=1, decision="deny"))
    store.tally(Tally.of(TallyName.GUARD_DECISIONS, decision="deny", tier=1))
    assert tallied(store, TallyName.GUARD_DECISIONS) == {("deny", "1"): 2.0}


def test_a_tally_of_a_later_version_is_left_alone(store: Store) -> None:
    with store._database.writing() as connection:
        connection.execute(text("INSERT INTO tallies (name, labels, value) VALUES ('of_the_future', '{}', 1)"))
    assert store.tallies() == []


def test_an_end_that_is_refused_counts_nothing(store: Store) -> None:
    cycle = begin(store)
    session = end(store, add_session(store, cycle))
    over(store, cycle)
    before = store.tallies()
    with pytest.raises(Conflict):
        end(store, session)
    with pytest.raises(Conflict):
        over(store, cycle, CycleStatus.BLOCKED, reason="max_tier")
    assert store.tallies() == before


FULL = {
    "sqlite": [
        "CREATE TRIGGER full BEFORE INSERT ON tallies BEGIN SELECT RAISE(ABORT, 'disk full'); END",
    ],
    "postgresql": [
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'disk full'; END $$",
        "CREATE TRIGGER full_disk BEFORE INSERT ON tallies EXECUTE FUNCTION full_disk()",
    ],
}


def test_what_cannot_be_counted_has_not_happened(own_url: str, kind: str) -> None:
    with open_store(own_url) as store:
        cycle = begin(store)
        session = add_session(store, cycle)
        with store._database.writing() as connection:
            for statement in FULL[kind]:
                connection.execute(text(statement))
        with pytest.raises(StoreError):
            end(store, session)
        with pytest.raises(StoreError):
            over(store, cycle)
        with pytest.raises(StoreError):
            ask(store, session, Verdict.ALLOW)
        assert store.session(session.id).status is SessionStatus.ACTIVE
        assert store.cycle(cycle.id).status is CycleStatus.RUNNING
        assert store.calls(session.id) == []
        assert store.tallies() == []
        assert [(row.sessions, row.unknown) for row in store.cost(None, CostBy.TIER)] == [(1, 1)]


def test_tallies_outlive_the_records(store: Store) -> None:
    cycle = begin(store)
    run_for(store, cycle, 12)
    over(store, cycle)
    before = store.tallies()
    assert store.delete_records(cycle.id)
    assert store.chains(10) == []
    assert store.tallies() == before != []


def tallied_costs(store: Store) -> list[CostRow]:
    """What the tallies say of each tier, in the form in which costs are told."""
    sessions: Counter[str] = Counter()
    cost: Counter[str] = Counter()
    tokens: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for (_, _, tier), count in tallied(store, TallyName.SESSIONS).items():
        sessions[tier] += int(count)
    for (_, tier), usd in tallied(store, TallyName.COST).items():
        cost[tier] += usd
    for (kind, tier), count in tallied(store, TallyName.TOKENS).items():
        tokens[tier][kind] = int(count)
    known = {"unknown": 0, "estimated": 0}
    return [
        CostRow(key=tier, sessions=sessions[tier], cost_usd=cost[tier], tokens=Tokens(**tokens[tier]), **known)
        for tier in sorted(sessions)
    ]


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
    st.sampled_from([SessionStatus.COMPLETED, SessionStatus.FAILED, SessionStatus.PAUSED, SessionStatus.TIMED_OUT]),
    st.sampled_from([0.25, 0.5]),
    st.integers(min_value=0, max_value=3),
)
cycle_ends = st.sampled_from([CycleStatus.HEALTHY, CycleStatus.UNRESOLVED, CycleStatus.PAUSED, CycleStatus.STOPPED])


@settings(max_examples=20)
@given(work=st.lists(st.tuples(st.lists(session_ends, max_size=4), cycle_ends), min_size=1, max_size=4))
def test_the_tallies_say_what_the_ledger_adds_up_to(
    fresh: Callable[[], Store], work: list[tuple[list[tuple[object, ...]], CycleStatus]]
) -> None:
    with fresh() as store:
        for number, (sessions, status) in enumerate(work):
            cycle = begin(store, f"schedule-{number}")
            for tier, model, how, cost, days in sessions:
                at = NOON + timedelta(days=days)
                known = {"cost_usd": cost, "cost_basis": CostBasis.REPORTED, "tokens": TOKENS, "ended_at": at}
                end(store, add_session(store, cycle, tier=tier, model=model), how, **known)
            over(store, cycle, status)
            assert tallied_costs(store) == store.cost(None, CostBy.TIER)


def test_an_unknown_cost_adds_nothing(store: Store) -> None:
    end(store, add_session(store, begin(store)))
    assert tallied(store, TallyName.COST) == tallied(store, TallyName.TOKENS) == {}


COUNT_MANY = """
import sys
from datetime import UTC, datetime
from supervisor.model.permission import Decision, ToolCall, Verdict
from supervisor.model.session import SessionStatus
from supervisor.store import SessionEnd, open_store
from supervisor.store.tallies import Tally, TallyName
at = datetime(2026, 3, 1, 12, 0, 10, tzinfo=UTC)
deny = Decision(verdict=Verdict.DENY, rule="r", sentence="s")
with open_store(sys.argv[1]) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    counted = 0
    for session in store.unfinished_sessions(1):
        store.tally(Tally.of(TallyName.MISSED_FIRES, 1, schedule="night"))
        call = ToolCall(tool_use_id=f"{session.id} of {id(store)}", tool="Bash", input={})
        try:
            store.record_call(session=session.id, cycle=1, call=call, text="", decision=deny, now=at)
            store.finish_session(session.id, SessionEnd(status=SessionStatus.COMPLETED, ended_at=at))
            counted += 1
        except Exception as error:
            if type(error).__name__ != "Conflict":
                raise
print(counted)
"""


def test_processes_that_count_at_once_lose_nothing(url: str, store: Store) -> None:
    cycle = begin(store)
    for tier in (1, 2) * 15:
        store.activate_session(add_session(store, cycle, tier=tier).id, pid=1, pid_started=1.0, now=NOON)

    counted = race(COUNT_MANY, url, processes=3)

    assert sum(map(int, counted)) == 30
    calls = sum(len(store.calls(session.id)) for session in store.chain(cycle.id).sessions)
    assert sum(tallied(store, TallyName.GUARD_DECISIONS).values()) == calls >= 30
    assert tallied(store, TallyName.SESSIONS) == {("fresh", "completed", tier): 15.0 for tier in "12"}
    assert tallied(store, TallyName.DURATION_CLASS) == {("15.0", tier): 15.0 for tier in "12"}
    assert tallied(store, TallyName.MISSED_FIRES)[("night",)] >= 30


def test_what_is_under_way_is_counted_by_tier(store: Store) -> None:
    cycle = begin(store)
    for tier in (1, 1, 2, 3):
        store.activate_session(add_session(store, cycle, tier=tier).id, pid=1, pid_started=1.0, now=NOON)
    end(store, store.chain(cycle.id).sessions[-1])
    add_session(store, cycle, tier=3)
    assert store.under_way(NOON).active_sessions == {1: 2, 2: 1}


def test_only_approvals_that_can_still_be_given_are_pending(store: Store) -> None:
    cycle = begin(store)
    for waits in (-1, 1, 30):
        session = add_session(store, cycle)
        store.request_approval(
            NewApproval(
                session_id=session.id,
                cycle_id=cycle.id,
                tier=1,
                tool_use_id="toolu_1",
                tool="Bash",
                input={},
                input_hash="h",
                text="",
                rule="r",
                sentence="s",
                created_at=NOON,
                expires_at=NOON + minutes(waits),
            )
        )
    assert store.under_way(NOON).approvals_pending == 2
    store.decide_approval(3, approved=False, by="ada", reason=None, now=NOON)
    assert store.under_way(NOON).approvals_pending == 1


@pytest.mark.parametrize(
    "look", [lambda s: s.under_way(NOON), lambda s: s.spent_since(NOON)], ids=["under_way", "spent"]
)
def test_a_look_reads_no_whole_table(sqlite_url: str, tmp_path: Path, look: Callable[[Store], object]) -> None:
    with open_store(sqlite_url) as store:
        add_session(store, begin(store, owner=OWNER))
        with statements() as sent:
            look(store)
    assert whole_tables_read(sent, tmp_path / "state" / "opsladder.db") == []
