"""What a cycle does next, as a table."""

from dataclasses import replace

import pytest
from make import FINE, NEEDED, NOW, a_chain, a_session, policy, surroundings

from supervisor.decide.budget import Budget
from supervisor.decide.next_step import next_step
from supervisor.model.cycle import CycleStatus
from supervisor.model.outcome import Failure
from supervisor.model.report import Action, Health, ServiceState
from supervisor.model.session import UNFINISHED, ContinuityKind, Reason, SessionStatus
from supervisor.model.step import Finish, RunTier

ONE = a_session()
TWO = a_session(
    id=2,
    tier=2,
    parent_session_id=1,
    continuity=ContinuityKind.RESUME,
    reason=Reason.NEXT_TIER,
    session_id="22222222-2222-4222-8222-222222222222",
)
THREE = replace(TWO, id=3, tier=3, parent_session_id=2, session_id="33333333-3333-4333-8333-333333333333")


def ask(*sessions, around=None, **changes):
    return next_step(a_chain(*sessions), policy(**changes), around or surroundings(), now=NOW)


def test_a_cycle_begins_with_a_fresh_first_tier():
    step = ask()

    assert isinstance(step, RunTier)
    assert (step.tier, step.continuity.kind, step.continuity.reason) == (1, ContinuityKind.FRESH, Reason.FIRST_TIER)


def test_a_cycle_may_begin_higher_up():
    assert ask(start_tier=2).tier == 2


@pytest.mark.parametrize(("chain", "tier"), [((ONE,), 2), ((ONE, TWO), 3)], ids=["second", "third"])
def test_the_next_tier_resumes_the_one_before(chain, tier):
    step = ask(*chain)

    assert isinstance(step, RunTier)
    assert step.tier == tier
    assert step.continuity.kind is ContinuityKind.RESUME
    assert step.continuity.reason is Reason.NEXT_TIER
    assert step.continuity.resume_session_id == chain[-1].session_id
    assert step.continuity.parent == chain[-1].id


CONTRADICTION = replace(FINE, services=(ServiceState(name="web", status=Health.DOWN),))
ACTED = replace(FINE, actions=(Action(service="web", kind="restart", command="x", succeeded=True),))
DEGRADED = replace(FINE, services=(ServiceState(name="web", status=Health.DEGRADED),))
ENDINGS = {
    "healthy": ((replace(ONE, report=FINE),), {}, CycleStatus.HEALTHY, None, False),
    "degraded_but_not_worth_a_tier": ((replace(ONE, report=DEGRADED),), {}, CycleStatus.HEALTHY, None, False),
    "first_tier_acted": ((replace(ONE, report=ACTED),), {}, CycleStatus.RESOLVED, None, False),
    "resolved_by_tier_2": ((ONE, replace(TWO, report=FINE)), {}, CycleStatus.RESOLVED, None, False),
    "top_tier_still_unhappy": ((ONE, TWO, THREE), {}, CycleStatus.UNRESOLVED, "top_tier", True),
    "above_max_tier": ((ONE,), {"max_tier": 1}, CycleStatus.BLOCKED, "max_tier", True),
    "start_above_max_tier": ((), {"start_tier": 3, "max_tier": 2}, CycleStatus.BLOCKED, "max_tier", True),
    "dry_run": ((ONE,), {"dry_run": True}, CycleStatus.BLOCKED, "dry_run", False),
    "no_report": ((replace(ONE, report=None),), {}, CycleStatus.UNRESOLVED, "no_report", True),
    "contradiction": ((replace(ONE, report=CONTRADICTION),), {}, CycleStatus.UNRESOLVED, "services_down", True),
    "cycle_budget": (
        (replace(ONE, cost_usd=1.0),),
        {"budget": Budget(cycle_usd=1.0)},
        CycleStatus.PAUSED,
        "budget",
        True,
    ),
    "run_budget": (
        (replace(ONE, status=SessionStatus.PAUSED, failure=Failure.BUDGET),),
        {},
        CycleStatus.PAUSED,
        "budget",
        True,
    ),
    "usage_limit": (
        (replace(ONE, status=SessionStatus.PAUSED, failure=Failure.USAGE_LIMIT),),
        {},
        CycleStatus.PAUSED,
        "usage_limit",
        True,
    ),
    "cut_off_too_often": (
        (replace(ONE, status=SessionStatus.INTERRUPTED, failure=Failure.INTERRUPTED, resumes=5),),
        {},
        CycleStatus.FAILED,
        "interrupted",
        True,
    ),
    "stopped_by_an_operator": (
        (replace(ONE, status=SessionStatus.STOPPED, failure=Failure.STOPPED),),
        {},
        CycleStatus.STOPPED,
        "stopped",
        False,
    ),
    "no_output": (
        (replace(ONE, status=SessionStatus.TIMED_OUT, failure=Failure.NO_OUTPUT, messages=0),),
        {},
        CycleStatus.FAILED,
        "no_output",
        True,
    ),
    "bad_key": (
        (replace(ONE, status=SessionStatus.FAILED, failure=Failure.BAD_CREDENTIALS),),
        {},
        CycleStatus.FAILED,
        "bad_credentials",
        True,
    ),
    "stopped": ((replace(ONE, status=SessionStatus.STOPPED),), {}, CycleStatus.STOPPED, "stopped", False),
    "rejected_after_a_tool_ran": (
        (ONE, replace(TWO, status=SessionStatus.REJECTED, tools_executed=1)),
        {},
        CycleStatus.FAILED,
        "resume_rejected",
        True,
    ),
}


@pytest.mark.parametrize(("chain", "changes", "status", "reason", "tell"), ENDINGS.values(), ids=ENDINGS.keys())
def test_how_a_cycle_ends(chain, changes, status, reason, tell):
    step = ask(*chain, **changes)

    assert isinstance(step, Finish)
    assert (step.status, step.reason, step.tell) == (status, reason, tell)
    assert step.detail


def test_the_daily_budget_holds_back_the_first_tier_too():
    step = ask(around=surroundings(spent_today_usd=5.0), budget=Budget(day_usd=5.0))

    assert (step.status, step.reason) == (CycleStatus.PAUSED, "budget")


def test_a_dry_run_says_which_tier_would_have_run_for_which_services():
    step = ask(ONE, dry_run=True)

    assert (step.would_run_tier, step.services) == (2, ("web",))
    assert "tier 2" in step.detail
    assert "web" in step.detail


def test_a_rejected_resume_is_tried_once_more_with_a_handoff_from_the_parent():
    rejected = replace(
        TWO, status=SessionStatus.REJECTED, failure=Failure.RESUME_REJECTED, tools_executed=0, messages=0
    )

    step = ask(ONE, rejected)

    assert isinstance(step, RunTier)
    assert (step.tier, step.continuity.kind) == (2, ContinuityKind.HANDOFF)
    assert (step.continuity.reason, step.continuity.parent) == (Reason.RESUME_REJECTED, ONE.id)


def test_a_rejected_resume_with_no_parent_of_its_own_starts_fresh():
    rejected = replace(ONE, continuity=ContinuityKind.RESUME, status=SessionStatus.REJECTED, tools_executed=0)

    step = ask(rejected)

    assert (step.tier, step.continuity.kind) == (1, ContinuityKind.FRESH)
    assert step.continuity.reason is Reason.RESUME_REJECTED


def test_the_second_try_is_never_itself_tried_again():
    rejected = replace(TWO, status=SessionStatus.REJECTED, tools_executed=0, messages=0)
    again = replace(rejected, id=3, continuity=ContinuityKind.HANDOFF, reason=Reason.RESUME_REJECTED)

    step = ask(ONE, rejected, again)

    assert isinstance(step, Finish)
    assert step.status is CycleStatus.FAILED


def test_after_a_handoff_the_tier_above_resumes_that_one():
    rejected = replace(TWO, status=SessionStatus.REJECTED, tools_executed=0, messages=0)
    second_try = replace(TWO, id=3, continuity=ContinuityKind.HANDOFF, session_id="b" * 36, report=NEEDED)

    step = ask(ONE, rejected, second_try)

    assert (step.tier, step.continuity.resume_session_id) == (3, "b" * 36)


@pytest.mark.parametrize("status", sorted(UNFINISHED))
def test_an_unfinished_record_has_no_next_step(status):
    with pytest.raises(ValueError, match="not over"):
        ask(replace(ONE, status=status))


@pytest.mark.parametrize("status", sorted(set(SessionStatus) - UNFINISHED))
def test_every_way_a_record_can_end_has_an_answer(status):
    for sessions in ((replace(ONE, status=status),), (ONE, replace(TWO, status=status, tools_executed=0))):
        step = ask(*sessions)
        assert isinstance(step, RunTier | Finish)
        if isinstance(step, RunTier):
            assert step.tier <= 3
