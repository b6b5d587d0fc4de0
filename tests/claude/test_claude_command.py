"""The command line and the environment of a run."""

import json
from dataclasses import fields, replace

import pytest

from supervisor.claude.command import RunSpec, arguments, environment
from supervisor.errors import ClaudeNotUsable
from supervisor.model.runtime import Abilities, Runtime

EVERYTHING = Abilities(**{field.name: True for field in fields(Abilities)})
NOTHING = Abilities(**{field.name: False for field in fields(Abilities)})
SPEC = RunSpec(
    session_id="B",
    resume_session_id=None,
    model="haiku",
    tools=("Bash", "Read"),
    disallowed_tools=("Bash(rm *)", "Bash(dd *)"),
    max_turns=9,
    max_budget_usd=0.5,
    system_prompt="- You watch over services.",
    append_system_prompt=False,
    report_schema='{"type":"object"}',
    settings_json=None,
)


def runtime(abilities: Abilities) -> Runtime:
    return Runtime(id="r", host="h", path="/bin/claude", version="2.1.325", abilities=abilities)


def line(spec: RunSpec = SPEC, abilities: Abilities = EVERYTHING) -> list[str]:
    return arguments(runtime(abilities), spec)


def value(of: str, arguments: list[str]) -> str:
    return arguments[arguments.index(of) + 1]


def test_a_fresh_run_is_told_everything():
    assert line() == [
        "-p",
        *("--output-format", "stream-json"),
        "--verbose",
        "--include-partial-messages",
        *("--model", "haiku"),
        *("--tools", "Bash,Read"),
        *("--allowedTools", "Bash,Read"),
        *("--disallowedTools", "Bash(rm *),Bash(dd *)"),
        *("--setting-sources", ""),
        "--strict-mcp-config",
        *("--system-prompt", "- You watch over services."),
        *("--json-schema", '{"type":"object"}'),
        *("--max-turns", "9"),
        *("--max-budget-usd", "0.5"),
        *("--settings", '{"attribution":{"commit":"","pr":""},"includeCoAuthoredBy":false}'),
        *("--session-id", "B"),
    ]


def test_a_resumed_run_is_told_the_same_and_forks_under_its_own_id():
    resumed = line(replace(SPEC, resume_session_id="A"))

    assert resumed[:-5] == line()[:-2]
    assert resumed[-5:] == ["--resume", "A", "--fork-session", "--session-id", "B"]


def test_a_binary_that_can_do_nothing_is_asked_for_nothing_it_does_not_know():
    assert line(abilities=NOTHING) == [
        "-p",
        *("--output-format", "stream-json"),
        "--verbose",
        *("--model", "haiku"),
        *("--allowedTools", "Bash,Read"),
        *("--disallowedTools", "Bash(rm *),Bash(dd *)"),
        *("--max-turns", "9"),
    ]


@pytest.mark.parametrize(
    ("missing", "tail"),
    [
        ({"fork_session": False}, ["--resume", "A"]),
        ({"session_id": False}, ["--resume", "A", "--fork-session"]),
        ({"fork_session": False, "session_id": False}, ["--resume", "A"]),
    ],
    ids=["no fork", "no own id", "neither"],
)
def test_resuming_with_an_older_binary(missing: dict[str, bool], tail: list[str]):
    resumed = line(replace(SPEC, resume_session_id="A"), replace(EVERYTHING, **missing))

    assert resumed[-len(tail) :] == tail
    assert ("--session-id" in resumed) == (tail[-1] == "B")


def test_a_flag_that_takes_many_values_is_always_followed_by_a_flag():
    for spec in (SPEC, replace(SPEC, resume_session_id="A"), replace(SPEC, max_turns=None, max_budget_usd=None)):
        for abilities in (EVERYTHING, replace(NOTHING, tools=True)):
            arguments = [*line(spec, abilities), "--end"]
            for many in {"--tools", "--allowedTools", "--disallowedTools"} & set(arguments):
                assert arguments[arguments.index(many) + 2].startswith("--")


def test_a_tool_used_in_part_is_offered_by_name_and_allowed_by_rule():
    told = line(replace(SPEC, tools=("Bash(git log *)", "Bash(git diff *)", "Read")))

    assert value("--tools", told) == "Bash,Read"
    assert value("--allowedTools", told) == "Bash(git log *),Bash(git diff *),Read"


def test_no_tools_means_none_at_all():
    told = line(replace(SPEC, tools=()))

    assert value("--tools", told) == ""
    assert "--allowedTools" not in told


def test_a_system_prompt_can_be_appended_and_falls_back_to_that():
    assert value("--append-system-prompt", line(replace(SPEC, append_system_prompt=True))) == SPEC.system_prompt
    fallen_back = line(abilities=replace(EVERYTHING, system_prompt=False))
    assert value("--append-system-prompt", fallen_back) == SPEC.system_prompt


@pytest.mark.parametrize(("amount", "said"), [(2.0, "2"), (0.25, "0.25"), (0.00001, "0.00001"), (100.0, "100")])
def test_money_is_written_plainly(amount: float, said: str):
    assert value("--max-budget-usd", line(replace(SPEC, max_budget_usd=amount))) == said


def test_given_settings_are_merged_with_ours():
    told = line(replace(SPEC, settings_json='{"hooks":{"PreToolUse":[]},"includeCoAuthoredBy":true}'))

    assert json.loads(value("--settings", told)) == {
        "attribution": {"commit": "", "pr": ""},
        "includeCoAuthoredBy": True,
        "hooks": {"PreToolUse": []},
    }


def test_settings_that_protect_the_host_are_never_left_out_silently():
    with pytest.raises(ClaudeNotUsable, match="takes no --settings"):
        line(replace(SPEC, settings_json='{"hooks":{}}'), replace(EVERYTHING, settings=False))


def test_the_environment_of_a_run():
    base = {"PATH": "/bin", "DISABLE_TELEMETRY": "0", "CLAUDEOPS_TIER": "9", "CLAUDE_CODE_USE_BEDROCK": "1"}

    env = environment(base, tier=2, dry_run=True, state_dir="/state", run_marker="B")

    assert env == {
        "PATH": "/bin",
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
        "CLAUDEOPS_TIER": "2",
        "CLAUDEOPS_DRY_RUN": "true",
        "CLAUDEOPS_STATE_DIR": "/state",
        "OPSLADDER_RUN": "B",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "0",
        "DISABLE_ERROR_REPORTING": "1",
    }
    assert environment({}, tier=1, dry_run=False, state_dir="", run_marker="B")["CLAUDEOPS_DRY_RUN"] == "false"


@pytest.mark.parametrize(
    "name",
    [
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_PID",
        "AI_AGENT",
    ],
)
def test_marks_of_another_session_are_not_passed_on(name: str):
    assert name not in environment({name: "1"}, tier=1, dry_run=False, state_dir="", run_marker="B")
