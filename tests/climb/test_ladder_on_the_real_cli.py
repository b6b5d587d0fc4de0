"""The ladder on the real CLI, in two versions, against the scripted API."""

import asyncio
import dataclasses
from pathlib import Path

import pytest
from climber import CLIMB, CONFIG, ENVIRONMENT, bash, climb, newest_user_text, report, scripts, texts

from supervisor.model.cycle import CycleStatus, EventKind
from supervisor.model.progress import TierEnded, TierStarted
from supervisor.model.report import Level
from supervisor.model.session import ContinuityKind, CostBasis, Reason, SessionStatus, Tokens
from supervisor.rehearsal.scenario import Fault, Scenario, Script, Turn

pytestmark = pytest.mark.real_cli

FINDINGS = ("finding-from-tier-one", "tried-by-tier-two")
ONE_MODEL = CONFIG + "".join(
    f"""
[[tiers]]
name = "t{n}"
model = "haiku"
prompt = "tier{n}.md"
"""
    for n in (1, 2, 3)
)


def run(tmp_path, cli, *args, **kwargs):
    return asyncio.run(climb(tmp_path, cli, *args, **kwargs))


def test_three_tiers_climb_in_one_conversation(tmp_path, cli):
    done = run(tmp_path, cli)

    assert (done.chain.cycle.status, done.chain.cycle.reason) == (CycleStatus.RESOLVED, None)
    assert [(s.tier, s.model, s.status) for s in done.sessions] == [
        (1, "haiku", SessionStatus.COMPLETED),
        (2, "sonnet", SessionStatus.COMPLETED),
        (3, "opus", SessionStatus.COMPLETED),
    ]
    assert [(s.continuity, s.reason) for s in done.sessions] == [
        (ContinuityKind.FRESH, Reason.FIRST_TIER),
        (ContinuityKind.RESUME, Reason.NEXT_TIER),
        (ContinuityKind.RESUME, Reason.NEXT_TIER),
    ]
    one, two, three = done.sessions
    assert (one.parent_session_id, two.parent_session_id, three.parent_session_id) == (None, one.id, two.id)
    assert (two.resumed_from, three.resumed_from) == (one.session_id, two.session_id)
    assert len({s.session_id for s in done.sessions}) == 3
    third = texts(done.calls_of(3)[0].body)
    for finding in FINDINGS:
        assert finding in third
    assert not list(done.state.glob("handoffs/*"))
    assert not list(done.state.glob("streams/*"))


def test_each_tier_gets_its_own_model_and_tools(tmp_path, cli):
    done = run(tmp_path, cli)

    offered = [{t["name"] for t in done.calls_of(n)[0].body["tools"]} for n in (1, 2, 3)]
    assert [{"Bash", "Read"} <= tools for tools in offered] == [True] * 3
    assert [{"Edit", "Write"} <= tools for tools in offered] == [False, False, True]
    assert not any({"AskUserQuestion", "Task", "Agent", "WebFetch"} & tools for tools in offered)
    assert ["haiku" in done.calls_of(1)[0].model, "sonnet" in done.calls_of(2)[0].model] == [True, True]
    assert "opus" in done.calls_of(3)[0].model


@pytest.mark.parametrize("config", [CONFIG, ONE_MODEL], ids=["three_models", "one_model"])
def test_the_cost_and_tokens_of_each_tier_equal_the_scripted_api_s_own_account(tmp_path, cli, config):
    scenario = scripts(
        (bash("echo a", usage=Tokens(input=1000, output=50)), report(True, usage=Tokens(input=1200, output=70))),
        (
            bash("echo b", usage=Tokens(input=200, output=30, cache_write=2500)),
            report(True, usage=Tokens(input=150, output=90, cache_read=2500, cache_write=400)),
        ),
        (report(False, usage=Tokens(input=5000, output=200)),),
    )

    done = run(tmp_path, cli, scenario, config=config)

    assert len(done.sessions) == 3
    for session in done.sessions:
        account = done.account(session.session_id)
        owed = [done.settings.models.cost(model, tokens) for model, tokens in account.items()]
        assert session.tokens == sum(account.values(), start=Tokens())
        assert session.cost_usd == pytest.approx(sum(owed), abs=1e-9)
        assert session.cost_basis is CostBasis.REPORTED
    assert done.chain.cost_is_exact
    assert [s.context_tokens for s in done.sessions] == [1270, 150 + 90 + 2500 + 400, 5200]
    assert [s.first_call_tokens for s in done.sessions] == [1000, 2700, 5000]


def test_the_environment_reaches_the_model_on_every_tier(tmp_path, cli):
    done = run(tmp_path, cli)

    for call in done.calls:
        if not call.side:
            assert ENVIRONMENT in texts(call.body)
    assert [ENVIRONMENT in done.prompt(s) for s in done.sessions] == [True, False, False]


def test_the_system_prompt_is_ours_and_the_same_on_every_tier(tmp_path, cli):
    done = run(tmp_path, cli)

    systems = [str(c.body["system"]) for c in done.calls if not c.side]
    assert all("operations engineer on call" in text for text in systems)
    assert len({text.split("operations engineer")[1] for text in systems}) == 1


def test_appended_our_system_prompt_stands_beside_the_cli_s_own(tmp_path, cli):
    done = run(tmp_path, cli, scripts((report(False),)), config=CONFIG + '[claude]\nsystem_prompt = "append"\n')

    [call] = done.calls_of(1)
    assert "operations engineer on call" in str(call.body["system"])
    assert len(str(call.body["system"])) > 2 * len((Path("prompts/system.md")).read_text())


def test_the_escalation_prompt_is_what_the_model_reads_last_short_and_without_findings(tmp_path, cli):
    done = run(tmp_path, cli)

    for tier in (2, 3):
        said = newest_user_text(done.calls_of(tier)[0].body)
        assert f"You are now tier {tier}" in said
        assert "this turn only" in said
        prompt = done.prompt(done.sessions[tier - 1])
        assert prompt.strip() in said
        assert len(prompt) / 3.6 < 500
        assert not any(finding in prompt for finding in FINDINGS)


WINDOW = 200_000
SIZES = {
    "15k_of_200k": (15_000, {}, ContinuityKind.RESUME, Reason.NEXT_TIER),
    "170k_of_200k": (170_000, {}, ContinuityKind.HANDOFF, Reason.CONTEXT_THRESHOLD),
    "150k_at_0.80": (150_000, {}, ContinuityKind.RESUME, Reason.NEXT_TIER),
    "150k_at_0.70": (
        150_000,
        {"OPSLADDER_CONTINUITY__CONTEXT_THRESHOLD": "0.70"},
        ContinuityKind.HANDOFF,
        Reason.CONTEXT_THRESHOLD,
    ),
    "150k_at_0.70_by_its_alias": (
        150_000,
        {"CLAUDEOPS_RESUME_CONTEXT_THRESHOLD": "0.70"},
        ContinuityKind.HANDOFF,
        Reason.CONTEXT_THRESHOLD,
    ),
}


@pytest.mark.parametrize(("size", "environ", "kind", "reason"), SIZES.values(), ids=SIZES.keys())
def test_a_conversation_too_large_for_the_next_window_is_handed_off(tmp_path, cli, size, environ, kind, reason):
    scenario = scripts(
        (bash("echo finding-from-tier-one"), report(True, usage=Tokens(input=size - 100, output=100))), (report(False),)
    )

    done = run(tmp_path, cli, scenario, environ=environ)

    one, two = done.sessions
    assert one.context_tokens == size
    assert (two.continuity, two.reason) == (kind, reason)
    assert two.parent_session_id == one.id
    said = newest_user_text(done.calls_of(2)[0].body)
    whole = texts(done.calls_of(2)[0].body)
    assert "finding-from-tier-one" in whole
    assert ENVIRONMENT in whole
    assert ("<handoff>" in said) == (kind is ContinuityKind.HANDOFF)
    [decision] = [e for e in done.events(EventKind.DECISION) if e.data.get("tier") == 2]
    assert decision.data["context_ratio"] == size / WINDOW
    assert decision.data["threshold"] == (0.7 if environ else 0.8)
    assert not list(done.state.glob("handoffs/*"))


def test_the_window_the_cli_reports_overrides_the_table(tmp_path, cli):
    """Both tiers use one model, so the second one's window is known: a million on the newest CLI."""
    scenario = scripts((report(True, usage=Tokens(input=170_000, output=1)),), (report(False),))

    done = run(tmp_path, cli, scenario, config=ONE_MODEL)

    window = done.sessions[0].context_window
    expected = ContinuityKind.HANDOFF if window == WINDOW else ContinuityKind.RESUME
    assert done.sessions[1].continuity is expected
    assert window in (WINDOW, 1_000_000)


def test_a_transcript_deleted_between_tiers_leads_to_a_handoff(tmp_path, cli):
    def delete(progress, settings):
        if isinstance(progress, TierEnded):
            for file in Path(settings.agent_env["HOME"]).glob(".claude/projects/*/*.jsonl"):
                file.unlink()

    done = run(tmp_path, cli, CLIMB, see=delete, max_tier=2)

    assert [(s.continuity, s.reason) for s in done.sessions][1] == (ContinuityKind.HANDOFF, Reason.TRANSCRIPT_MISSING)
    assert "finding-from-tier-one" in texts(done.calls_of(2)[0].body)


def unreadable_by_the_cli(progress, settings):
    """Take the transcript away after it was looked for and before the CLI looks: only the CLI can find out."""
    if isinstance(progress, TierStarted) and progress.session.continuity is ContinuityKind.RESUME:
        for file in Path(settings.agent_env["HOME"]).glob(".claude/projects/*/*.jsonl"):
            file.unlink()


def test_a_rejected_resume_is_retried_once_with_a_handoff(tmp_path, cli):
    done = run(tmp_path, cli, CLIMB, see=unreadable_by_the_cli, max_tier=2)

    assert [(s.tier, s.status, s.continuity, s.reason) for s in done.sessions] == [
        (1, SessionStatus.COMPLETED, ContinuityKind.FRESH, Reason.FIRST_TIER),
        (2, SessionStatus.REJECTED, ContinuityKind.RESUME, Reason.NEXT_TIER),
        (2, SessionStatus.COMPLETED, ContinuityKind.HANDOFF, Reason.RESUME_REJECTED),
    ]
    one, rejected, again = done.sessions
    assert (rejected.parent_session_id, again.parent_session_id) == (one.id, one.id)
    assert rejected.tools_executed == 0
    said = newest_user_text(done.calls_of(2)[0].body)
    assert "the CLI refused to resume it" in said
    assert "finding-from-tier-one" in said


def test_a_resumed_run_that_fails_after_a_tool_ran_is_not_repeated(tmp_path, cli):
    # A request the API calls invalid, after the first tool of tier 2 has run.
    broken = Turn(text="x", error=Fault(status=400, type="invalid_request_error", message="odd", times=0))
    scenario = scripts((report(True),), (bash("touch ran.txt"), broken))
    tiers = (("haiku", "tier1.md"), ("sonnet", "tier2.md"))
    touches = 'allow = ["touch ..."]\n'
    ladder = "".join(f'[[tiers]]\nname = "{m}"\nmodel = "{m}"\nprompt = "{p}"\n{touches}' for m, p in tiers)

    done = run(tmp_path, cli, scenario, config=ladder + CONFIG)

    assert [s.tier for s in done.sessions] == [1, 2]
    assert done.sessions[1].status is SessionStatus.FAILED
    assert done.chain.cycle.status is CycleStatus.FAILED
    assert (tmp_path / "work" / "ran.txt").exists()


def test_a_dry_run_stops_below_the_next_tier_and_says_which_it_would_have_been(tmp_path, cli):
    done = run(tmp_path, cli, CLIMB, dry_run=True)

    assert [s.tier for s in done.sessions] == [1]
    assert (done.chain.cycle.status, done.chain.cycle.reason) == (CycleStatus.BLOCKED, "dry_run")
    assert "DRY RUN" in done.prompt(done.sessions[0])
    [event] = [e for e in done.events(EventKind.DECISION) if e.data.get("would_run_tier")]
    assert (event.data["would_run_tier"], event.data["services"]) == (2, ["web"])


def test_above_max_tier_a_person_is_told_and_nothing_runs(tmp_path, cli):
    done = run(tmp_path, cli, CLIMB, max_tier=2)

    assert [s.tier for s in done.sessions] == [1, 2]
    assert (done.chain.cycle.status, done.chain.cycle.reason) == (CycleStatus.BLOCKED, "max_tier")
    # The second one is of the incident that this is the first cycle of.
    assert [e.level for e in done.events(EventKind.NOTICE)] == [Level.CRITICAL, Level.WARNING]


def test_when_the_last_tier_is_still_unhappy_a_person_is_told_and_nothing_loops(tmp_path, cli):
    done = run(tmp_path, cli, scripts(*[(report(True),)] * 3))

    assert [s.tier for s in done.sessions] == [1, 2, 3]
    assert (done.chain.cycle.status, done.chain.cycle.reason) == (CycleStatus.UNRESOLVED, "top_tier")
    notice, opened = done.events(EventKind.NOTICE)
    assert "web" in notice.text
    assert opened.text == "Incident 1 opened: web."


def test_forced_fresh_every_tier_gets_its_context_in_writing(tmp_path, cli):
    done = run(tmp_path, cli, CLIMB, force_fresh=True)

    assert [(s.continuity, s.reason) for s in done.sessions[1:]] == [
        (ContinuityKind.HANDOFF, Reason.FORCED_FRESH),
        (ContinuityKind.HANDOFF, Reason.FORCED_FRESH),
    ]
    third = newest_user_text(done.calls_of(3)[0].body)
    for finding in FINDINGS:
        assert finding in third


def test_a_cli_that_cannot_resume_still_climbs_by_handoff(tmp_path, new_cli):
    def lacking(found):
        return dataclasses.replace(found, abilities=dataclasses.replace(found.abilities, resume=False))

    done = run(tmp_path, new_cli, CLIMB, runtime=lacking, max_tier=2)

    assert done.sessions[1].reason is Reason.RESUME_UNSUPPORTED
    assert "finding-from-tier-one" in texts(done.calls_of(2)[0].body)


def test_a_binary_that_mints_its_own_ids_is_resumed_by_the_captured_one(tmp_path, new_cli):
    def minting(found):
        lacks = dataclasses.replace(found.abilities, session_id=False, fork_session=False)
        return dataclasses.replace(found, abilities=lacks)

    # The API cannot be told an id beforehand: sessions play the tiers in the order they appear.
    scenario = Scenario(title="t", scripts=(Script(tier=1, turns=(bash("echo finding-from-tier-one"), report(True))),))
    done = asyncio.run(climb(tmp_path, new_cli, scenario, runtime=minting, max_tier=1, fallback=(1,)))

    [one] = done.sessions
    assert one.session_id is not None
    assert one.session_id in {c.session_id for c in done.calls}


def test_max_turns_ends_a_scenario_that_never_stops_calling_tools(tmp_path, cli):
    endless = scripts((bash("echo again", repeat=True),))
    config = CONFIG + '[[tiers]]\nname = "observe"\nmodel = "haiku"\nprompt = "tier1.md"\nmax_turns = 3\n'

    done = run(tmp_path, cli, endless, config=config + "[continuity]\nmax_resumes = 1\n")

    assert [(s.status, s.failure, s.resumes) for s in done.sessions] == [
        (SessionStatus.INTERRUPTED, "turn_limit", 0),
        (SessionStatus.INTERRUPTED, "turn_limit", 1),
    ]
    assert (done.chain.cycle.status, done.chain.cycle.reason) == (CycleStatus.FAILED, "turn_limit")


@pytest.mark.parametrize(
    "turns",
    [
        pytest.param(({"text": "All is well, nothing to see."},), id="no_report"),
        pytest.param(({"report": {"summary": "x"}}, {"report": {"summary": "x"}}) * 4, id="violates_the_schema"),
    ],
)
def test_without_a_valid_report_nothing_passes_for_healthy(tmp_path, cli, turns):
    config = CONFIG + '[[tiers]]\nname = "observe"\nmodel = "haiku"\nprompt = "tier1.md"\nmax_turns = 12\n'
    done = run(tmp_path, cli, scripts(tuple(Turn(**t) for t in turns)), config=config)

    assert (done.chain.cycle.status, done.chain.cycle.reason) == (CycleStatus.UNRESOLVED, "no_report")
    assert done.sessions[0].report is None


def test_a_bad_key_fails_soon_with_its_own_message(tmp_path, cli):
    refused = Turn(text="x", error=Fault(status=401, type="authentication_error", message="invalid x-api-key", times=0))

    done = run(tmp_path, cli, scripts((refused,)))

    assert done.sessions[0].failure == "bad_credentials"
    assert "ANTHROPIC_API_KEY" in (done.sessions[0].detail or "")
    assert len(done.calls) <= 4


def test_overload_is_waited_out(tmp_path, cli):
    busy = dataclasses.replace(
        report(False), error=Fault(status=529, type="overloaded_error", message="Overloaded", times=1)
    )

    done = run(tmp_path, cli, scripts((busy,)))

    assert done.chain.cycle.status is CycleStatus.HEALTHY
    assert len(done.events(EventKind.API_RETRY)) >= 1
