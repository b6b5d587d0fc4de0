"""What no model can talk its way past, in whole cycles on the real CLI, both versions."""

import asyncio
import datetime as dt
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import climber
import pytest
from climber import CONFIG, Climbed, bash, climb, newest_user_text, report, scripts

from supervisor.climb import launch as launching
from supervisor.guard.bounds import Bounds
from supervisor.guard.post import Post
from supervisor.model.cycle import CycleStatus, EventKind
from supervisor.model.guarding import ApprovalStatus
from supervisor.model.outcome import Failure
from supervisor.model.permission import Verdict
from supervisor.model.progress import Notice, TierActivity
from supervisor.model.runtime import Runtime
from supervisor.model.session import ContinuityKind, Reason, SessionStatus, Tokens
from supervisor.rehearsal.api import ScriptedApi
from supervisor.rehearsal.scenario import ToolCall, Turn, UsageLimit
from supervisor.store import open_store

TIER = '[[tiers]]\nname = "one"\nmodel = "haiku"\nprompt = "tier1.md"\n'
ASKS = TIER + 'approve = ["touch ..."]\n' + CONFIG
REPAIRS = TIER + 'rule_sets = ["read-only", "remedies"]\n' + CONFIG
TOUCHES = 'allow = ["touch ..."]\n'
OPEN = TIER + TOUCHES + CONFIG
FINE = report(False)


def play(tmp_path: Path, cli: Path, *turns: Turn, **more: Any) -> Climbed:
    return asyncio.run(climb(tmp_path, cli, scripts(turns), **more))


def made(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "work").iterdir())


def verdicts(climbed: Climbed) -> list[tuple[str, str]]:
    return [(c.verdict.value, c.rule) for s in climbed.sessions for c in climbed.store.calls(s.id)]


def told(climbed: Climbed) -> str:
    return "\n".join(newest_user_text(call.body) for call in climbed.calls)


def test_a_denied_call_does_not_run_and_the_model_reads_why(tmp_path, cli):
    done = play(tmp_path, cli, bash("touch made"), bash("ls"), FINE)

    assert made(tmp_path) == []
    [session] = done.sessions
    assert done.chain.cycle.status is CycleStatus.HEALTHY
    assert (session.tool_calls.denied, session.tool_calls.allowed, session.tools_executed) == (1, 1, 1)
    [denied, _] = done.store.calls(session.id)
    assert denied.sentence in told(done)
    assert "touch" in denied.sentence


def test_how_a_call_ended_is_on_record(tmp_path, cli):
    done = play(tmp_path, cli, bash("ls"), bash("ls /nonexistent"), FINE)

    assert [c.outcome for c in done.store.calls(done.sessions[0].id)] == ["succeeded", "failed"]


def test_a_command_that_passes_its_timeout_has_failed_and_is_left_nowhere(tmp_path, cli):
    endless = ToolCall(name="Bash", input={"command": "tail -f /dev/null", "timeout": 1000})
    done = play(tmp_path, cli, Turn(tools=(endless,)), FINE)

    assert [c.outcome for c in done.store.calls(done.sessions[0].id)] == ["failed"]
    assert "timed out" in told(done)


def test_a_project_that_disables_hooks_is_still_guarded(tmp_path, cli):
    settings = tmp_path / "work" / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"disableAllHooks": True, "permissions": {"allow": ["Bash"]}}))
    done = play(tmp_path, cli, bash("touch made"), FINE)

    assert made(tmp_path) == [".claude"]
    assert done.sessions[0].tool_calls.denied == 1


@pytest.fixture
def posts(monkeypatch: pytest.MonkeyPatch) -> list[Post]:
    """The posts of the runs, as they are opened."""
    opened: list[Post] = []
    real = launching.hook_settings

    def seen(post: Post, bounds: Bounds, *, python: str) -> str:
        opened.append(post)
        return real(post, bounds, python=python)

    monkeypatch.setattr(launching, "hook_settings", seen)
    return opened


@pytest.mark.parametrize("file", ["socket", "secret_file"])
def test_nothing_runs_when_what_the_hook_needs_is_taken_away_in_mid_run(tmp_path, cli, posts, file):
    def see(progress: object, settings: Any) -> None:
        if isinstance(progress, TierActivity) and "echo first" in progress.doing:
            getattr(posts[0], file).unlink(missing_ok=True)

    # Slow to ask again, so that it is gone between the two calls.
    second = bash("touch made", delay_seconds=0.5)
    done = play(tmp_path, cli, bash("echo first"), second, FINE, config=OPEN, see=see)

    assert made(tmp_path) == []
    assert "could not be asked" in told(done)
    assert str(posts[0].directory) not in told(done)
    assert len(verdicts(done)) <= 1
    assert done.chain.cycle.status is CycleStatus.HEALTHY


def test_nothing_runs_when_the_guards_client_hangs(tmp_path, cli, monkeypatch):
    client = tmp_path / "hangs.py"
    client.write_text("import time\ntime.sleep(600)\n")
    real = launching.hook_settings

    def impatient(post: Post, bounds: Bounds, *, python: str) -> str:
        said = real(post, bounds, python=python, client=client)
        return said.replace(f"KILL {bounds.watchdog_seconds}", "KILL 1")

    monkeypatch.setattr(launching, "hook_settings", impatient)
    done = play(tmp_path, cli, bash("touch made"), FINE, config=OPEN)

    assert made(tmp_path) == []
    assert "gave no answer" in told(done)


def answered(tmp_path: Path, done: Climbed, *, approved: bool, reason: str | None = None) -> None:
    [asked] = done.store.pending_approvals(dt.datetime.now(dt.UTC))
    done.store.decide_approval(asked.id, approved=approved, by="ada", reason=reason, now=dt.datetime.now(dt.UTC))


def test_an_approved_call_runs_exactly_once_and_the_tier_goes_on(tmp_path, cli):
    first = play(tmp_path, cli, bash("ls"), bash("touch made"), config=ASKS)

    [paused] = first.sessions
    assert (first.chain.cycle.status, first.chain.cycle.reason) == (CycleStatus.PAUSED, "approval")
    assert (paused.status, paused.failure) == (SessionStatus.PAUSED, Failure.APPROVAL)
    assert (paused.tool_calls.allowed, paused.tool_calls.deferred) == (1, 1)
    [asked] = first.store.pending_approvals(dt.datetime.now(dt.UTC))
    assert (asked.tool, asked.text, asked.tier, asked.session_id) == ("Bash", "touch made", 1, paused.id)
    assert made(tmp_path) == []
    answered(tmp_path, first, approved=True)

    second = play(tmp_path, cli, FINE, config=ASKS)

    assert second.chain.cycle.id == first.chain.cycle.id
    assert second.chain.cycle.status is CycleStatus.HEALTHY
    before, after = second.sessions
    assert before.status is SessionStatus.COMPLETED
    assert (after.continuity, after.reason) == (ContinuityKind.RESUME, Reason.APPROVED)
    assert after.parent_session_id == before.id
    assert made(tmp_path) == ["made"]
    assert verdicts(second)[-1] == ("allow", "approved")
    used = second.store.approval(asked.id)
    assert (used.status, used.used_by) == (ApprovalStatus.USED, after.id)


def test_a_refused_call_does_not_run_and_the_model_reads_the_reason(tmp_path, cli):
    first = play(tmp_path, cli, bash("touch made"), config=ASKS)
    answered(tmp_path, first, approved=False, reason="not on a Friday")

    second = play(tmp_path, cli, FINE, config=ASKS)

    assert second.chain.cycle.status is CycleStatus.HEALTHY
    assert second.sessions[-1].reason is Reason.DENIED
    assert made(tmp_path) == []
    assert "not on a Friday" in told(second)


def test_an_approved_call_runs_also_in_a_cycle_that_was_begun_without_resuming(tmp_path, new_cli):
    first = play(tmp_path, new_cli, bash("touch made"), config=ASKS, force_fresh=True)
    answered(tmp_path, first, approved=True)

    second = play(tmp_path, new_cli, FINE, config=ASKS)

    assert second.sessions[-1].reason is Reason.APPROVED
    assert made(tmp_path) == ["made"]


@pytest.mark.parametrize("approved", [True, False], ids=["approved", "refused"])
def test_an_answer_whose_conversation_is_gone_is_told_to_the_next_one_and_to_people(tmp_path, new_cli, approved):
    first = play(tmp_path, new_cli, bash("ls"), bash("touch made"), config=ASKS)
    answered(tmp_path, first, approved=approved, reason="not on a Friday")
    for transcript in tmp_path.rglob(f"{first.sessions[0].session_id}.jsonl"):
        transcript.unlink()

    second = play(tmp_path, new_cli, FINE, config=ASKS)

    assert (second.sessions[-1].continuity, second.sessions[-1].reason) == (
        ContinuityKind.HANDOFF,
        Reason.TRANSCRIPT_MISSING,
    )
    assert made(tmp_path) == []
    said = told(second)
    assert "stopped at a call that a person has to decide on, Bash: touch made" in said
    assert "(it waited for a person's approval and has not run)" in said
    assert "outcome is unknown" not in said
    assert ("It was approved, but has not run" if approved else "The reason given: not on a Friday") in said
    notices = [e.text for e in second.events(EventKind.NOTICE) if "approval 1 has not run" in e.text]
    assert len(notices) == approved


def test_a_call_that_nobody_answers_is_refused(tmp_path, cli):
    config = ASKS + "[guard]\napproval_minutes = 0.001\n"
    first = play(tmp_path, cli, bash("touch made"), config=config)
    [asked] = [first.store.approval(1)]
    while dt.datetime.now(dt.UTC) <= asked.expires_at:
        time.sleep(0.01)

    second = play(tmp_path, cli, FINE, config=config)

    assert second.store.approval(1).status is ApprovalStatus.EXPIRED
    assert second.chain.cycle.status is CycleStatus.HEALTHY
    assert made(tmp_path) == []
    assert "Nobody answered in time" in told(second)


def without_defer(found: Runtime) -> Runtime:
    return replace(found, abilities=replace(found.abilities, defer=False))


@pytest.mark.parametrize("approved", [True, False], ids=["approved", "refused"])
def test_where_a_call_cannot_be_put_off_the_hook_waits_for_the_answer(tmp_path, new_cli, approved):
    def see(progress: object, settings: Any) -> None:
        if isinstance(progress, Notice) and "asks for approval" in progress.text:
            with open_store(settings.database_url()) as store:
                store.decide_approval(1, approved=approved, by="ada", reason="no", now=dt.datetime.now(dt.UTC))

    done = play(tmp_path, new_cli, bash("touch made"), FINE, config=ASKS, runtime=without_defer, see=see)

    assert done.chain.cycle.status is CycleStatus.HEALTHY
    assert len(done.sessions) == 1
    assert made(tmp_path) == (["made"] if approved else [])
    assert done.store.approval(1).status is (ApprovalStatus.USED if approved else ApprovalStatus.DENIED)


def test_where_a_call_cannot_be_put_off_no_answer_in_time_is_a_refusal(tmp_path, new_cli):
    config = ASKS + "[guard]\napproval_minutes = 0.01\n"
    done = play(tmp_path, new_cli, bash("touch made"), FINE, config=config, runtime=without_defer)

    assert made(tmp_path) == []
    assert done.store.approval(1).status is ApprovalStatus.EXPIRED
    assert done.chain.cycle.status is CycleStatus.HEALTHY
    assert [verdict for verdict, _ in verdicts(done)] == ["defer", "deny"]


def test_a_schedule_whose_cycle_waits_for_a_person_begins_no_other(tmp_path, cli):
    first = play(tmp_path, cli, bash("touch made"), config=ASKS)
    second = play(tmp_path, cli, FINE, config=ASKS)

    assert (second.chain.cycle.status, second.chain.cycle.reason) == (CycleStatus.SKIPPED, "paused")
    assert f"Cycle {first.chain.cycle.id}" in (second.chain.cycle.detail or "")
    assert second.sessions == ()


def test_of_two_parallel_calls_that_need_a_person_neither_runs_before_the_answer(tmp_path, cli):
    both = Turn(
        text="both",
        tools=tuple(ToolCall(name="Bash", input={"command": f"touch {name}"}) for name in ("one", "two")),
    )
    first = play(tmp_path, cli, both, config=ASKS)
    assert first.chain.cycle.status is CycleStatus.PAUSED
    assert made(tmp_path) == []
    waiting = first.store.pending_approvals(dt.datetime.now(dt.UTC))
    for asked in waiting:
        first.store.decide_approval(asked.id, approved=True, by="ada", reason=None, now=dt.datetime.now(dt.UTC))

    rounds = 0
    done = first
    while done.chain.cycle.status is CycleStatus.PAUSED:
        rounds += 1
        assert rounds < 4
        for asked in done.store.pending_approvals(dt.datetime.now(dt.UTC)):
            done.store.decide_approval(asked.id, approved=True, by="ada", reason=None, now=dt.datetime.now(dt.UTC))
        done = play(tmp_path, cli, FINE, config=ASKS)

    assert done.chain.cycle.status is CycleStatus.HEALTHY
    ran = [c.text for s in done.sessions for c in done.store.calls(s.id) if c.verdict is Verdict.ALLOW]
    assert len(ran) == len(set(ran))
    assert made(tmp_path) == sorted(text.split()[1] for text in ran)


SPELLINGS = (
    "systemctl restart web",
    "sudo /usr/bin/systemctl --no-block restart web.service",
    "sh -c 'docker restart -t 5 web'",
    "ssh web1 systemctl restart web",
    "docker compose -f shop.yml restart web",
    "/usr/bin/docker --debug restart web",
    "kubectl -n shop rollout restart deployment/web",
)


def test_the_third_restart_within_four_hours_is_denied_however_it_is_spelled(tmp_path, cli):
    done = play(tmp_path, cli, *(bash(text) for text in SPELLINGS), FINE, config=REPAIRS)

    assert verdicts(done)[2:] == [("deny", "cooldown")] * (len(SPELLINGS) - 2)
    assert [verdict for verdict, _ in verdicts(done)[:2]] == ["allow", "allow"]
    refused = done.store.calls(done.sessions[0].id)[-1]
    assert refused.rule == "cooldown"
    assert "web is in cooldown: at most 2 restarts per service in any 4 hours" in refused.sentence
    assert refused.sentence in told(done)
    assert any("kept from acting" in e.text for e in done.events(EventKind.NOTICE))
    shown = json.loads((done.state / "cooldown.json").read_text())
    [use] = shown["cooldowns"]
    assert (use["service"], use["kind"], use["used"], use["max"]) == ("web", "restart", 2, 2)


def test_of_concurrent_restarts_only_as_many_go_through_as_there_are_slots(tmp_path, cli):
    at_once = Turn(
        text="all at once",
        tools=tuple(ToolCall(name="Bash", input={"command": f"ssh host{n} systemctl restart web"}) for n in range(4)),
    )
    done = play(tmp_path, cli, at_once, FINE, config=REPAIRS)

    assert sorted(verdict for verdict, _ in verdicts(done)) == ["allow", "allow", "deny", "deny"]


def test_a_pause_holds_from_the_very_next_tool_call_and_from_the_next_run(tmp_path, cli):
    paused: list[bool] = []

    def see(progress: object, settings: Any) -> None:
        if isinstance(progress, TierActivity) and "echo first" in progress.doing and not paused:
            with open_store(settings.database_url()) as store:
                store.pause(by="ada", reason="maintenance", now=dt.datetime.now(dt.UTC))
            paused.append(True)

    # Slow to ask again, so that the pause comes between the two calls.
    second = bash("touch made", delay_seconds=1.0)
    done = asyncio.run(
        climb(tmp_path, cli, scripts((bash("echo first"), second, report(True)), (FINE,)), config=_two_tiers(), see=see)
    )

    assert made(tmp_path) == []
    assert [rule for _, rule in verdicts(done)][-1] == "switch"
    assert "maintenance" in told(done)
    assert (done.chain.cycle.status, done.chain.cycle.reason) == (CycleStatus.PAUSED, "switch")
    assert len(done.sessions) == 1

    off = play(tmp_path, cli, FINE, config=_two_tiers())
    assert (off.chain.cycle.status, off.chain.cycle.reason) == (CycleStatus.SKIPPED, "switch")

    done.store.unpause(by="ada", now=dt.datetime.now(dt.UTC))
    on = asyncio.run(climb(tmp_path, cli, scripts((FINE,), (FINE,)), config=_two_tiers()))
    assert on.chain.cycle.id == done.chain.cycle.id
    assert on.chain.cycle.status is CycleStatus.RESOLVED
    assert [s.tier for s in on.sessions] == [1, 2]


def _two_tiers() -> str:
    second = '[[tiers]]\nname = "two"\nmodel = "sonnet"\nprompt = "tier2.md"\n' + TOUCHES
    return TIER + TOUCHES + second + CONFIG


def test_a_used_up_budget_stops_a_run_in_its_middle_and_approval_goes_on(tmp_path, cli):
    config = TIER.replace("haiku", "claude-haiku-4-5") + TOUCHES + CONFIG + "[budget]\nper_cycle_usd = 0.5\n"
    dear = Tokens(input=400_000, output=10)
    first = play(tmp_path, cli, bash("echo dear", usage=dear), bash("touch made", usage=dear), FINE, config=config)

    [session] = first.sessions
    assert (first.chain.cycle.status, first.chain.cycle.reason) == (CycleStatus.PAUSED, "budget")
    assert (session.status, session.failure) == (SessionStatus.PAUSED, Failure.BUDGET)
    assert session.session_id is not None
    assert session.cost_usd is not None
    assert session.cost_usd >= 0.5

    waits = play(tmp_path, cli, FINE, config=config)
    assert (waits.chain.cycle.status, waits.chain.cycle.reason) == (CycleStatus.SKIPPED, "paused")
    assert "--approve-budget" in (waits.chain.cycle.detail or "")

    second = play(tmp_path, cli, FINE, config=config, approve_budget=True)
    assert second.chain.cycle.id == first.chain.cycle.id
    assert second.chain.cycle.status is CycleStatus.HEALTHY
    assert second.sessions[-1].reason in (Reason.BUDGET_APPROVED, Reason.CONTEXT_THRESHOLD)


LIMITED = Turn(usage_limit=UsageLimit(resets_in_seconds=600))
TOKEN = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-scripted"}


def _after_the_reset() -> dt.datetime:
    return dt.datetime.now(dt.UTC) + dt.timedelta(seconds=660)


def test_a_usage_limit_pauses_until_its_reset_and_then_goes_on(tmp_path, cli):
    first = play(tmp_path, cli, bash("echo first"), LIMITED, environ=TOKEN)

    [session] = first.sessions
    assert (first.chain.cycle.status, first.chain.cycle.reason) == (CycleStatus.PAUSED, "usage_limit")
    assert session.status is SessionStatus.PAUSED

    early = play(tmp_path, cli, FINE, environ=TOKEN)
    assert early.chain.cycle.status is CycleStatus.SKIPPED

    second = play(tmp_path, cli, FINE, environ=TOKEN, ladder_changes={"clock": _after_the_reset})
    assert second.chain.cycle.id == first.chain.cycle.id
    assert second.chain.cycle.status is CycleStatus.HEALTHY
    assert second.sessions[-1].reason is Reason.USAGE_LIMIT_RESET


class OnCredits(ScriptedApi):
    """An account whose window is used up and that pays for what goes beyond it."""

    def _speak(self, *asked):
        window = "anthropic-ratelimit-unified"
        headers = {"status": "rejected", "reset": "1900000000", "overage-status": "allowed"}
        return replace(super()._speak(*asked), headers={f"{window}-{name}": said for name, said in headers.items()})


def test_a_run_goes_on_with_credits_when_its_window_is_used_up(tmp_path, cli, monkeypatch):
    monkeypatch.setattr(climber, "ScriptedApi", OnCredits)

    done = play(tmp_path, cli, bash("echo first"), bash("echo second"), FINE, environ=TOKEN)

    assert [session.status for session in done.sessions] == [SessionStatus.COMPLETED]
    assert done.chain.cycle.status is CycleStatus.HEALTHY


@pytest.mark.parametrize("start_tier", [1, 3])
def test_a_dry_run_changes_nothing_on_any_tier_and_says_what_would_have_run(tmp_path, new_cli, start_tier):
    scenario = scripts(*((bash("echo look"), bash("systemctl restart web"), FINE) for _ in range(3)))
    done = asyncio.run(climb(tmp_path, new_cli, scenario, dry_run=True, start_tier=start_tier))

    assert [verdict for verdict, _ in verdicts(done)] == ["allow", "deny"]
    last = done.store.calls(done.sessions[0].id)[-1]
    # Tier 1 would not have run it anyway.
    assert last.rule == ("default" if start_tier == 1 else "dry_run")
    assert "systemctl restart web" in last.sentence
    assert done.store.cooldowns(done.settings.cooldown_limits()) == []


def test_a_damaged_cooldown_file_is_rebuilt_and_reported(tmp_path, new_cli):
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "cooldown.json").write_text('{"schema": "half')
    done = play(tmp_path, new_cli, FINE)

    assert json.loads((done.state / "cooldown.json").read_text()) == {
        "schema": "opsladder.cooldowns/1",
        "cooldowns": [],
    }
    assert any("damaged" in e.text for e in done.events(EventKind.NOTICE))


def test_two_healthy_cycles_in_a_row_end_a_cooldown(tmp_path, new_cli):
    play(tmp_path, new_cli, bash("systemctl restart web"), FINE, config=REPAIRS)
    limits = play(tmp_path, new_cli, FINE, config=REPAIRS)
    assert [use.used for use in limits.store.cooldowns(limits.settings.cooldown_limits())] == [1]

    last = play(tmp_path, new_cli, FINE, config=REPAIRS)
    assert last.store.cooldowns(last.settings.cooldown_limits()) == []


def test_a_cycle_that_had_to_repair_is_no_healthy_one_and_leaves_the_cooldown(tmp_path, new_cli):
    def cycle(*repair: Turn) -> Climbed:
        tiers = ((report(True),), (*repair, FINE))
        return asyncio.run(climb(tmp_path, new_cli, scripts(*tiers)))

    for _ in range(2):
        assert [verdict for verdict, _ in verdicts(cycle(bash("systemctl restart web")))] == ["allow"]
    for _ in range(3):
        again = cycle(bash("systemctl restart web"))
        assert verdicts(again) == [("deny", "cooldown")]
        assert again.chain.cycle.status is CycleStatus.RESOLVED
    assert [use.used for use in again.store.cooldowns(again.settings.cooldown_limits())] == [2]
