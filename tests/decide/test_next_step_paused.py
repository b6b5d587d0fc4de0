"""When a paused chain goes on, as a table."""

import datetime as dt
import re
from dataclasses import replace

import pytest
from make import NOW, a_chain, a_session, policy, surroundings

from supervisor.decide.budget import Budget
from supervisor.decide.next_step import next_step
from supervisor.model.cycle import CycleStatus
from supervisor.model.guarding import ApprovalStatus, SwitchState
from supervisor.model.outcome import Failure
from supervisor.model.session import ContinuityKind, Reason, SessionStatus, ToolCalls
from supervisor.model.step import Finish, RunTier

MINUTE = dt.timedelta(minutes=1)
EARLIER = NOW - 5 * MINUTE


def paused(failure, **changes):
    return replace(
        a_session(status=SessionStatus.PAUSED, failure=failure, report=None),
        **{"ended_at": EARLIER, "last_message_at": EARLIER, **changes},
    )


def ask(session, *, now=NOW, around=None, **changes):
    return next_step(a_chain(session), policy(**changes), surroundings(**(around or {})), now=now)


GOES_ON = {
    "approved": (Failure.APPROVAL, {"approvals": {1: ApprovalStatus.APPROVED}}, {}, Reason.APPROVED),
    "denied": (Failure.APPROVAL, {"approvals": {1: ApprovalStatus.DENIED}}, {}, Reason.DENIED),
    "nobody_answered": (Failure.APPROVAL, {"approvals": {1: ApprovalStatus.EXPIRED}}, {}, Reason.DENIED),
    "limit_reset": (Failure.USAGE_LIMIT, {"usage_limit_resets_at": NOW}, {}, Reason.USAGE_LIMIT_RESET),
    "budget_approved": (Failure.BUDGET, {}, {"budget_approved_at": NOW}, Reason.BUDGET_APPROVED),
}


@pytest.mark.parametrize(("failure", "around", "changes", "reason"), GOES_ON.values(), ids=GOES_ON.keys())
def test_a_paused_run_goes_on_in_its_own_conversation_on_its_own_tier(failure, around, changes, reason):
    step = ask(paused(failure), around=around, **changes)

    assert isinstance(step, RunTier)
    assert (step.tier, step.continuity.kind, step.continuity.reason) == (1, ContinuityKind.RESUME, reason)


WAITS = {
    "question_unanswered": (Failure.APPROVAL, {"approvals": {1: ApprovalStatus.WAITING}}, {}),
    "question_lost": (Failure.APPROVAL, {}, {}),
    "approval_used_already": (Failure.APPROVAL, {"approvals": {1: ApprovalStatus.USED}}, {}),
    "limit_not_reset": (Failure.USAGE_LIMIT, {"usage_limit_resets_at": NOW + MINUTE}, {}),
    "limit_without_a_time": (Failure.USAGE_LIMIT, {}, {}),
    "budget_used_up": (Failure.BUDGET, {}, {}),
    "budget_approved_before_it_was_used_up": (Failure.BUDGET, {}, {"budget_approved_at": EARLIER - MINUTE}),
}


@pytest.mark.parametrize(("failure", "around", "changes"), WAITS.values(), ids=WAITS.keys())
def test_a_paused_run_stays_paused_until_what_it_waits_for_has_come(failure, around, changes):
    step = ask(paused(failure), around=around, **changes)

    assert isinstance(step, Finish)
    assert (step.status, step.reason, step.tell) == (CycleStatus.PAUSED, failure.value, True)


def test_a_used_up_budget_names_the_command_that_goes_on_with_this_very_cycle():
    step = ask(paused(Failure.BUDGET, detail="The run was stopped because a budget is used up."))

    assert re.findall(r"`opsladder cycle .*?`", step.detail) == ["`opsladder cycle default --approve-budget`"]


def test_a_used_up_budget_is_no_obstacle_on_the_next_day():
    yesterday = paused(Failure.BUDGET, ended_at=NOW - dt.timedelta(days=1))

    assert ask(yesterday).continuity.reason is not None
    assert ask(yesterday).tier == 1


def test_a_limit_without_a_time_is_tried_again_after_an_hour():
    step = ask(paused(Failure.USAGE_LIMIT), now=EARLIER + 60 * MINUTE)

    assert isinstance(step, RunTier)


def test_approved_money_that_is_spent_again_pauses_again():
    step = ask(paused(Failure.BUDGET, cost_usd=2.0), budget_approved_at=NOW, budget=Budget(cycle_usd=2.0))

    assert (step.status, step.reason) == (CycleStatus.PAUSED, "budget")


@pytest.mark.parametrize("session", [None, paused(Failure.APPROVAL), a_session()], ids=["first", "paused", "next_tier"])
def test_no_run_is_started_while_the_switch_is_off(session):
    off = SwitchState(paused=True, at=NOW, by="ada", reason="maintenance")
    around = surroundings(switch=off, approvals={1: ApprovalStatus.APPROVED})
    step = next_step(a_chain(*([session] if session else [])), policy(), around, now=NOW)

    assert (step.status, step.reason) == (CycleStatus.PAUSED, "switch")
    assert "ada" in step.detail
    assert "maintenance" in step.detail


def test_an_answer_after_the_session_grew_too_old_is_handed_off():
    old = paused(Failure.APPROVAL, last_message_at=NOW - dt.timedelta(hours=3))
    step = ask(old, around={"approvals": {1: ApprovalStatus.APPROVED}})

    assert (step.continuity.kind, step.continuity.reason) == (ContinuityKind.HANDOFF, Reason.SESSION_EXPIRED)


def test_a_limit_that_is_reached_again_and_again_is_not_run_into_for_ever():
    step = ask(paused(Failure.USAGE_LIMIT, resumes=5), around={"usage_limit_resets_at": NOW})

    assert isinstance(step, Finish)
    assert (step.status, step.reason, step.tell) == (CycleStatus.FAILED, "usage_limit", True)


def test_what_has_expired_meanwhile_still_goes_on_when_what_it_waits_for_comes():
    expired = replace(paused(Failure.BUDGET), status=SessionStatus.EXPIRED)

    assert ask(expired).status is CycleStatus.PAUSED
    step = ask(expired, budget_approved_at=NOW)
    assert (step.continuity.kind, step.continuity.reason) == (ContinuityKind.HANDOFF, Reason.SESSION_EXPIRED)


COMES = {
    "limit_reset": (Failure.USAGE_LIMIT, {"usage_limit_resets_at": NOW}, {}, 1),
    "budget_approved": (Failure.BUDGET, {}, {"budget_approved_at": NOW}, 0),
}
NO_TRACE = {"messages": 0, "tools_executed": 0, "tool_calls": ToolCalls()}


@pytest.mark.parametrize(("failure", "around", "changes", "resumes"), COMES.values(), ids=COMES.keys())
def test_a_first_run_that_paused_before_it_said_anything_is_begun_anew(failure, around, changes, resumes):
    step = ask(paused(failure, **NO_TRACE), around=around, **changes)

    assert isinstance(step, RunTier)
    assert (step.tier, step.continuity.kind, step.continuity.reason) == (1, ContinuityKind.FRESH, Reason.FIRST_TIER)
    assert step.resumes == resumes


@pytest.mark.parametrize(("failure", "around", "changes", "resumes"), COMES.values(), ids=COMES.keys())
def test_a_higher_tier_that_paused_before_it_said_anything_goes_on_from_the_one_below(
    failure, around, changes, resumes
):
    below = a_session()
    silent = paused(failure, id=2, tier=2, parent_session_id=below.id, session_id="silent", **NO_TRACE)
    step = next_step(a_chain(below, silent), policy(**changes), surroundings(**around), now=NOW)

    assert isinstance(step, RunTier)
    assert (step.tier, step.continuity.kind, step.continuity.reason) == (2, ContinuityKind.RESUME, Reason.NEXT_TIER)
    assert (step.continuity.parent, step.resumes) == (below.id, resumes)


@pytest.mark.parametrize("status", [SessionStatus.PAUSED, SessionStatus.INTERRUPTED])
def test_a_tier_that_is_not_allowed_any_more_does_not_go_on(status):
    failure = Failure.APPROVAL if status is SessionStatus.PAUSED else Failure.INTERRUPTED
    third = replace(paused(failure), status=status, tier=3)
    around = {"approvals": {1: ApprovalStatus.APPROVED}}

    assert ask(third, around=around).tier == 3
    step = ask(third, around=around, tiers=2, max_tier=2)
    assert (step.status, step.reason, step.tell) == (CycleStatus.BLOCKED, "max_tier", True)
