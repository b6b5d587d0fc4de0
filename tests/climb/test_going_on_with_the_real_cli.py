"""Work that was cut off, retried or met again, in whole cycles on the real CLI, both versions."""

import asyncio
import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from climber import CONFIG, Climbed, bash, climb, newest_user_text, report, scripts, texts

from supervisor.climb.stop import StopRequest
from supervisor.climb.warden import Warden
from supervisor.model.cycle import CycleStatus, Trigger
from supervisor.model.outcome import Failure
from supervisor.model.permission import Decision, ToolCall, Verdict
from supervisor.model.session import ContinuityKind, CostBasis, Reason, SessionStatus, Tokens
from supervisor.rehearsal.scenario import Scenario, Script, Turn, UsageLimit

TIER = '[[tiers]]\nname = "one"\nmodel = "haiku"\nprompt = "tier1.md"\nallow = ["touch ..."]\n'
FINE = report(False)


def play(tmp_path: Path, cli: Path, *turns: Turn, **more: Any) -> Climbed:
    return asyncio.run(climb(tmp_path, cli, scripts(turns), **more))


def interrupted_once(made: Path, *given: Any, **more: Any) -> Climbed:
    """A cycle that is asked to stop as soon as a file is there."""

    async def run() -> Climbed:
        stop = StopRequest()
        later = asyncio.get_running_loop().call_later

        def look() -> None:
            if made.exists():
                stop.ask()
            else:
                later(0.01, look)

        look()
        return await climb(*given, stop=stop, **more)

    return asyncio.run(run())


def test_an_interrupted_cycle_goes_on_in_its_conversation_and_is_told_which_call_was_cut_off(tmp_path, cli):
    config = TIER + CONFIG
    slow = bash("touch begun && tail -f /dev/null")
    scenario = scripts((bash("echo one"), slow, FINE))
    first = interrupted_once(tmp_path / "work" / "begun", tmp_path, cli, scenario, config=config)
    assert (first.chain.cycle.status, first.chain.cycle.reason) == (CycleStatus.PAUSED, "interrupted")
    assert first.sessions[0].status is SessionStatus.INTERRUPTED

    second = play(tmp_path, cli, FINE, config=config)

    assert second.chain.cycle.id == first.chain.cycle.id
    assert second.chain.cycle.status is CycleStatus.HEALTHY
    cut, on = second.sessions
    assert (on.continuity, on.reason, on.resumes) == (ContinuityKind.RESUME, Reason.INTERRUPTED, 1)
    assert on.parent_session_id == cut.id
    told = newest_user_text(second.calls[0].body)
    assert "touch begun && tail -f /dev/null" in told
    assert "nobody knows how it ended" in told
    assert "echo one" not in told


@pytest.mark.parametrize("limit", ["turns", "wall_clock"])
def test_a_run_that_hits_a_limit_is_continued_a_bounded_number_of_times(tmp_path, cli, limit):
    if limit == "turns":
        config = TIER + "max_turns = 1\n" + CONFIG + "[continuity]\nmax_resumes = 2\n"
        turns = tuple(bash(f"echo {n}") for n in range(9))
        failure, reason = Failure.TURN_LIMIT, Reason.TURN_LIMIT
    else:
        config = TIER + "timeout_minutes = 0.1\n" + CONFIG + "[continuity]\nmax_resumes = 1\n"
        turns = (bash("echo 1"), *(bash("tail -f /dev/null") for _ in range(4)))
        failure, reason = Failure.WALL_CLOCK, Reason.INTERRUPTED
    done = play(tmp_path, cli, *turns, config=config)

    assert (done.chain.cycle.status, done.chain.cycle.reason) == (CycleStatus.FAILED, failure.value)
    assert [s.resumes for s in done.sessions] == list(range(len(done.sessions)))
    assert {s.failure for s in done.sessions} == {failure}
    assert {s.reason for s in done.sessions[1:]} == {reason}
    assert len({s.session_id for s in done.sessions}) == len(done.sessions)
    assert f"opsladder retry {done.sessions[-1].id}" in (done.chain.cycle.detail or "")


def attempts(*sessions: tuple[Turn, ...]) -> Scenario:
    """The turns of tier 1 in its first session, its second, and so on."""
    played = (Script(tier=1, attempt=number, turns=turns) for number, turns in enumerate(sessions, start=1))
    return Scenario(title="test", scripts=tuple(played))


def test_of_a_call_that_a_limit_cut_off_nobody_knows_how_it_ended(tmp_path, cli):
    slow = "touch begun && tail -f /dev/null"
    scenario = attempts((bash("echo one"), bash(slow)), (FINE,))
    done = asyncio.run(climb(tmp_path, cli, scenario, config=TIER + "timeout_minutes = 0.1\n" + CONFIG))

    assert done.chain.cycle.status is CycleStatus.HEALTHY
    cut, on = done.sessions
    assert (cut.failure, on.reason) == (Failure.WALL_CLOCK, Reason.INTERRUPTED)
    assert [call.outcome for call in done.store.calls(cut.id)] == ["succeeded", None]
    told = newest_user_text(next(call for call in done.calls if call.session_id == on.session_id).body)
    assert slow in told
    assert "nobody knows how it ended" in told


@pytest.mark.parametrize("refused", [False, True], ids=["not_decided", "refused"])
def test_a_run_that_is_ended_before_its_cli_knows_what_the_guard_says_is_no_breach(tmp_path, cli, monkeypatch, refused):
    async def too_late(warden: Warden, call: ToolCall) -> Decision:
        if refused:
            no = Decision(verdict=Verdict.DENY, rule="test", sentence="It is so decided.")
            warden._answers[call.tool_use_id] = no
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(Warden, "answer", too_late)
    config = TIER + "timeout_minutes = 0.1\n" + CONFIG + "[continuity]\nmax_resumes = 0\n"
    done = play(tmp_path, cli, bash("touch made"), FINE, config=config)

    assert not (tmp_path / "work" / "made").exists()
    assert (done.chain.cycle.status, done.chain.cycle.reason) == (CycleStatus.FAILED, "wall_clock")


def test_a_turn_limit_that_is_enough_the_second_time_settles_and_all_of_it_is_on_the_account(tmp_path, cli):
    config = TIER + "max_turns = 2\n" + CONFIG
    scenario = attempts((bash("echo 1"), bash("echo 2")), (FINE,))
    done = asyncio.run(climb(tmp_path, cli, scenario, config=config))

    assert done.chain.cycle.status is CycleStatus.HEALTHY
    assert [s.reason for s in done.sessions] == [Reason.FIRST_TIER, Reason.TURN_LIMIT]
    for session in done.sessions:
        account = done.account(session.session_id)
        assert session.tokens == sum(account.values(), start=Tokens())
        assert session.cost_basis is CostBasis.REPORTED


def test_a_usage_limit_that_is_over_by_the_end_of_its_run_does_not_even_pause(tmp_path, cli):
    token = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-scripted"}
    limited = Turn(usage_limit=UsageLimit(resets_in_seconds=600))

    def after_the_reset() -> dt.datetime:
        return dt.datetime.now(dt.UTC) + dt.timedelta(seconds=660)

    scenario = attempts((bash("echo first"), limited), (FINE,))
    done = asyncio.run(climb(tmp_path, cli, scenario, environ=token, ladder_changes={"clock": after_the_reset}))

    assert done.chain.cycle.status is CycleStatus.HEALTHY
    assert [s.reason for s in done.sessions] == [Reason.FIRST_TIER, Reason.USAGE_LIMIT_RESET]


def test_a_retry_resumes_the_record_in_a_cycle_of_its_own_and_outdates_what_was_below(tmp_path, cli):
    scenario = scripts((report(True),), (report(True),), (report(True),))
    first = asyncio.run(climb(tmp_path, cli, scenario))
    assert first.chain.cycle.status is CycleStatus.UNRESOLVED
    one, two, three = first.sessions

    again = asyncio.run(
        climb(tmp_path, cli, scripts((), (FINE,)), trigger=Trigger.RETRY, retry_of=two.id, start_tier=2)
    )

    assert again.chain.cycle.id != first.chain.cycle.id
    assert again.chain.cycle.trigger is Trigger.RETRY
    assert again.chain.cycle.status is CycleStatus.RESOLVED or again.chain.cycle.status is CycleStatus.HEALTHY
    [record] = again.sessions
    assert (record.tier, record.continuity, record.reason) == (2, ContinuityKind.RESUME, Reason.OPERATOR_RETRY)
    assert record.parent_session_id == two.id
    assert "An operator lets you do your part again" in newest_user_text(again.calls[0].body)
    tree = again.store.chain_of(record.id)
    assert [s.id for s in tree.sessions] == [one.id, two.id, three.id, record.id]
    assert {s.id: s.epoch for s in tree.sessions} == {one.id: 0, two.id: 0, three.id: 1, record.id: 0}


def test_a_retry_without_resuming_hands_its_context_on(tmp_path, cli):
    first = asyncio.run(climb(tmp_path, cli, scripts((bash("echo found-it"), FINE))))
    again = play(tmp_path, cli, FINE, trigger=Trigger.RETRY, retry_of=first.sessions[0].id, force_fresh=True)

    [record] = again.sessions
    assert (record.continuity, record.reason) == (ContinuityKind.HANDOFF, Reason.FORCED_FRESH)
    assert "found-it" in newest_user_text(again.calls[0].body)


def test_tier_1_goes_on_in_its_session_of_an_incident_until_two_healthy_cycles_close_it(tmp_path, cli):
    one_tier = TIER + CONFIG
    down = report(True)
    first = play(tmp_path, cli, bash("echo found-it"), down, config=one_tier)
    incident = first.chain.cycle.incident
    assert incident is not None

    second = play(tmp_path, cli, down, config=one_tier)
    [again] = second.sessions
    assert second.chain.cycle.incident == incident
    assert (again.continuity, again.reason) == (ContinuityKind.RESUME, Reason.SAME_INCIDENT)
    assert again.parent_session_id == first.sessions[0].id
    told = newest_user_text(second.calls[0].body)
    assert "This is a later cycle" in told
    assert "found-it" not in told
    assert "found-it" in texts(second.calls[0].body)

    third = play(tmp_path, cli, FINE, config=one_tier)
    fourth = play(tmp_path, cli, FINE, config=one_tier)
    assert [c.sessions[0].reason for c in (third, fourth)] == [Reason.SAME_INCIDENT, Reason.SAME_INCIDENT]
    assert fourth.store.incident(incident).status == "closed"
    assert fourth.store.kept_sessions("default", incident) == []

    fifth = play(tmp_path, cli, FINE, config=one_tier)
    assert (fifth.sessions[0].continuity, fifth.sessions[0].reason) == (ContinuityKind.FRESH, Reason.FIRST_TIER)


def test_a_kept_session_whose_transcript_is_gone_is_handed_off(tmp_path, cli):
    one_tier = TIER + CONFIG
    first = play(tmp_path, cli, bash("echo found-it"), report(True), config=one_tier)
    for transcript in (tmp_path / "home").rglob(f"{first.sessions[0].session_id}.jsonl"):
        transcript.unlink()

    second = play(tmp_path, cli, report(True), config=one_tier)
    [again] = second.sessions
    assert (again.continuity, again.reason) == (ContinuityKind.HANDOFF, Reason.TRANSCRIPT_MISSING)
    assert "found-it" in newest_user_text(second.calls[0].body)
