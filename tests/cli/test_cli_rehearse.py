"""`opsladder rehearse` and `opsladder demo`: exit codes, plain lines, one document, and refusals."""

import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.command_line import DEADLINE_SECONDS, OPSLADDER, CommandLine, as_ordinary_user, command_line

SHORT_LADDER = """
[[tiers]]
name = "observe"
model = "haiku"
prompt = "tier1.md"
max_turns = 3
"""
OWN_SCENARIO = """
title = "My own"
[[tier]]
tier = 1
[[tier.turn]]
text = "I leave a mark."
tools = [{ name = "Bash", input = { command = "echo seen > {dir}/mark" } }]
[[tier.turn]]
[tier.turn.report]
summary = "the mark is left"
escalation = { needed = false }
"""

ENDINGS = {
    "unresolved_in_a_dry_run": (("unresolved", "--dry-run"), "", 3, "cycle 1 blocked (dry_run), "),
    "unresolved": (("unresolved",), SHORT_LADDER, 3, "cycle 1 unresolved (top_tier), "),
    "endless": (("endless",), SHORT_LADDER, 1, "cycle 1 failed (turn_limit), "),
    "a_file": (("own.toml",), SHORT_LADDER + 'allow = ["> <work>/mark"]\n', 0, "cycle 1 healthy, "),
    "a_file_against_the_rules": (("own.toml",), SHORT_LADDER, 0, "cycle 1 healthy, "),
}


@pytest.mark.parametrize(("arguments", "config", "code", "last"), ENDINGS.values(), ids=ENDINGS.keys())
def test_the_exit_code_and_the_last_line_say_how_it_ended(
    on_real_cli: CommandLine, arguments: tuple[str, ...], config: str, code: int, last: str
) -> None:
    (on_real_cli.work / "opsladder.toml").write_text(config)
    (on_real_cli.work / "own.toml").write_text(OWN_SCENARIO)

    # Once is enough to see it: what is cut off is gone on with up to so many times.
    done = on_real_cli.run("rehearse", *arguments, OPSLADDER_CONTINUITY__MAX_RESUMES="0")

    lines = done.out.splitlines()
    assert done.exit_code == code
    assert lines[-1].startswith(last)
    assert ("A PERSON IS NEEDED: " in done.out) == ("dry" not in last and code != 0)
    assert "\x1b" not in done.out
    activity = [line for line in lines if line.startswith("tier 1 haiku: ")]
    assert not [line for line in activity if line.endswith("thinking")]
    assert not [pair for pair in pairwise(activity) if pair[0] == pair[1]]
    assert (on_real_cli.work / "mark").exists() == ("mark" in config)
    assert not on_real_cli.state.exists()


def test_a_rehearsal_that_pauses_says_that_it_ends_there(on_real_cli: CommandLine) -> None:
    (on_real_cli.work / "opsladder.toml").write_text(SHORT_LADDER + 'approve = ["> <work>/mark"]\n')
    (on_real_cli.work / "own.toml").write_text(OWN_SCENARIO)

    done = on_real_cli.run("rehearse", "own.toml")

    *_, how, last = done.out.splitlines()
    assert done.exit_code == 4
    assert how.startswith("cycle 1 paused (approval), ")
    assert last == "a rehearsal ends here: its records are thrown away, so there is nothing to answer or to go on with"
    assert "to go on:" not in done.out


LIMITED_SCENARIO = """
title = "The account's window is used up in the middle"
[[tier]]
tier = 1
[[tier.turn]]
text = "I look around."
tools = [{ name = "Bash", input = { command = "ls" } }]
[[tier.turn]]
usage_limit = { resets_in_seconds = 3000 }
"""


def test_a_usage_limit_can_be_rehearsed(tmp_path: Path, cli: Path) -> None:
    opsladder = command_line(tmp_path, OPSLADDER_CLAUDE__BIN=str(cli))
    (opsladder.work / "opsladder.toml").write_text(SHORT_LADDER)
    (opsladder.work / "limited.toml").write_text(LIMITED_SCENARIO)

    done = opsladder.run("rehearse", "limited.toml")

    assert done.exit_code == 4
    assert "tier 1 haiku: Bash: ls" in done.out
    assert "cycle 1 paused (usage_limit), " in done.out
    # It goes on by itself.
    assert "A PERSON IS NEEDED" not in done.out
    assert "WARNING: Tier 1 is paused. The account's usage limit is reached. " in done.out
    assert re.search(r"The account's usage limit is reached\. It resets at [\d-]+T[\d:]+Z\.", done.out)


def test_with_json_stdout_is_the_chain_and_all_else_is_on_stderr(on_real_cli: CommandLine) -> None:
    done = on_real_cli.run("rehearse", "healthy", "--json", "--verbose")

    assert done.exit_code == 0
    assert done.document["schema"] == "opsladder.chain/1"
    assert done.document["cycle"]["status"] == "healthy"
    assert re.search(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ info: Tier finished cycle=1 ", done.err, re.MULTILINE)
    assert "alembic" not in done.err


def test_a_reader_that_goes_away_does_not_end_the_work(on_real_cli: CommandLine) -> None:
    (on_real_cli.work / "opsladder.toml").write_text(SHORT_LADDER + 'allow = ["> <work>/mark"]\n')
    (on_real_cli.work / "own.toml").write_text(OWN_SCENARIO)
    process = subprocess.Popen(
        [str(OPSLADDER), "rehearse", "own.toml"],
        cwd=on_real_cli.work,
        env=on_real_cli.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"My own\n"
    process.stdout.close()
    assert process.stderr is not None
    complaints = process.stderr.read()
    process.stderr.close()

    assert (process.wait(DEADLINE_SECONDS), complaints) == (0, b"")
    assert (on_real_cli.work / "mark").read_text() == "seen\n"


REFUSALS = {
    "no_scenario": ((), 2, "SCENARIO"),
    "unknown": (("earthquake",), 2, "There is no scenario earthquake. Give a file, or one of: demo, "),
    "a_directory": (("..",), 2, "There is no scenario .."),
    "not_toml": (("odd.toml",), 2, "odd.toml is not valid TOML"),
    "misspelt": (("misspelt.toml",), 2, "tier 1, turn 1: txt is not a known key, did you mean text?"),
    "out_of_sight": (("closed/own.toml",), 2, "closed/own.toml cannot be looked at: Permission denied."),
    "no_claude": (("healthy",), 1, "no-such-claude does not exist. Install the Claude CLI"),
    "no_claude_with_json": (("healthy", "--json"), 1, "no-such-claude does not exist. Install the Claude CLI"),
}


@pytest.mark.parametrize(("arguments", "code", "said"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_rehearsal_that_cannot_be_says_why(
    opsladder: CommandLine, arguments: tuple[str, ...], code: int, said: str
) -> None:
    (opsladder.work / "odd.toml").write_text("title = ")
    (opsladder.work / "misspelt.toml").write_text(OWN_SCENARIO.replace("text =", "txt ="))
    (opsladder.work / "closed").mkdir(mode=0o000)

    done = opsladder.run("rehearse", *arguments, by=as_ordinary_user())

    assert done.exit_code == code
    assert said in done.err
    assert "Traceback" not in done.err
    assert done.out == "" or "--json" not in arguments


def test_a_demo_without_a_claude_says_what_to_install(opsladder: CommandLine) -> None:
    done = opsladder.run("demo")

    assert done.exit_code == 1
    assert done.err.startswith("opsladder: ")
    assert "Install the Claude CLI" in done.err
    assert not list(Path(opsladder.env["TMPDIR"]).glob("opsladder-*"))


def test_a_demo_takes_the_cli_of_a_configuration_and_nothing_else(opsladder: CommandLine) -> None:
    (opsladder.work / "mine.toml").write_text('[claude]\nbin = "mine/claude"\nwork_dir = "nowhere"\n')

    done = opsladder.run("demo", "--config", "mine.toml", OPSLADDER_CLAUDE__BIN="")

    assert done.exit_code == 1
    assert f"{opsladder.work}/mine/claude" in done.err
    assert "nowhere" not in done.out + done.err


def test_a_demo_runs_on_the_cli_of_a_configuration(on_real_cli: CommandLine, new_cli: Path) -> None:
    (on_real_cli.work / "mine.toml").write_text(f'[claude]\nbin = "{new_cli}"\n[escalation]\nmax_tier = 1\n')

    done = on_real_cli.run("demo", "--config", "mine.toml", OPSLADDER_CLAUDE__BIN="")

    assert (done.exit_code, "cycle 1 resolved" in done.out) == (0, True)


def test_a_demo_with_a_configuration_that_is_wrong_is_refused(opsladder: CommandLine) -> None:
    (opsladder.work / "mine.toml").write_text("[claude]\nbim = 1\n")

    done = opsladder.run("demo", "--config", "mine.toml")

    assert (done.exit_code, done.out) == (2, "")
    assert 'mine.toml:2: claude.bim: unknown key. Did you mean "bin"?' in done.err
