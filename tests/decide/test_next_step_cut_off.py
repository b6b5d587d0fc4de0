"""How work goes on that was cut off, as a table."""

from dataclasses import replace

import pytest
from make import NOW, a_chain, a_session, policy, surroundings

from supervisor.decide.cut_off import has_to_go_on
from supervisor.decide.next_step import next_step
from supervisor.model.cycle import CycleStatus
from supervisor.model.guarding import ApprovalStatus, SwitchState
from supervisor.model.outcome import Failure
from supervisor.model.session import ContinuityKind, Reason, SessionStatus, ToolCalls
from supervisor.model.step import RunTier

ONE = a_session()
TWO = a_session(
    id=2,
    tier=2,
    parent_session_id=1,
    continuity=ContinuityKind.RESUME,
    reason=Reason.NEXT_TIER,
    session_id="22222222-2222-4222-8222-222222222222",
)
NO_TRACE = {"messages": 0, "tools_executed": 0, "tool_calls": ToolCalls()}


def cut(session, failure=Failure.INTERRUPTED, **changes):
    return replace(session, status=SessionStatus.INTERRUPTED, failure=failure, report=None, **changes)


def ask(*sessions, around=None, **changes):
    return next_step(a_chain(*sessions), policy(**changes), around or surroundings(), now=NOW)


CUTS = {
    "supervisor_killed": (SessionStatus.INTERRUPTED, Failure.INTERRUPTED, Reason.INTERRUPTED),
    "cli_killed": (SessionStatus.INTERRUPTED, Failure.KILLED, Reason.INTERRUPTED),
    "store_away": (SessionStatus.INTERRUPTED, Failure.STORE_UNAVAILABLE, Reason.INTERRUPTED),
    "wall_clock": (SessionStatus.TIMED_OUT, Failure.WALL_CLOCK, Reason.INTERRUPTED),
    "silence": (SessionStatus.TIMED_OUT, Failure.SILENCE, Reason.INTERRUPTED),
    "turn_limit": (SessionStatus.INTERRUPTED, Failure.TURN_LIMIT, Reason.TURN_LIMIT),
}


@pytest.mark.parametrize(("status", "failure", "reason"), CUTS.values(), ids=CUTS.keys())
def test_a_run_that_was_cut_off_goes_on_in_its_own_conversation_and_is_counted(status, failure, reason):
    step = ask(ONE, replace(TWO, status=status, failure=failure, report=None))

    assert isinstance(step, RunTier)
    assert (step.tier, step.continuity.kind, step.continuity.reason) == (2, ContinuityKind.RESUME, reason)
    assert (step.continuity.parent, step.continuity.resume_session_id) == (TWO.id, TWO.session_id)
    assert step.resumes == 1


def test_going_on_is_bounded_per_tier_and_a_higher_tier_starts_counting_anew():
    assert ask(cut(ONE, resumes=4)).resumes == 5
    assert ask(replace(ONE, resumes=5)).resumes == 0


def test_who_reads_of_a_run_that_was_cut_off_too_often_learns_why_and_what_to_do():
    step = ask(cut(ONE, resumes=5, detail="The run used up its turns."))

    assert (step.status, step.reason, step.tell) == (CycleStatus.FAILED, "interrupted", True)
    assert step.detail == (
        "Tier 1 was cut off again, and had been gone on with 5 times before. The run used up its turns. "
        f"It is left there: `opsladder retry {ONE.id}` goes on with it."
    )


def test_a_session_that_expired_while_it_waited_is_handed_on():
    step = ask(replace(cut(ONE), status=SessionStatus.EXPIRED))

    assert (step.tier, step.continuity.kind, step.continuity.reason) == (
        1,
        ContinuityKind.HANDOFF,
        Reason.SESSION_EXPIRED,
    )


def test_a_first_run_that_left_no_trace_is_simply_begun_again():
    step = ask(cut(ONE, **NO_TRACE))

    assert (step.tier, step.continuity.kind, step.continuity.reason) == (1, ContinuityKind.FRESH, Reason.FIRST_TIER)
    assert step.resumes == 1


def test_a_higher_tier_that_left_no_trace_takes_over_once_more_from_the_tier_below():
    step = ask(ONE, cut(TWO, **NO_TRACE))

    assert (step.tier, step.continuity.kind, step.continuity.reason) == (2, ContinuityKind.RESUME, Reason.NEXT_TIER)
    assert step.continuity.parent == ONE.id


def test_a_run_whose_stream_was_lost_but_whose_call_was_let_through_is_never_passed_over():
    lost = cut(TWO, messages=0, tools_executed=0, tool_calls=ToolCalls(allowed=1))
    step = ask(ONE, lost)

    assert (step.continuity.kind, step.continuity.parent) == (ContinuityKind.HANDOFF, TWO.id)


APPROVALS = {
    "not_used": (ApprovalStatus.APPROVED, Reason.APPROVED),
    "refused": (ApprovalStatus.DENIED, Reason.DENIED),
    "used": (ApprovalStatus.USED, Reason.INTERRUPTED),
}


@pytest.mark.parametrize(("status", "reason"), APPROVALS.values(), ids=APPROVALS.keys())
def test_an_approval_is_used_from_the_record_that_asked_for_it_and_only_while_it_is_unused(status, reason):
    asked = replace(ONE, status=SessionStatus.COMPLETED, failure=Failure.APPROVAL, report=None)
    again = cut(
        ONE, id=2, parent_session_id=1, reason=Reason.APPROVED, continuity=ContinuityKind.RESUME, session_id="b" * 36
    )
    step = ask(asked, replace(again, **NO_TRACE), around=surroundings(approvals={1: status}))

    assert (step.continuity.parent, step.continuity.reason) == (1, reason)


def test_nothing_goes_on_while_the_switch_is_off():
    off = SwitchState(paused=True, at=NOW, by="ada", reason="maintenance")
    step = ask(cut(ONE), around=surroundings(switch=off))

    assert step.reason == "switch"


def test_a_retry_runs_the_tier_again_in_the_conversation_of_the_record():
    around = surroundings(earlier=replace(TWO, cycle_id=7), occasion=Reason.OPERATOR_RETRY)
    step = ask(around=around, start_tier=2)

    assert (step.tier, step.continuity.kind, step.continuity.reason) == (
        2,
        ContinuityKind.RESUME,
        Reason.OPERATOR_RETRY,
    )
    assert step.continuity.parent == TWO.id


def test_a_retry_of_what_never_got_anywhere_is_fresh_and_stays_linked():
    around = surroundings(earlier=replace(ONE, **NO_TRACE), occasion=Reason.OPERATOR_RETRY)
    step = ask(around=around)

    assert (step.continuity.kind, step.continuity.parent) == (ContinuityKind.FRESH, ONE.id)


def test_a_retry_without_resuming_hands_the_context_on_in_writing():
    around = surroundings(earlier=ONE, occasion=Reason.OPERATOR_RETRY, force_fresh=True)
    step = ask(around=around)

    assert (step.continuity.kind, step.continuity.reason) == (ContinuityKind.HANDOFF, Reason.FORCED_FRESH)


LEFT_TO_DO = {
    "nothing_ran_yet": ((), True),
    "cut_off": ((cut(ONE),), True),
    "cut_off_too_often": ((cut(ONE, resumes=5),), False),
    "completed": ((ONE,), False),
    "paused": ((replace(ONE, status=SessionStatus.PAUSED, failure=Failure.BUDGET),), False),
}


@pytest.mark.parametrize(("sessions", "left"), LEFT_TO_DO.values(), ids=LEFT_TO_DO.keys())
def test_what_has_to_go_on_is_seen_without_looking_around_and_agrees_with_the_decision(sessions, left):
    assert has_to_go_on(a_chain(*sessions), max_resumes=5) is left
    if left:
        assert isinstance(ask(*sessions), RunTier)
