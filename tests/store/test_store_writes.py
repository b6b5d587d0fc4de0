"""Writing: the lock, compare-and-set, what an end keeps, and what both databases give back."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from supervisor.decide.lifecycle import SESSION_MOVES
from supervisor.errors import Conflict, NotFound, PausedFirst, StoreError
from supervisor.model.cycle import Cycle, CycleStatus, EventKind, NewEvent, Trigger
from supervisor.model.outcome import Failure
from supervisor.model.report import Action, Health, Level, Report, ReportedEvent, ServiceState
from supervisor.model.session import CostBasis, ModelUsage, SessionStatus, Tokens, ToolCalls
from supervisor.store import CostBy, CycleEnd, SessionEnd, Store
from supervisor.store.tallies import TallyName
from tests.store.races import race
from tests.store.store_examples import (
    NOON,
    OWNER,
    add_session,
    begin,
    end,
    minutes,
    new_session,
    tallied,
    text_event,
)

TOKENS = Tokens(input=12, output=340, cache_read=56_000, cache_write=7_800)


def finish(store: Store, cycle_id: int, status: CycleStatus = CycleStatus.HEALTHY) -> None:
    store.finish_cycle(cycle_id, status=status, reason=None, detail=None, now=NOON + minutes(5))


def test_a_schedule_runs_one_cycle_at_a_time_and_the_refusal_names_it(store: Store) -> None:
    running = begin(store)
    with pytest.raises(Conflict, match=f"running as cycle {running.id}"):
        begin(store)
    begin(store, "nightly")
    finish(store, running.id)
    assert begin(store).status is CycleStatus.RUNNING


def test_no_cycle_begins_beside_a_paused_one_of_its_schedule(store: Store) -> None:
    waiting = begin(store)
    finish(store, waiting.id, CycleStatus.PAUSED)
    with pytest.raises(PausedFirst, match=f"Cycle {waiting.id} of schedule default is paused"):
        begin(store)
    begin(store, "nightly")
    assert [cycle.schedule for cycle, _ in store.running_cycles()] == ["nightly"]
    assert store.reopen_cycle(waiting.id, owner=OWNER, now=NOON).status is CycleStatus.RUNNING


def ending(cycle: Cycle, status: CycleStatus = CycleStatus.PAUSED) -> CycleEnd:
    said = NewEvent(kind=EventKind.NOTICE, at=NOON, text=f"{cycle.id} is {status}")
    return CycleEnd(cycle_id=cycle.id, status=status, reason="r", detail="d", at=NOON, event=said)


def test_several_cycles_end_at_once_each_in_its_own_way(store: Store) -> None:
    waits, over, third = begin(store), begin(store, "nightly"), begin(store, "weekly")
    ended = store.finish_cycles([ending(over, CycleStatus.HEALTHY), ending(waits)])
    assert [(cycle.id, cycle.status) for cycle in ended] == [(over.id, "healthy"), (waits.id, "paused")]
    assert [store.cycle(cycle.id) for cycle in (over, waits)] == ended
    assert [event.text for event in store.events(cycle_id=waits.id)] == [f"{waits.id} is paused"]
    assert [entry.to_status for entry in store.history(cycle_id=over.id)] == ["running", "healthy"]
    assert [cycle for cycle, _ in store.running_cycles()] == [third]


def test_of_several_ends_all_are_recorded_or_none(store: Store) -> None:
    cycle, over = begin(store), begin(store, "nightly")
    session, ended = add_session(store, cycle), end(store, add_session(store, over))
    finish(store, over.id)
    with pytest.raises(Conflict, match=f"cycle {over.id} is healthy"):
        store.finish_cycles([ending(cycle), ending(over)])
    failed = SessionEnd(status=SessionStatus.FAILED, cost_usd=0.5, cost_basis=CostBasis.REPORTED, ended_at=NOON)
    with pytest.raises(Conflict, match=f"session {ended.id} is "):
        store.finish_sessions({session.id: failed, ended.id: failed})
    assert store.cycle(cycle.id) == cycle
    assert store.events(cycle_id=cycle.id) == []
    assert store.session(session.id) == session
    assert len(store.history(cycle_id=cycle.id)) == 2


def test_several_sessions_end_at_once_and_all_of_them_count(store: Store) -> None:
    cycle = begin(store)
    sessions = [add_session(store, cycle, tier=tier) for tier in (1, 2, 2)]
    cost = {session.id: 0.25 * session.tier for session in sessions}
    ended = store.finish_sessions(
        {
            record: SessionEnd(
                status=SessionStatus.FAILED, cost_usd=usd, cost_basis=CostBasis.REPORTED, tokens=TOKENS, ended_at=NOON
            )
            for record, usd in cost.items()
        }
    )
    assert [(session.id, session.cost_usd) for session in ended] == list(cost.items())
    assert [(row.key, row.cost_usd) for row in store.cost(None, CostBy.TIER)] == [("1", 0.25), ("2", 1.0)]
    assert tallied(store, TallyName.COST) == {("haiku", "1"): 0.25, ("haiku", "2"): 1.0}


def test_a_firing_is_claimed_once_even_after_its_cycle_ended(store: Store) -> None:
    first = begin(store, fire_key="2026-03-01T12:00:00Z")
    finish(store, first.id)
    with pytest.raises(Conflict, match=f"claimed by cycle {first.id}"):
        begin(store, fire_key="2026-03-01T12:00:00Z")
    begin(store, "nightly", fire_key="2026-03-01T12:00:00Z")
    begin(store, fire_key="2026-03-01T13:00:00Z", max_tier=2)


def test_the_owner_of_a_running_cycle_can_be_read_until_it_ends(store: Store) -> None:
    assert store.running_cycles() == []
    cycle = begin(store)
    assert store.running_cycles() == [(cycle, OWNER)]
    finish(store, cycle.id)
    assert store.running_cycles() == []


def test_a_skipped_cycle_does_not_take_the_lock(store: Store) -> None:
    begin(store)
    skipped = store.skip_cycle(
        schedule="default", trigger=Trigger.SCHEDULE, dry_run=True, reason="already_running", detail="Busy.", now=NOON
    )
    assert (skipped.status, skipped.reason, skipped.detail) == (CycleStatus.SKIPPED, "already_running", "Busy.")
    assert skipped.started_at == skipped.ended_at == NOON


def test_a_cycle_is_finished_once(store: Store) -> None:
    cycle = begin(store)
    done = store.finish_cycle(
        cycle.id, status=CycleStatus.BLOCKED, reason="dry_run", detail="Would climb.", now=NOON + minutes(5)
    )
    assert done == replace(
        cycle, status=CycleStatus.BLOCKED, reason="dry_run", detail="Would climb.", ended_at=NOON + minutes(5)
    )
    assert store.cycle(cycle.id) == done
    with pytest.raises(Conflict, match=f"cycle {cycle.id} is blocked, and what is blocked does not become healthy"):
        finish(store, cycle.id)
    with pytest.raises(NotFound, match="no cycle 99"):
        finish(store, 99)


def test_a_session_goes_from_created_to_active_to_its_end(store: Store) -> None:
    cycle = begin(store)
    created = add_session(store, cycle, prompt_bytes=2048, resumes=3, resumed_from="before")
    assert (created.status, created.cost_usd, created.cost_basis) == (SessionStatus.CREATED, None, CostBasis.UNKNOWN)
    assert (created.prompt_bytes, created.resumes, created.resumed_from) == (2048, 3, "before")
    assert (created.tokens, created.started_at, created.reported_usage) == (None, None, {})

    active = store.activate_session(created.id, pid=77, pid_started=1772366401.5, now=NOON + minutes(1))
    assert active == replace(
        created, status=SessionStatus.ACTIVE, pid=77, pid_started=1772366401.5, started_at=NOON + minutes(1)
    )

    ending = SessionEnd(
        status=SessionStatus.FAILED,
        failure=Failure.TURN_LIMIT,
        detail="Ran out of turns.",
        session_id="another",
        model_id="claude-haiku-4-5",
        cost_usd=0.0334,
        cost_basis=CostBasis.REPORTED,
        tokens=TOKENS,
        context_tokens=61_000,
        context_window=200_000,
        first_call_tokens=9_000,
        reported_usage={"claude-haiku-4-5": ModelUsage(tokens=TOKENS, cost_usd=0.0334, context_window=200_000)},
        num_turns=9,
        messages=21,
        exit_code=1,
        stop_reason="max_turns",
        tool_calls=ToolCalls(allowed=8, denied=2, deferred=1),
        tools_executed=8,
        report=Report(
            summary="web is down",
            escalation_needed=True,
            escalation_reason="needs a restart",
            services=(ServiceState(name="web", status=Health.DOWN, detail="no answer"),),
            actions=(Action(service="web", kind="restart", command="systemctl restart web", succeeded=False),),
            events=(ReportedEvent(level=Level.CRITICAL, message="out of memory", service="web"),),
        ),
        unknown_lines=2,
        last_message_at=NOON + minutes(2),
        ended_at=NOON + minutes(3),
    )
    ended = store.finish_session(active.id, ending)
    for name in SessionEnd.__slots__:
        assert getattr(ended, name) == getattr(ending, name), name
    assert ended.pid == 77
    assert store.session(ended.id) == ended


def test_a_status_change_that_comes_too_late_is_a_conflict_that_says_what_was_found(store: Store) -> None:
    session = add_session(store, begin(store))
    store.activate_session(session.id, pid=1, pid_started=1.0, now=NOON)
    with pytest.raises(Conflict, match=f"session {session.id} is active, and what is active does not become active"):
        store.activate_session(session.id, pid=2, pid_started=2.0, now=NOON)
    end(store, session)
    with pytest.raises(Conflict, match="is completed, and what is completed does not become interrupted"):
        end(store, session, SessionStatus.INTERRUPTED)
    with pytest.raises(Conflict):
        store.capture_session_id(session.id, "late")
    assert store.session(session.id).session_id == session.session_id
    with pytest.raises(NotFound, match="no session 99"):
        store.activate_session(99, pid=1, pid_started=1.0, now=NOON)


@pytest.mark.parametrize("to", sorted(SESSION_MOVES[SessionStatus.PAUSED]))
def test_a_paused_session_leaves_that_state_once_and_keeps_when_its_process_ended(
    store: Store, to: SessionStatus
) -> None:
    session = add_session(store, begin(store))
    paused = end(store, session, SessionStatus.PAUSED, cost_usd=0.5, cost_basis=CostBasis.REPORTED)
    assert paused.status is SessionStatus.PAUSED
    assert store.leave(paused.id, to, why="over", now=NOON) == replace(paused, status=to)
    with pytest.raises(Conflict, match=f"is {to}, and what is {to} does not become {to}"):
        store.leave(paused.id, to, why="over", now=NOON)


def test_what_has_not_been_cut_off_does_not_expire(store: Store) -> None:
    session = add_session(store, begin(store))
    with pytest.raises(Conflict, match="what is created does not become expired"):
        store.leave(session.id, SessionStatus.EXPIRED, why="idle", now=NOON)
    with pytest.raises(Conflict, match="expected to be otherwise"):
        store.leave(session.id, SessionStatus.ACTIVE, why="idle", now=NOON)
    with pytest.raises(NotFound, match="no session 99"):
        store.leave(99, SessionStatus.EXPIRED, why="idle", now=NOON)


def test_an_id_that_the_cli_minted_is_kept(store: Store) -> None:
    session = add_session(store, begin(store), session_id=None)
    assert store.capture_session_id(session.id, "minted").session_id == "minted"
    assert end(store, session).session_id == "minted"


def test_two_records_may_have_the_same_cli_session(store: Store) -> None:
    cycle = begin(store)
    first = add_session(store, cycle, session_id="same")
    assert add_session(store, cycle, first, session_id="same").session_id == "same"


def progress(store: Store, record: int, **fields: object) -> None:
    given = {
        "messages": 4,
        "tools_executed": 2,
        "tokens": TOKENS,
        "cost_usd": 0.01,
        "cost_basis": CostBasis.ESTIMATED,
        "now": NOON + minutes(2),
    } | fields
    store.record_progress(record, **given)


def test_an_end_that_knows_less_than_the_live_figures_erases_nothing(store: Store) -> None:
    session = add_session(store, begin(store))
    store.activate_session(session.id, pid=1, pid_started=1.0, now=NOON)
    progress(store, session.id)
    progress(store, session.id, messages=5, cost_usd=None, tokens=None, cost_basis=CostBasis.UNKNOWN)
    ended = end(store, session, SessionStatus.INTERRUPTED, failure=Failure.INTERRUPTED)
    assert (ended.messages, ended.tools_executed, ended.tokens) == (5, 2, TOKENS)
    assert (ended.cost_usd, ended.cost_basis) == (0.01, CostBasis.ESTIMATED)
    assert ended.last_message_at == NOON + minutes(2)
    assert ended.session_id == session.session_id


@pytest.mark.parametrize("status", [SessionStatus.CREATED, SessionStatus.COMPLETED])
def test_figures_of_a_session_that_is_not_active_are_dropped(store: Store, status: SessionStatus) -> None:
    session = add_session(store, begin(store))
    if status is SessionStatus.COMPLETED:
        end(store, session, messages=9)
    before = store.session(session.id)
    progress(store, session.id)
    assert store.session(session.id) == before


def test_an_unknown_cost_stays_unknown(store: Store) -> None:
    ended = end(store, add_session(store, begin(store)), SessionStatus.FAILED)
    assert (ended.cost_usd, ended.cost_basis, ended.tokens) == (None, CostBasis.UNKNOWN, None)


def test_datetimes_come_back_aware_and_in_utc_from_any_zone(store: Store) -> None:
    east = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))
    cycle = begin(store, now=east)
    session = add_session(store, cycle, created_at=east)
    store.append_events(cycle.id, [replace(text_event("x"), at=east)])
    for moment in (
        store.cycle(cycle.id).started_at,
        store.session(session.id).created_at,
        store.events(cycle_id=cycle.id)[0].at,
    ):
        assert moment == NOON
        assert moment.tzinfo is UTC


def test_a_datetime_without_a_zone_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="without a time zone"):
        begin(store, now=datetime(2026, 3, 1))  # noqa: DTZ001


def test_events_are_appended_all_or_none(store: Store) -> None:
    cycle = begin(store)
    with pytest.raises(NotFound):
        store.append_events(cycle.id, [text_event("good"), text_event("to nobody", session_id=99)])
    assert store.events(cycle_id=cycle.id) == []
    store.append_events(cycle.id, [])
    with pytest.raises(NotFound):
        store.append_events(99, [text_event("to nobody")])


def test_a_session_of_no_cycle_is_refused(store: Store) -> None:
    with pytest.raises(NotFound):
        store.create_session(replace(new_session(begin(store)), cycle_id=99))


def test_text_that_no_database_can_hold_is_kept_as_well_as_it_can_be(store: Store) -> None:
    cycle = begin(store)
    nasty = NewEvent(
        kind=EventKind.TOOL_RESULT,
        at=NOON,
        text="nul \x00 half \ud83d pair \ud83d\ude00",
        level=Level.WARNING,
        data={"a\x00": ["\udc00", float("nan"), {"deep": ("ü", 1, None, True)}]},
    )
    store.append_events(cycle.id, [nasty])
    (kept,) = store.events(cycle_id=cycle.id)
    assert kept.text == "nul ␀ half \N{REPLACEMENT CHARACTER} pair \N{GRINNING FACE}"
    assert kept.data == {"a␀": ["\N{REPLACEMENT CHARACTER}", None, {"deep": ["ü", 1, None, True]}]}
    assert kept.level is Level.WARNING


def test_a_number_that_no_database_can_hold_is_refused_by_name(store: Store) -> None:
    with pytest.raises(StoreError, match="value"):
        add_session(store, begin(store), prompt_bytes=2**70)


def test_threads_append_and_read_at_once(store: Store) -> None:
    cycle = begin(store)

    def append(worker: int) -> None:
        for number in range(10):
            store.append_events(cycle.id, [text_event(f"{worker}.{number}"), text_event("second")])
            store.chain(cycle.id)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(append, range(8)))
    events = store.events(cycle_id=cycle.id)
    assert len(events) == 160
    for worker in range(8):
        mine = [event.text for event in events if event.text.startswith(f"{worker}.")]
        assert mine == [f"{worker}.{number}" for number in range(10)]


def test_of_many_threads_that_end_one_session_exactly_one_succeeds(store: Store) -> None:
    session = add_session(store, begin(store))

    def try_to_end(worker: int) -> bool:
        try:
            end(store, session, detail=f"by {worker}")
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(try_to_end, range(8))) == 1


BEGIN_AT_A_SIGNAL = """
import sys
from datetime import UTC, datetime
from supervisor.errors import Conflict
from supervisor.model.cycle import Trigger
from supervisor.store import Owner, open_store
with open_store(sys.argv[1]) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        store.begin_cycle(
            schedule="default", trigger=Trigger.SCHEDULE, dry_run=False,
            owner=Owner(host="h", pid=1, started=1.0), now=datetime.now(UTC),
        )
        print("won", flush=True)
    except Conflict as conflict:
        print(conflict, flush=True)
"""


def test_of_processes_that_begin_a_cycle_at_once_exactly_one_wins(store: Store, url: str) -> None:
    answers = race(BEGIN_AT_A_SIGNAL, url)
    [(running, _)] = store.running_cycles()
    assert answers == [f"Schedule default is already running as cycle {running.id}."] * 3 + ["won"]
