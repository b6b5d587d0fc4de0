"""Beginning a cycle while others pause, go on with and begin cycles of the same schedule."""

import asyncio
import datetime as dt
from dataclasses import replace

import pytest
from make import NEEDED, RUNTIME

from supervisor.climb.begin import begin, for_cycle
from supervisor.climb.ladder import CycleRequest, Ladder
from supervisor.climb.outlook import policy_for, surroundings
from supervisor.climb.owner import this_process
from supervisor.decide.next_step import next_step
from supervisor.model.cycle import Cycle, CycleStatus, Trigger
from supervisor.model.outcome import Failure
from supervisor.model.session import ContinuityKind, CostBasis, Reason, SessionStatus
from supervisor.model.step import RunTier
from supervisor.prompts import Prompts
from supervisor.settings import load_settings
from supervisor.store import NewSession, SessionEnd, Store, open_store

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def lose(store: Store) -> Cycle:
    """A cycle that was cut off, and that another supervisor has just settled."""
    cycle = store.begin_cycle(
        schedule="default", trigger=Trigger.SCHEDULE, dry_run=False, owner=this_process(), now=NOW
    )
    return store.finish_cycle(cycle.id, status=CycleStatus.PAUSED, reason="interrupted", detail=None, now=NOW)


def test_a_cycle_that_is_paused_after_we_looked_is_gone_on_with(tmp_path, monkeypatch):
    settings = load_settings(None, {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}, cwd=tmp_path)
    settings.state.dir.mkdir()
    with open_store(settings.database_url()) as store:
        ladder = Ladder(settings=settings, store=store, runtime=RUNTIME, prompts=Prompts(settings.prompt_dirs))
        request = CycleRequest(schedule="default", trigger=Trigger.SCHEDULE, dry_run=False, max_tier=3)
        look, lost = store.chains, []

        def look_too_early(*wanted):
            seen = look(*wanted)
            if not lost:
                lost.append(lose(store))
            return seen

        monkeypatch.setattr(store, "chains", look_too_early)
        begun = asyncio.run(begin(ladder, request))

        assert (begun.id, begun.status) == (lost[0].id, CycleStatus.RUNNING)
        assert [cycle.id for cycle, _ in store.running_cycles()] == [begun.id]


def spend_all(store: Store, end: SessionEnd) -> Cycle:
    """A cycle that has spent all it may, and waits."""
    cycle = store.begin_cycle(
        schedule="default", trigger=Trigger.SCHEDULE, dry_run=False, owner=this_process(), now=NOW, max_tier=3
    )
    new = NewSession(
        cycle_id=cycle.id,
        tier=1,
        model="haiku",
        session_id="a",
        parent_session_id=None,
        continuity=ContinuityKind.FRESH,
        reason=Reason.FIRST_TIER,
        work_dir="/",
        runtime_id=RUNTIME.id,
        created_at=NOW,
    )
    session = store.activate_session(store.create_session(new).id, pid=1, pid_started=1.0, now=NOW)
    store.finish_session(session.id, end)
    return store.finish_cycle(cycle.id, status=CycleStatus.PAUSED, reason="budget", detail=None, now=NOW)


SPENT = {"cost_usd": 1.5, "cost_basis": CostBasis.REPORTED, "messages": 2, "ended_at": NOW}
SPENDERS = {
    "in_a_run": SessionEnd(status=SessionStatus.PAUSED, failure=Failure.BUDGET, **SPENT),
    "between_two_tiers": SessionEnd(status=SessionStatus.COMPLETED, report=NEEDED, **SPENT),
}


@pytest.mark.parametrize("end", SPENDERS.values(), ids=SPENDERS.keys())
def test_a_cycle_that_has_spent_its_budget_goes_on_the_next_day_by_itself(tmp_path, end):
    environ = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "OPSLADDER_BUDGET__PER_CYCLE_USD": "1.0"}
    settings = load_settings(None, environ, cwd=tmp_path)
    settings.state.dir.mkdir()
    with open_store(settings.database_url()) as store:
        waiting = spend_all(store, end)
        request = CycleRequest(schedule="default", trigger=Trigger.SCHEDULE, dry_run=False, max_tier=3)

        def at(now: dt.datetime) -> Cycle:
            prompts = Prompts(settings.prompt_dirs)
            ladder = Ladder(settings=settings, store=store, runtime=RUNTIME, prompts=prompts, clock=lambda: now)
            return asyncio.run(begin(ladder, request))

        same_day = at(NOW + dt.timedelta(hours=23))
        assert (same_day.status, same_day.reason) == (CycleStatus.SKIPPED, "paused")
        next_day = at(NOW + dt.timedelta(hours=24))
        assert (next_day.id, next_day.status) == (waiting.id, CycleStatus.RUNNING)


def test_a_retry_that_waited_until_its_record_was_pruned_begins_afresh(tmp_path):
    settings = load_settings(None, {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}, cwd=tmp_path)
    settings.state.dir.mkdir()
    with open_store(settings.database_url()) as store:
        ladder = Ladder(settings=settings, store=store, runtime=RUNTIME, prompts=Prompts(settings.prompt_dirs))
        pruned = {"start_tier": 2, "retry_of": 99}
        waiting = store.begin_cycle(
            schedule="default",
            trigger=Trigger.RETRY,
            dry_run=False,
            owner=this_process(),
            now=NOW,
            max_tier=3,
            request=pruned,
        )
        store.finish_cycle(waiting.id, status=CycleStatus.PAUSED, reason="budget", detail=None, now=NOW)
        request = CycleRequest(schedule="default", trigger=Trigger.SCHEDULE, dry_run=False, max_tier=3)

        begun = asyncio.run(begin(ladder, request))

        assert (begun.id, begun.status) == (waiting.id, CycleStatus.RUNNING)
        asked = for_cycle(request, begun)
        chain = store.chain(begun.id)
        step = next_step(chain, policy_for(ladder, asked, chain), surroundings(ladder, asked, chain), now=NOW)
        assert isinstance(step, RunTier)
        assert (step.tier, step.continuity.kind) == (2, ContinuityKind.FRESH)


@pytest.mark.parametrize("limit", ["PER_CYCLE_USD", "PER_DAY_USD"])
def test_what_a_person_approved_still_holds_when_the_cycle_was_cut_off_since(tmp_path, limit):
    environ = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), f"OPSLADDER_BUDGET__{limit}": "1.0"}
    settings = load_settings(None, environ, cwd=tmp_path)
    settings.state.dir.mkdir()
    with open_store(settings.database_url()) as store:
        prompts, later = Prompts(settings.prompt_dirs), NOW + dt.timedelta(hours=1)
        ladder = Ladder(settings=settings, store=store, runtime=RUNTIME, prompts=prompts, clock=lambda: later)
        waiting = spend_all(store, SPENDERS["between_two_tiers"])
        request = CycleRequest(schedule="default", trigger=Trigger.SCHEDULE, dry_run=False, max_tier=3)

        assert asyncio.run(begin(ladder, request)).reason == "paused"
        approved = asyncio.run(begin(ladder, replace(request, approve_budget=True)))
        assert approved.id == waiting.id
        store.finish_cycle(waiting.id, status=CycleStatus.PAUSED, reason="interrupted", detail=None, now=later)

        assert asyncio.run(begin(ladder, request)).status is CycleStatus.RUNNING
        budget = policy_for(ladder, request, store.chain(waiting.id)).budget
        assert budget.cycle_usd in (2.5, None)
        assert budget.day_usd in (2.5, None)
