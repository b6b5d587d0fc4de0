"""What may be archived and pruned, what is never touched, how sizes are counted, and what each look costs."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert

from supervisor.errors import NotFound
from supervisor.model.cycle import Cycle, CycleStatus
from supervisor.model.guarding import NewApproval
from supervisor.model.permission import Decision, ToolCall, Verdict
from supervisor.model.session import Session, SessionStatus
from supervisor.store import Kind, Store, open_store
from supervisor.store.lifecycle_tables import INCIDENTS, KEPT_SESSIONS
from supervisor.store.tables import CYCLES
from tests.store.explain import statements, whole_tables_read
from tests.store.ledger import LIMITS, let_pass, restart
from tests.store.store_examples import NOON, OWNER, add_session, begin, end, minutes, text_event

LATER = NOON + timedelta(days=40)
ALLOWED = Decision(verdict=Verdict.ALLOW, rule="r", sentence="s")


def question(session: Session, *, until: datetime = LATER) -> NewApproval:
    return NewApproval(
        session_id=session.id,
        cycle_id=session.cycle_id,
        tier=1,
        tool_use_id="toolu_1",
        tool="Bash",
        input={},
        input_hash="h",
        text="",
        rule="r",
        sentence="s",
        created_at=NOON,
        expires_at=until,
    )


def over(store: Store, cycle: Cycle, status: CycleStatus = CycleStatus.HEALTHY) -> None:
    store.finish_cycle(cycle.id, status=status, reason=None, detail=None, now=NOON)


def told(store: Store, schedule: str = "default", parent: Session | None = None, count: int = 2) -> Session:
    """The ended session of a cycle that is over, with messages, a tool call and what else belongs to it."""
    cycle = begin(store, schedule)
    session = add_session(store, cycle, parent)
    store.append_events(cycle.id, [text_event(f"word {n}", session_id=session.id) for n in range(count)])
    call = ToolCall(tool_use_id="toolu_1", tool="Bash", input={"command": "true"})
    store.record_call(session=session.id, cycle=cycle.id, call=call, text="true", decision=ALLOWED, now=NOON)
    end(store, session)
    over(store, cycle)
    return store.session(session.id)


@contextmanager
def open_as_newest(store: Store) -> Iterator[None]:
    cycle = begin(store, "newest", now=LATER + minutes(1))
    add_session(store, cycle)
    yield
    over(store, cycle)
    assert store.delete_records(cycle.id)


def archivable(store: Store) -> list[int]:
    return [cycle.id for cycle in store.cycles_to_archive(over_since=LATER)]


def prunable(store: Store, cooled_since: datetime = LATER) -> list[int]:
    """What could be pruned if there were a newer cycle and session, which always stay."""
    with open_as_newest(store):
        return [cycle.id for cycle in store.cycles_to_prune(over_since=LATER, cooled_since=cooled_since)]


def expire(store: Store, silent_since: datetime) -> int:
    return store.expire_idle(store.idle_sessions(silent_since=silent_since), silent_since=silent_since, now=LATER)


def delete_all(store: Store, cycle_id: int) -> None:
    everything = {"events": 10**9, "tool_calls": 10**9}
    while not store.delete_messages(cycle_id, up_to=everything, now=LATER):
        pass
    while not store.delete_records(cycle_id):
        pass


CUT_OFF = [SessionStatus.PAUSED, SessionStatus.INTERRUPTED, SessionStatus.TIMED_OUT]


@pytest.mark.parametrize("status", CUT_OFF)
def test_a_session_that_was_cut_off_and_is_silent_expires_once(store: Store, status: SessionStatus) -> None:
    session = add_session(store, begin(store))
    end(store, session, status)
    over(store, store.cycle(session.cycle_id), CycleStatus.STOPPED)

    assert expire(store, NOON) == 0
    assert expire(store, NOON + minutes(1)) == 1
    assert expire(store, NOON + minutes(1)) == 0

    assert store.session(session.id).status is SessionStatus.EXPIRED
    assert store.session(session.id).ended_at == NOON
    last = store.history(session_id=session.id)[-1]
    assert (last.from_status, last.to_status, last.why, last.at) == (status, "expired", "idle", LATER)


def test_the_last_message_is_the_last_sign_of_life(store: Store) -> None:
    session = add_session(store, begin(store))
    end(store, session, SessionStatus.INTERRUPTED, last_message_at=NOON + minutes(30))
    over(store, store.cycle(session.cycle_id), CycleStatus.STOPPED)

    assert expire(store, NOON + minutes(30)) == 0
    assert expire(store, NOON + minutes(31)) == 1


ENDED = [SessionStatus.COMPLETED, SessionStatus.FAILED, SessionStatus.STOPPED, SessionStatus.REJECTED]


@pytest.mark.parametrize("status", ENDED)
def test_what_is_done_does_not_expire(store: Store, status: SessionStatus) -> None:
    session = add_session(store, begin(store))
    end(store, session, status)
    over(store, store.cycle(session.cycle_id))
    assert expire(store, LATER) == 0


def gone_on_from(store: Store, session: Session) -> None:
    add_session(store, store.cycle(session.cycle_id), session)
    over(store, store.cycle(session.cycle_id), CycleStatus.STOPPED)


def of_a_running_cycle(store: Store, session: Session) -> None:
    pass


def waits_for_a_person(store: Store, session: Session) -> None:
    store.request_approval(question(session))
    over(store, store.cycle(session.cycle_id), CycleStatus.PAUSED)


def is_approved(store: Store, session: Session) -> None:
    asked = store.request_approval(question(session))
    store.decide_approval(asked.id, approved=True, by="ada", reason=None, now=NOON)
    over(store, store.cycle(session.cycle_id), CycleStatus.PAUSED)


@pytest.mark.parametrize("why", [gone_on_from, of_a_running_cycle, waits_for_a_person, is_approved])
def test_a_session_does_not_expire_that(store: Store, why: Callable[[Store, Session], None]) -> None:
    session = add_session(store, begin(store))
    end(store, session, SessionStatus.PAUSED)
    why(store, session)
    assert expire(store, LATER) == 0
    assert store.session(session.id).status is SessionStatus.PAUSED


def nobody_answered(store: Store, session: Session) -> None:
    store.request_approval(question(session, until=NOON))
    store.expire_approvals(LATER)


def was_refused(store: Store, session: Session) -> None:
    asked = store.request_approval(question(session))
    store.decide_approval(asked.id, approved=False, by="ada", reason=None, now=NOON)


def was_used(store: Store, session: Session) -> None:
    asked = store.request_approval(question(session))
    store.decide_approval(asked.id, approved=True, by="ada", reason=None, now=NOON)
    store.use_approval(session=session.id, tool_use_id="toolu_1", input_hash="h", now=NOON)


@pytest.mark.parametrize("why", [nobody_answered, was_refused, was_used])
def test_a_paused_session_expires_whose_question(store: Store, why: Callable[[Store, Session], None]) -> None:
    session = add_session(store, begin(store))
    end(store, session, SessionStatus.PAUSED)
    why(store, session)
    over(store, store.cycle(session.cycle_id), CycleStatus.PAUSED)
    assert expire(store, LATER) == 1


def test_a_session_that_was_gone_on_from_after_it_was_found_idle_does_not_expire(store: Store) -> None:
    cycle = begin(store)
    sessions = [add_session(store, cycle) for _ in range(2)]
    for session in sessions:
        end(store, session, SessionStatus.INTERRUPTED)
    over(store, cycle, CycleStatus.STOPPED)
    found = store.idle_sessions(silent_since=LATER)
    assert found == [session.id for session in sessions]
    add_session(store, cycle, sessions[0])
    assert store.expire_idle(found, silent_since=LATER, now=LATER) == 1
    assert [store.session(session.id).status for session in sessions] == ["interrupted", "expired"]


def test_a_cycle_that_is_over_can_go_once_it_is_old_enough(store: Store) -> None:
    session = told(store)
    assert archivable(store) == prunable(store) == [session.cycle_id]
    assert store.cycles_to_archive(over_since=NOON) == []
    assert store.cycles_to_prune(over_since=NOON, cooled_since=LATER) == []


def test_the_newest_cycle_and_the_one_with_the_newest_session_stay(store: Store) -> None:
    """Else SQLite would give their numbers to others."""
    ran, skipped = told(store), begin(store, now=NOON)
    over(store, skipped)
    assert store.cycles_to_prune(over_since=LATER, cooled_since=LATER) == []
    over(store, begin(store, now=NOON))
    found = store.cycles_to_prune(over_since=LATER, cooled_since=LATER)
    assert [cycle.id for cycle in found] == [skipped.id]
    assert prunable(store) == [ran.cycle_id, skipped.id, 3]


def test_old_cycles_are_found_page_by_page_oldest_first(store: Store) -> None:
    for number in range(3):
        over(store, begin(store, now=NOON - minutes(number)))
    first, *_ = store.cycles_to_archive(over_since=LATER)
    rest = store.cycles_to_archive(over_since=LATER, after=first)
    assert [cycle.id for cycle in (first, *rest)] == [3, 2, 1]


def an_incident(store: Store, status: str) -> int:
    values = {
        "schedule": "default",
        "status": status,
        "services": [],
        "healthy_streak": 0,
        "reopened": 0,
        "last_cycle": 1,
        "opened_at": NOON,
        "updated_at": NOON,
    }
    with store._database.writing() as connection:
        made = connection.execute(insert(INCIDENTS).values(values).returning(INCIDENTS.c.id)).scalar_one()
        connection.execute(CYCLES.update().values(incident=made))
    return int(made)


def runs(store: Store, session: Session) -> None:
    with store._database.writing() as connection:
        connection.execute(CYCLES.update().values(status="running"))


def is_paused(store: Store, session: Session) -> None:
    with store._database.writing() as connection:
        connection.execute(CYCLES.update().values(status="paused"))


def is_of_an_open_incident(store: Store, session: Session) -> None:
    an_incident(store, "open")


def has_a_kept_session(store: Store, session: Session) -> None:
    incident = an_incident(store, "closed")
    kept = {"schedule": "default", "incident": incident, "tier": 1, "session_id": session.id, "kept_at": NOON}
    with store._database.writing() as connection:
        connection.execute(insert(KEPT_SESSIONS).values(kept))


def is_gone_on_from_by_a_running_cycle(store: Store, session: Session) -> None:
    add_session(store, begin(store, "other", now=LATER), session)


def is_gone_on_from_two_cycles_later(store: Store, session: Session) -> None:
    between = begin(store, "other", now=LATER)
    child = add_session(store, between, session)
    over(store, between)
    last = begin(store, "other", now=LATER)
    add_session(store, last, child)
    over(store, last, CycleStatus.PAUSED)


PROTECTED = [
    runs,
    is_paused,
    is_of_an_open_incident,
    has_a_kept_session,
    is_gone_on_from_by_a_running_cycle,
    is_gone_on_from_two_cycles_later,
]


@pytest.mark.parametrize("why", PROTECTED)
def test_a_cycle_is_not_touched_that(store: Store, why: Callable[[Store, Session], None]) -> None:
    session = told(store)
    why(store, session)
    assert archivable(store) == prunable(store) == []


def test_a_cycle_of_a_closed_incident_can_go(store: Store) -> None:
    told(store)
    an_incident(store, "closed")
    assert archivable(store) == prunable(store) == [1]


def test_a_cycle_whose_actions_a_cooldown_still_counts_is_archived_but_not_pruned(url: str, store: Store) -> None:
    session = told(store)
    store.take_slot(actions=restart("web"), limits=LIMITS, session=session.id, tool_use_id="toolu_1")
    taken = datetime.now(NOON.tzinfo)

    assert archivable(store) == [session.cycle_id]
    assert prunable(store, cooled_since=taken - minutes(60)) == []
    let_pass(url, minutes(120))
    assert prunable(store, cooled_since=taken - minutes(60)) == [session.cycle_id]


def test_all_rows_of_a_cycle_are_given_out_and_no_others(store: Store) -> None:
    session, other = told(store, count=120), told(store)
    store.request_approval(question(session))
    store.take_slot(actions=restart("web"), limits=LIMITS, session=session.id, tool_use_id="toolu_1")

    rows = list(store.rows_of_cycle(session.cycle_id))

    counts = {table: sum(row.table == table for row in rows) for table in {row.table for row in rows}}
    assert counts == {
        "cycles": 1,
        "sessions": 1,
        "transitions": len(store.history(cycle_id=session.cycle_id)),
        "approvals": 1,
        "service_actions": 1,
        "tool_calls": 1,
        "events": 120,
    }
    assert [row.values["text"] for row in rows if row.table == "events"] == [f"word {n}" for n in range(120)]
    assert other.cycle_id not in {row.values.get("cycle_id") for row in rows}
    assert {row.table for row in rows if row.is_message} == {"events", "tool_calls"}


def test_messages_go_in_batches_and_with_the_last_the_cycle_is_archived(store: Store) -> None:
    session, other = told(store, count=450), told(store)
    last = store.events(cycle_id=session.cycle_id)[-1].id
    everything = {"events": last, "tool_calls": 1}
    left = []
    while not store.delete_messages(session.cycle_id, up_to=everything, now=LATER):
        left.append(len(store.events(cycle_id=session.cycle_id)))
        assert store.cycle(session.cycle_id).archived_at is None

    assert left == [250, 50]
    assert not store.has_messages(session.cycle_id)
    assert store.cycle(session.cycle_id).archived_at == LATER
    assert archivable(store) == [other.cycle_id]
    assert len(store.events(cycle_id=other.cycle_id)) == 2
    assert len(store.calls(other.id)) == 1


def test_large_messages_go_a_few_at_a_time(store: Store) -> None:
    session = told(store, count=0)
    for _ in range(5):
        store.append_events(session.cycle_id, [text_event("x" * 600_000, session_id=session.id)])
    everything = {"events": 10**9, "tool_calls": 10**9}
    assert not store.delete_messages(session.cycle_id, up_to=everything, now=LATER)
    assert len(store.events(cycle_id=session.cycle_id)) == 3


def test_a_message_that_came_later_stays_and_keeps_the_cycle_from_being_archived(store: Store) -> None:
    session = told(store)
    last = store.events(cycle_id=session.cycle_id)[-1].id
    store.append_events(session.cycle_id, [text_event("late", session_id=session.id)])

    assert store.delete_messages(session.cycle_id, up_to={"events": last, "tool_calls": 1}, now=LATER)

    assert [event.text for event in store.events(cycle_id=session.cycle_id)] == ["late"]
    assert archivable(store) == [session.cycle_id]


def test_a_pruned_cycle_is_gone_and_what_was_continued_from_it_stays(store: Store) -> None:
    session = told(store)
    asked = store.request_approval(question(session))
    store.take_slot(actions=restart("web"), limits=LIMITS, session=session.id, tool_use_id="toolu_1")
    child = told(store, parent=session)
    grandchild = told(store, parent=child)
    store.decide_approval(asked.id, approved=True, by="ada", reason=None, now=NOON)
    store.use_approval(session=child.id, tool_use_id="toolu_1", input_hash="h", now=NOON)

    delete_all(store, session.cycle_id)

    for gone in (lambda: store.cycle(session.cycle_id), lambda: store.session(session.id)):
        with pytest.raises(NotFound):
            gone()
    assert store.history(cycle_id=session.cycle_id) == []
    assert store.session(child.id).parent_session_id is None
    assert store.session(grandchild.id).parent_session_id == child.id
    assert len(store.events(session_id=child.id)) == 2


def test_an_approval_that_a_pruned_cycle_used_stays_with_the_cycle_that_asked(store: Store) -> None:
    session = told(store)
    asked = store.request_approval(question(session))
    child = told(store, parent=session)
    store.decide_approval(asked.id, approved=True, by="ada", reason=None, now=NOON)
    store.use_approval(session=child.id, tool_use_id="toolu_1", input_hash="h", now=NOON)

    delete_all(store, child.cycle_id)

    assert (store.approval(asked.id).status, store.approval(asked.id).used_by) == ("used", None)


def test_many_records_of_a_cycle_go_in_several_transactions(store: Store) -> None:
    cycle = begin(store)
    for _ in range(100):
        end(store, add_session(store, cycle))
    over(store, cycle)
    rounds = list(iter(lambda: store.delete_records(cycle.id), True))
    assert len(rounds) == 1
    with pytest.raises(NotFound):
        store.cycle(cycle.id)


def test_a_transcript_that_a_cycle_with_messages_shares_is_left_alone(store: Store) -> None:
    one, two = told(store), told(store)
    assert store.transcripts_to_archive(one.cycle_id) == store.transcripts_to_archive(two.cycle_id) == []
    store.delete_messages(one.cycle_id, up_to={"events": 10**9, "tool_calls": 10**9}, now=LATER)
    assert store.transcripts_to_archive(two.cycle_id) == [two.session_id]


def test_sizes_are_counted_once_and_follow_what_goes(store: Store) -> None:
    assert store.size(Kind.MESSAGES) == store.size(Kind.RECORDS) == 0
    session, other = told(store, count=10), told(store)
    begin(store)
    unmeasured = store.unmeasured_cycles()
    assert [cycle.id for cycle in unmeasured] == [session.cycle_id, other.cycle_id]
    for cycle in (*unmeasured, *unmeasured):
        store.measure_cycle(cycle.id)
    assert store.unmeasured_cycles() == []
    messages, records = store.size(Kind.MESSAGES), store.size(Kind.RECORDS)
    assert messages > 14 * 200
    assert records > 2 * 200

    delete_all(store, session.cycle_id)
    assert 0 < store.size(Kind.MESSAGES) < messages / 2
    assert 0 < store.size(Kind.RECORDS) < records
    delete_all(store, other.cycle_id)
    assert store.size(Kind.MESSAGES) == store.size(Kind.RECORDS) == 0


def test_larger_messages_count_for_more(store: Store) -> None:
    session = told(store)
    store.append_events(session.cycle_id, [text_event("x" * 50_000, session_id=session.id)])
    store.measure_cycle(session.cycle_id)
    assert 50_000 < store.size(Kind.MESSAGES) < 52_000


LOOKS: dict[str, Callable[[Store], object]] = {
    "cycles_to_archive": lambda store: store.cycles_to_archive(over_since=LATER),
    "cycles_to_archive from a place on": lambda store: store.cycles_to_archive(over_since=LATER, after=store.cycle(1)),
    "cycles_to_prune": lambda store: store.cycles_to_prune(over_since=LATER, cooled_since=NOON),
    "unmeasured_cycles": lambda store: store.unmeasured_cycles(),
    "measure_cycle": lambda store: store.measure_cycle(1),
    "size": lambda store: store.size(Kind.RECORDS),
    "idle_sessions": lambda store: store.idle_sessions(silent_since=LATER),
    "expire_idle": lambda store: store.expire_idle([1, 2], silent_since=LATER, now=LATER),
    "rows_of_cycle": lambda store: list(store.rows_of_cycle(1)),
    "transcripts_to_archive": lambda store: store.transcripts_to_archive(1),
    "has_messages": lambda store: store.has_messages(1),
    "delete_messages": lambda store: store.delete_messages(1, up_to={"events": 9, "tool_calls": 9}, now=LATER),
    "delete_records": lambda store: store.delete_records(1),
}


@pytest.fixture
def in_sqlite(sqlite_url: str) -> Iterator[Store]:
    with open_store(sqlite_url) as store:
        yield store


@pytest.mark.parametrize("look", LOOKS)
def test_no_step_reads_a_whole_table(look: str, in_sqlite: Store, tmp_path: Path) -> None:
    session = told(in_sqlite)
    end(in_sqlite, add_session(in_sqlite, begin(in_sqlite, owner=OWNER)), SessionStatus.INTERRUPTED)
    if look == "delete_records":
        in_sqlite.delete_messages(session.cycle_id, up_to={"events": 10**9, "tool_calls": 10**9}, now=LATER)
    with statements() as sent:
        LOOKS[look](in_sqlite)
    scans = whole_tables_read(sent, tmp_path / "state" / "opsladder.db")
    # The oldest cycles are read from the beginning of an index until there are enough; unarchived ones are few.
    allowed = re.compile(r"SCAN cycles USING INDEX ix_cycles_unarchived")
    assert [scan for scan in scans if not allowed.fullmatch(scan)] == []
