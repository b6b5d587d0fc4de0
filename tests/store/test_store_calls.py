"""The guard's answers: recorded one by one, the newest counts, and a call ends once."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from supervisor.errors import Conflict, NotFound
from supervisor.model.guarding import CallOutcome, RecordedCall
from supervisor.model.permission import Decision, ToolCall, Verdict
from supervisor.model.session import Session, ToolCalls
from supervisor.store import Store
from tests.store.store_examples import NOON, add_session, begin, minutes

CALL = ToolCall(tool_use_id="toolu_1", tool="Bash", input={"command": "uptime", "nested": {"a": [1, None, "ü"]}})


@pytest.fixture
def session(store: Store) -> Session:
    return add_session(store, begin(store))


def answer(store: Store, session: Session, verdict: Verdict, call: ToolCall = CALL) -> RecordedCall:
    decision = Decision(verdict=verdict, rule="read-only", sentence="It only reads.")
    return store.record_call(
        session=session.id, cycle=session.cycle_id, call=call, text="uptime", decision=decision, now=NOON
    )


def finish(store: Store, session: Session, *, failed: bool = False, tool_use_id: str = "toolu_1") -> RecordedCall:
    return store.end_call(session=session.id, tool_use_id=tool_use_id, failed=failed, now=NOON + minutes(1))


def test_an_answer_is_kept_as_it_was_given(store: Store, session: Session) -> None:
    recorded = answer(store, session, Verdict.ALLOW)
    assert recorded == RecordedCall(
        id=recorded.id,
        session_id=session.id,
        cycle_id=session.cycle_id,
        tool_use_id="toolu_1",
        ask=1,
        tool="Bash",
        input=CALL.input,
        text="uptime",
        verdict=Verdict.ALLOW,
        rule="read-only",
        sentence="It only reads.",
        at=NOON,
    )
    assert store.calls(session.id) == [recorded]


def test_the_calls_of_several_sessions_come_in_one_answer(store: Store) -> None:
    guarded = [add_session(store, begin(store, name)) for name in ("one", "two", "three")]
    recorded = [answer(store, session, Verdict.ALLOW) for session in guarded[:2]]
    found = store.calls_of_sessions([session.id for session in guarded])
    assert list(found.values()) == [[recorded[0]], [recorded[1]], []]


@pytest.mark.parametrize(("failed", "outcome"), [(False, CallOutcome.SUCCEEDED), (True, CallOutcome.FAILED)])
def test_a_call_that_was_let_through_ends_once(
    store: Store, session: Session, failed: bool, outcome: CallOutcome
) -> None:
    recorded = answer(store, session, Verdict.ALLOW)
    ended = finish(store, session, failed=failed)
    assert ended == replace(recorded, outcome=outcome, ended_at=NOON + minutes(1))
    assert store.calls(session.id) == [ended]
    with pytest.raises(Conflict, match=f"toolu_1 of session {session.id} has {outcome} already"):
        finish(store, session)


@pytest.mark.parametrize("verdict", [Verdict.DENY, Verdict.DEFER])
def test_a_call_that_was_not_let_through_cannot_end(store: Store, session: Session, verdict: Verdict) -> None:
    answer(store, session, verdict)
    with pytest.raises(Conflict, match="was not let through"):
        finish(store, session)


def test_a_call_nobody_asked_about_is_not_allowed_and_cannot_end(store: Store, session: Session) -> None:
    other = add_session(store, begin(store, "other"))
    answer(store, other, Verdict.ALLOW)
    assert not store.allowed(session.id, "toolu_1")
    assert not store.allowed(other.id, "toolu_2")
    with pytest.raises(NotFound, match="never asked about the tool call toolu_1"):
        finish(store, session)


@pytest.mark.parametrize(
    ("answers", "allowed"),
    [
        pytest.param([Verdict.ALLOW], True, id="allowed"),
        pytest.param([Verdict.DENY], False, id="denied"),
        pytest.param([Verdict.DEFER], False, id="deferred"),
        pytest.param([Verdict.DEFER, Verdict.ALLOW], True, id="deferred, then allowed"),
        pytest.param([Verdict.ALLOW, Verdict.DENY], False, id="allowed, then denied"),
    ],
)
def test_the_newest_answer_to_a_call_counts(
    store: Store, session: Session, answers: list[Verdict], allowed: bool
) -> None:
    recorded = [answer(store, session, verdict) for verdict in answers]
    assert [call.ask for call in recorded] == list(range(1, len(answers) + 1))
    assert store.allowed(session.id, "toolu_1") is allowed


def test_a_deferred_call_that_a_fork_asks_about_again_is_the_forks_own(store: Store, session: Session) -> None:
    fork = add_session(store, store.cycle(session.cycle_id), session)
    answer(store, session, Verdict.DEFER)
    assert answer(store, fork, Verdict.ALLOW).ask == 1
    finish(store, fork)
    assert not store.allowed(session.id, "toolu_1")
    assert store.allowed(fork.id, "toolu_1")


def test_answers_are_counted_by_kind(store: Store, session: Session) -> None:
    for number, verdict in enumerate([Verdict.ALLOW, Verdict.ALLOW, Verdict.DENY, Verdict.ALLOW, Verdict.DEFER]):
        answer(store, session, verdict, replace(CALL, tool_use_id=f"toolu_{number}"))
    assert store.call_counts(session.id) == ToolCalls(allowed=3, denied=1, deferred=1)
    assert store.call_counts(99) == ToolCalls()


def test_an_answer_to_no_session_is_refused(store: Store, session: Session) -> None:
    with pytest.raises(NotFound):
        answer(store, replace(session, id=99), Verdict.ALLOW)


def test_an_id_that_no_database_can_hold_is_found_again(store: Store, session: Session) -> None:
    odd = "toolu_\x00\ud83d"
    answer(store, session, Verdict.ALLOW, replace(CALL, tool_use_id=odd))
    assert store.allowed(session.id, odd)
    assert finish(store, session, tool_use_id=odd).outcome is CallOutcome.SUCCEEDED


def test_of_many_threads_that_end_one_call_exactly_one_succeeds(store: Store, session: Session) -> None:
    answer(store, session, Verdict.ALLOW)

    def try_to_end(_: int) -> bool:
        try:
            finish(store, session)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(try_to_end, range(8))) == 1


def test_calls_of_one_session_in_parallel_are_all_recorded(store: Store, session: Session) -> None:
    def ask(number: int) -> None:
        answer(store, session, Verdict.ALLOW, replace(CALL, tool_use_id=f"toolu_{number}"))
        finish(store, session, tool_use_id=f"toolu_{number}")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(ask, range(40)))
    assert {call.outcome for call in store.calls(session.id)} == {CallOutcome.SUCCEEDED}
    assert store.call_counts(session.id).allowed == 40
