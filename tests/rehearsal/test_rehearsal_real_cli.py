"""The real Claude CLI, both versions, with the scripted API as its model."""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from realcli import NEW_VERSION, OLD_VERSION, CliRun, run_cli

from supervisor.model.session import Tokens
from supervisor.rehearsal.api import ScriptedApi
from supervisor.rehearsal.demo_site import build_demo_site
from supervisor.rehearsal.scenario import Scenario
from supervisor.rehearsal.scenario_file import builtin_scenarios, load_scenario, parse_scenario

REPORT_SCHEMA = {
    "type": "object",
    "properties": {
        "summary": {"type": "string"},
        "escalation": {"type": "object", "properties": {"needed": {"type": "boolean"}}, "required": ["needed"]},
    },
    "required": ["summary", "escalation"],
}
REPORT = {"summary": "All is well.", "escalation": {"needed": False}}
REPORT_TURN = '[[tier.turn]]\n[tier.turn.report]\nsummary = "All is well."\nescalation = { needed = false }\n'
# Dollars for a million tokens: input, output, cache read, cache write for five minutes.
HAIKU_PRICES = {NEW_VERSION: (0.1, 0.5, 0.01, 0.125), OLD_VERSION: (1.0, 5.0, 0.1, 1.25)}

Environment = Callable[[str], dict[str, str]]


class Stage:
    """One CLI, one scripted API, and a directory to work in."""

    def __init__(self, binary: Path, api: ScriptedApi, env: dict[str, str], work_dir: Path) -> None:
        self.api = api
        self._binary = binary
        self._env = env
        self._work_dir = work_dir

    async def run(
        self, *extra: str, tier: int = 1, resume: str | None = None, env: Mapping[str, str] | None = None
    ) -> tuple[str, CliRun]:
        """Run a tier in a new session; with ``resume`` as a fork of that one."""
        session_id = str(uuid4())
        self.api.expect(session_id, tier)
        flags = ["--session-id", session_id, "--model", "haiku", "--tools", "Bash", "--allowedTools", "Bash"]
        if resume:
            flags += ["--resume", resume, "--fork-session"]
        run = await run_cli(
            self._binary,
            [*flags, "--system-prompt", "You watch over a web server.", *extra],
            prompt="Look after the web server.",
            env={**self._env, **(env or {})},
            cwd=self._work_dir,
        )
        return session_id, run


@pytest.fixture
def on_stage(cli: Path, agent_env: Environment, tmp_path: Path) -> Callable[..., Any]:
    """``on_stage(scenario, play)``: run ``play(stage)`` with the server up, and return what it returns."""
    work_dir = tmp_path / "work"
    work_dir.mkdir()

    def perform(scenario: Scenario | str, play: Callable[[Stage], Any], **options: Any) -> Any:
        if isinstance(scenario, str):
            scenario = parse_scenario(f'title = "Test"\n{scenario}', name="test.toml")

        async def run() -> Any:
            async with ScriptedApi(scenario, **options) as api:
                return await play(Stage(cli, api, agent_env(api.base_url), work_dir))

        return asyncio.run(run())

    return perform


def _reported(run: CliRun, model: str) -> Tokens:
    usage = run.result["modelUsage"][model]
    return Tokens(
        input=usage["inputTokens"],
        output=usage["outputTokens"],
        cache_read=usage["cacheReadInputTokens"],
        cache_write=usage["cacheCreationInputTokens"],
    )


def test_parallel_tool_calls_run_and_their_results_come_back(on_stage: Callable[..., Any]) -> None:
    scenario = """
    [[tier]]
    tier = 1
    [[tier.turn]]
    text = "I look."
    tools = [
      { name = "Bash", input = { command = "echo first > made; echo one" } },
      { name = "Bash", input = { command = "echo two; exit 3" } },
    ]
    [[tier.turn]]
    text = "That is all."
    """

    async def play(stage: Stage) -> tuple[CliRun, tuple[Any, ...]]:
        _, run = await stage.run()
        return run, stage.api.calls

    run, calls = on_stage(scenario, play, keep_bodies=True)

    assert (run.exit_code, run.result["result"]) == (0, "That is all.")
    one, two = run.tool_results
    assert one["content"] == "one"
    assert (two["is_error"], "two" in two["content"]) == (True, True)
    assert [(call.tier, call.attempt, call.status) for call in calls if not call.side] == [(1, 1, 200)] * 2
    assert "tool_result" in json.dumps(calls[-1].body["messages"])


@pytest.mark.parametrize("schema", [True, False], ids=["structured output", "fenced block"])
def test_a_report_reaches_the_result(on_stage: Callable[..., Any], schema: bool) -> None:
    flags = ["--json-schema", json.dumps(REPORT_SCHEMA)] if schema else []
    _, run = on_stage(f"[[tier]]\ntier = 1\n{REPORT_TURN}", lambda stage: stage.run(*flags))

    assert run.exit_code == 0
    if schema:
        assert run.result["structured_output"] == REPORT
    else:
        assert json.loads(run.result["result"].removeprefix("```json").removesuffix("```")) == REPORT


def test_the_account_is_what_the_cli_reports_to_the_token_and_to_the_cent(
    on_stage: Callable[..., Any], cli_version: str
) -> None:
    scenario = f"""
    [[tier]]
    tier = 1
    [[tier.turn]]
    tools = [{{ name = "Bash", input = {{ command = "true" }} }}, {{ name = "Bash", input = {{ command = "true" }} }}]
    usage = {{ input = 1200, output = 80, cache_read = 0, cache_write = 9000 }}
    [[tier.turn]]
    text = "Nearly."
    tools = [{{ name = "Bash", input = {{ command = "true" }} }}]
    usage = {{ input = 310, output = 45, cache_read = 9000, cache_write = 700 }}
    {REPORT_TURN}
    """

    async def play(stage: Stage) -> tuple[CliRun, Mapping[str, Tokens], Tokens]:
        session_id, run = await stage.run("--json-schema", json.dumps(REPORT_SCHEMA))
        main = sum((call.tokens for call in stage.api.calls if not call.side), Tokens())
        return run, stage.api.account(session_id), main

    run, account, main = on_stage(scenario, play)

    assert account
    assert {model: _reported(run, model) for model in run.result["modelUsage"]} == account
    usage = run.result["usage"]
    assert main == Tokens(
        input=usage["input_tokens"],
        output=usage["output_tokens"],
        cache_read=usage["cache_read_input_tokens"],
        cache_write=usage["cache_creation_input_tokens"],
    )
    spent = sum(account.values(), Tokens())
    counts = (spent.input, spent.output, spent.cache_read, spent.cache_write)
    cost = sum(n * price for n, price in zip(counts, HAIKU_PRICES[cli_version], strict=True)) / 1_000_000
    assert run.result["total_cost_usd"] == pytest.approx(cost, rel=1e-9)


@pytest.mark.parametrize("status", [529, 0], ids=["overloaded", "connection closed"])
def test_the_cli_asks_again_after_errors_and_then_succeeds(on_stage: Callable[..., Any], status: int) -> None:
    scenario = f"""
    [[tier]]
    tier = 1
    [[tier.turn]]
    text = "There you are."
    error = {{ status = {status}, type = "overloaded_error", message = "Overloaded", times = 1, retry_after = 0 }}
    """

    async def play(stage: Stage) -> tuple[CliRun, list[int]]:
        _, run = await stage.run()
        return run, [call.status for call in stage.api.calls if not call.side]

    run, statuses = on_stage(scenario, play)

    assert statuses == [status, 200]
    assert (run.exit_code, run.result["result"]) == (0, "There you are.")
    assert len(run.of_type("system", "api_retry")) == 1


def test_a_usage_limit_is_an_event_when_signed_in_and_a_plain_429_with_a_key(on_stage: Callable[..., Any]) -> None:
    async def play(stage: Stage) -> tuple[CliRun, CliRun]:
        signed_in = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-rehearsal"}
        return (await stage.run(env=signed_in))[1], (await stage.run())[1]

    limit = "[[tier]]\ntier = 1\n[[tier.turn]]\nusage_limit = { resets_in_seconds = 3600 }\n"
    signed_in, with_key = on_stage(limit, play, clock=lambda: 1_800_000_000.0)

    (event,) = signed_in.of_type("rate_limit_event")
    assert event["rate_limit_info"]["status"] == "rejected"
    assert event["rate_limit_info"]["resetsAt"] == 1_800_003_600
    assert with_key.of_type("rate_limit_event") == []
    for run in (signed_in, with_key):
        assert (run.exit_code, run.result["is_error"], run.result["api_error_status"]) == (1, True, 429)


def test_a_fork_of_the_session_plays_the_next_tier_with_the_conversation_so_far(on_stage: Callable[..., Any]) -> None:
    scenario = """
    [[tier]]
    tier = 1
    [[tier.turn]]
    text = "A word from tier one."
    [[tier]]
    tier = 2
    [[tier.turn]]
    text = "A word from tier two."
    """

    async def play(stage: Stage) -> tuple[str, str, CliRun, tuple[Any, ...]]:
        first, _ = await stage.run(tier=1)
        second, run = await stage.run(tier=2, resume=first)
        return first, second, run, tuple(call for call in stage.api.calls if not call.side)

    first, second, run, calls = on_stage(scenario, play, keep_bodies=True)

    assert run.result["result"] == "A word from tier two."
    assert [(call.session_id, call.tier) for call in calls] == [(first, 1), (second, 2)]
    assert "A word from tier one." in json.dumps(calls[1].body["messages"])


def test_an_endless_scenario_is_stopped_by_the_turn_limit(on_stage: Callable[..., Any]) -> None:
    endless = load_scenario(builtin_scenarios()["endless"])
    _, run = on_stage(endless, lambda stage: stage.run("--max-turns", "3"))
    assert (run.exit_code, run.result["subtype"]) == (1, "error_max_turns")


def test_the_demo_is_mended_by_the_cli_in_three_tiers(on_stage: Callable[..., Any], tmp_path: Path) -> None:
    site = tmp_path / "site"
    demo = load_scenario(builtin_scenarios()["demo"], placeholders=build_demo_site(site))

    async def play(stage: Stage) -> list[CliRun]:
        runs: list[CliRun] = []
        session_id = None
        for tier in (1, 2, 3):
            session_id, run = await stage.run(tier=tier, resume=session_id)
            runs.append(run)
        return runs

    runs = on_stage(demo, play)

    assert [run.exit_code for run in runs] == [0, 0, 0]
    assert [any(r.get("is_error") for r in run.tool_results) for run in runs] == [True, True, False]
    assert (site / "run" / "web.state").read_text() == "running\n"
