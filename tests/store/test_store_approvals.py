"""Approvals: asked for once, answered once and in time, used once and for exactly that call."""

from dataclasses import replace
from datetime import timedelta

import pytest

from supervisor.errors import Conflict, NotFound
from supervisor.model.cycle import CycleStatus
from supervisor.model.guarding import Approval, ApprovalStatus, NewApproval, hash_of_input
from supervisor.model.session import Session
from supervisor.store import Store
from tests.store.races import race_often
from tests.store.store_examples import NOON, add_session, begin, minutes

INPUT = {"command": "helm upgrade web ./chart", "timeout": 60}


@pytest.fixture
def session(store: Store) -> Session:
    return add_session(store, begin(store), tier=3)


def question(session: Session, **fields: object) -> NewApproval:
    given = {
        "tool_use_id": "toolu_1",
        "tool": "Bash",
        "input": INPUT,
        "input_hash": hash_of_input(INPUT),
        "text": "helm upgrade web ./chart",
        "rule": "helm",
        "sentence": "A person has to approve this.",
        "services": ("web", "db"),
        "created_at": NOON,
        "expires_at": NOON + minutes(30),
    } | fields
    return NewApproval(session_id=session.id, cycle_id=session.cycle_id, tier=session.tier, **given)


def decide(store: Store, approval: Approval, *, approved: bool = True, after: float = 5) -> Approval:
    return store.decide_approval(
        approval.id, approved=approved, by="ada", reason="It is safe.", now=NOON + minutes(after)
    )


def use(store: Store, session: Session, **fields: object) -> Approval:
    given = {"tool_use_id": "toolu_1", "input_hash": hash_of_input(INPUT), "now": NOON + minutes(6)} | fields
    return store.use_approval(session=session.id, **given)


def test_a_question_waits_with_all_that_a_person_has_to_see(store: Store, session: Session) -> None:
    asked = store.request_approval(question(session))
    for name in NewApproval.__slots__:
        assert getattr(asked, name) == getattr(question(session), name), name
    assert (asked.status, asked.decided_at, asked.decided_by, asked.reason) == (
        ApprovalStatus.WAITING,
        None,
        None,
        None,
    )
    assert store.approval(asked.id) == asked
    assert store.pending_approvals(NOON) == [asked]


def test_a_call_is_asked_about_once_and_keeps_its_answer(store: Store, session: Session) -> None:
    asked = store.request_approval(question(session))
    again = question(session, created_at=NOON + minutes(1), expires_at=NOON + minutes(90))
    assert store.request_approval(again) == asked
    decided = decide(store, asked)
    assert store.request_approval(again) == decided


def test_a_call_that_comes_back_with_another_input_is_not_the_same_question(store: Store, session: Session) -> None:
    store.request_approval(question(session))
    with pytest.raises(Conflict, match="approval 1 is for another input of the tool call toolu_1"):
        store.request_approval(question(session, input_hash=hash_of_input({"command": "rm -rf /srv"})))


def test_a_question_from_no_session_is_refused(store: Store, session: Session) -> None:
    with pytest.raises(NotFound):
        store.request_approval(question(replace(session, id=99)))


@pytest.mark.parametrize("approved", [True, False])
def test_a_question_is_answered_once(store: Store, session: Session, approved: bool) -> None:
    asked = store.request_approval(question(session))
    status = ApprovalStatus.APPROVED if approved else ApprovalStatus.DENIED
    decided = decide(store, asked, approved=approved)
    assert decided == replace(
        asked, status=status, decided_at=NOON + minutes(5), decided_by="ada", reason="It is safe."
    )
    assert store.pending_approvals(NOON) == []
    with pytest.raises(Conflict, match=f"approval {asked.id} was expected to be waiting, but it is {status}"):
        decide(store, asked, approved=not approved)


def test_an_answer_that_comes_too_late_does_not_count(store: Store, session: Session) -> None:
    asked = store.request_approval(question(session))
    assert store.pending_approvals(NOON + minutes(30)) == []
    with pytest.raises(Conflict, match="had to be given by 2026-03-01T12:30:00Z"):
        decide(store, asked, after=30)
    assert store.expire_approvals(NOON + minutes(29)) == []
    expired = store.expire_approvals(NOON + minutes(30))
    assert expired == [replace(asked, status=ApprovalStatus.EXPIRED, decided_at=NOON + minutes(30))]
    assert store.expire_approvals(NOON + minutes(31)) == []
    with pytest.raises(Conflict, match="but it is expired"):
        decide(store, asked)


def test_what_was_answered_in_time_does_not_expire(store: Store, session: Session) -> None:
    asked = store.request_approval(question(session))
    decided = decide(store, asked)
    assert store.expire_approvals(NOON + timedelta(days=9)) == []
    assert store.approval(asked.id) == decided


def test_nobody_is_asked_any_more_for_a_cycle_that_is_over(store: Store, session: Session) -> None:
    asked = store.request_approval(question(session))
    other = store.request_approval(question(add_session(store, begin(store, "other"))))
    ending = {"reason": None, "detail": None, "now": NOON + minutes(1)}
    store.finish_cycle(session.cycle_id, status=CycleStatus.PAUSED, **ending)
    assert store.pending_approvals(NOON + minutes(1)) == [asked, other]

    store.finish_cycle(session.cycle_id, status=CycleStatus.STOPPED, **ending)

    assert store.pending_approvals(NOON + minutes(1)) == [other]
    withdrawn = store.approval(asked.id)
    assert (withdrawn.status, withdrawn.reason) == (ApprovalStatus.EXPIRED, "its cycle is over")
    with pytest.raises(Conflict):
        decide(store, asked)


def test_what_is_not_there_cannot_be_answered_or_read(store: Store) -> None:
    for ask in (
        store.approval,
        lambda number: store.decide_approval(number, approved=True, by="a", reason=None, now=NOON),
    ):
        with pytest.raises(NotFound, match="no approval 99"):
            ask(99)


def test_an_approval_is_used_once_by_the_session_that_continues_the_one_that_asked(
    store: Store, session: Session
) -> None:
    decided = decide(store, store.request_approval(question(session)))
    fork = add_session(store, store.cycle(session.cycle_id), session)
    used = use(store, fork)
    assert used == replace(decided, status=ApprovalStatus.USED, used_at=NOON + minutes(6), used_by=fork.id)
    second_fork = add_session(store, store.cycle(session.cycle_id), session)
    for late in (fork, second_fork, session):
        with pytest.raises(Conflict, match="expected to be approved, but it is used"):
            use(store, late)


def test_an_approval_is_found_from_further_down_and_from_another_cycle(store: Store, session: Session) -> None:
    decided = decide(store, store.request_approval(question(session)))
    store.finish_cycle(session.cycle_id, status=CycleStatus.FAILED, reason="killed", detail=None, now=NOON)
    later = begin(store)
    interrupted = add_session(store, later, session)
    last = add_session(store, later, interrupted)
    assert store.approval_of_call(last.id, "toolu_1") == decided
    assert use(store, last).used_by == last.id


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        pytest.param({"input_hash": hash_of_input(INPUT | {"timeout": 61})}, Conflict, id="another input"),
        pytest.param({"tool_use_id": "toolu_2"}, NotFound, id="another call"),
    ],
)
def test_an_approval_is_good_for_exactly_that_call(
    store: Store, session: Session, changes: dict[str, object], error: type[Exception]
) -> None:
    decided = decide(store, store.request_approval(question(session)))
    with pytest.raises(error):
        use(store, session, **changes)
    assert store.approval(decided.id) == decided


def test_an_approval_is_not_for_other_conversations_in_which_a_call_has_the_same_id(
    store: Store, session: Session
) -> None:
    decide(store, store.request_approval(question(session)))
    stranger = add_session(store, store.cycle(session.cycle_id))
    assert store.approval_of_call(stranger.id, "toolu_1") is None
    with pytest.raises(NotFound, match="No approval was asked for the tool call toolu_1"):
        use(store, stranger)


def test_what_is_not_approved_cannot_be_used(store: Store, session: Session) -> None:
    asked = store.request_approval(question(session))
    with pytest.raises(Conflict, match="but it is waiting"):
        use(store, session)
    decide(store, asked, approved=False)
    with pytest.raises(Conflict, match="but it is denied"):
        use(store, session)


def test_the_hash_of_an_input_does_not_depend_on_the_order_of_its_keys_but_on_all_else() -> None:
    assert hash_of_input({"a": 1, "b": {"c": 2, "d": 3}}) == hash_of_input({"b": {"d": 3, "c": 2}, "a": 1})
    different = [{"a": 1}, {"a": "1"}, {"a": 1, "b": None}, {"a": [1]}, {"a": " 1"}, {"a": "\ud83d"}, {}]
    assert len({hash_of_input(each) for each in different}) == len(different)


IN_EACH_ROUND = """
import sys
from datetime import UTC, datetime
from supervisor.errors import Conflict
from supervisor.store import open_store
now = datetime(2026, 3, 1, 12, 6, tzinfo=UTC)
with open_store(sys.argv[1]) as store:
    store.switch()
    print("ready", flush=True)
    for line in sys.stdin:
        number, call = line.split()
        try:
            ACT
            print("won", flush=True)
        except Conflict:
            print("lost", flush=True)
"""
USE = "store.use_approval(session=1, tool_use_id=call, input_hash='same', now=now)"
DECIDE = "store.decide_approval(int(number), approved=True, by='ada', reason=None, now=now)"


@pytest.mark.parametrize("act", [USE, DECIDE], ids=["use", "decide"])
def test_of_processes_that_act_on_one_approval_at_once_exactly_one_succeeds(
    store: Store, session: Session, url: str, act: str
) -> None:
    rounds = []
    for number in range(20):
        asked = store.request_approval(question(session, tool_use_id=f"toolu_{number}", input_hash="same"))
        if act == USE:
            decide(store, asked)
        rounds.append(f"{asked.id} toolu_{number}")
    answers = race_often(IN_EACH_ROUND.replace("ACT", act), url, rounds)
    assert answers == [["lost"] * 7 + ["won"]] * len(rounds)


REQUEST_IN_EACH_ROUND = """
import sys
from datetime import UTC, datetime
from supervisor.model.guarding import NewApproval
from supervisor.store import open_store
now = datetime(2026, 3, 1, 12, 6, tzinfo=UTC)
with open_store(sys.argv[1]) as store:
    store.switch()
    print("ready", flush=True)
    for line in sys.stdin:
        asked = store.request_approval(NewApproval(
            session_id=1, cycle_id=1, tier=3, tool_use_id=line, tool="Bash", input={}, input_hash="same", text="",
            rule="r", sentence="s", created_at=now, expires_at=now,
        ))
        print(asked.tool_use_id.strip(), asked.status, flush=True)
"""


def test_processes_that_ask_about_one_call_at_once_ask_one_question(store: Store, session: Session, url: str) -> None:
    answers = race_often(REQUEST_IN_EACH_ROUND, url, ["a", "b", "c", "d"], processes=4)
    assert answers == [[f"{name} waiting"] * 4 for name in "abcd"]
    assert len(store.expire_approvals(NOON + minutes(10))) == 4
