"""`opsladder retry` and `opsladder stop`, as an operator uses them, on the real CLI."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from climber import bash, report

from supervisor.rehearsal.scenario import Scenario, Script, Turn
from tests.cli.command_line import DEADLINE_SECONDS, CommandLine, command_line, scripted_api

CONFIG = """
[claude]
end_grace_seconds = 2
[[tiers]]
name = "observe"
model = "claude-haiku-4-5"
prompt = "tier1.md"
allow = ["touch ..."]
[[schedules]]
name = "default"
"""
HANGS = bash("touch begun && tail -f /dev/null")
FINE = report(False)
DOWN = report(True)


@contextmanager
def place(directory: Path, cli: Path, *sessions: tuple[Turn, ...]) -> Iterator[CommandLine]:
    scripts = (Script(tier=1, attempt=number, turns=turns) for number, turns in enumerate(sessions, start=1))
    with scripted_api(Scenario(title="test", scripts=tuple(scripts)), tiers=(1,)) as base_url:
        opsladder = command_line(directory, base_url=base_url, OPSLADDER_CLAUDE__BIN=str(cli))
        (opsladder.work / "opsladder.toml").write_text(CONFIG)
        yield opsladder


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def in_the_middle(opsladder: CommandLine) -> Iterator[subprocess.Popen[bytes]]:
    """A cycle whose tool call is under way."""
    with opsladder.started("cycle") as (process, _):
        until((opsladder.work / "begun").exists)
        yield process


def tails(opsladder: CommandLine) -> list[psutil.Process]:
    """What the agent's call left running."""
    return [p for p in psutil.process_iter(["cwd", "name"]) if p.info["cwd"] == str(opsladder.work)]


def test_a_stop_ends_the_record_its_processes_and_its_cycle_for_good(tmp_path: Path, new_cli: Path) -> None:
    with place(tmp_path, new_cli, (HANGS,), (FINE,)) as opsladder:
        with in_the_middle(opsladder) as process:
            stopped = opsladder.run("stop", "1", "--json")
            assert process.wait(DEADLINE_SECONDS) == 1
        assert tails(opsladder) == []
        again = opsladder.run("stop", "1")
        following = opsladder.run("cycle", "--json")

    assert stopped.exit_code == 0, stopped.err
    assert stopped.document["session"] == {"id": 1, "status": "stopped"}
    assert stopped.document["cycle"] == {"id": 1, "status": "stopped"}
    assert (again.exit_code, again.err) == (1, "opsladder: Record 1 is stopped, and its cycle 1 stopped.\n")
    assert (following.exit_code, following.document["cycle"]["id"]) == (0, 2)


def test_a_stop_settles_what_a_dead_supervisor_left(tmp_path: Path, new_cli: Path) -> None:
    with place(tmp_path, new_cli, (HANGS,)) as opsladder:
        with in_the_middle(opsladder) as process:
            process.send_signal(signal.SIGKILL)
            process.wait(DEADLINE_SECONDS)
            stopped = opsladder.run("stop", "1")

        assert stopped.exit_code == 0
        assert "A cycle lost its supervisor" in stopped.err
        assert stopped.out == "Record 1 is interrupted; cycle 1 is stopped.\n"
        assert tails(opsladder) == []


def test_a_stop_ends_a_cycle_that_waits(tmp_path: Path, new_cli: Path) -> None:
    with place(tmp_path, new_cli, (HANGS,)) as opsladder:
        with in_the_middle(opsladder) as process:
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_SECONDS) == 4
        stopped = opsladder.run("stop", "1")

    assert stopped.out == "Record 1 is interrupted; cycle 1 is stopped.\n"


def test_a_retry_does_the_record_again_and_the_tree_shows_both(tmp_path: Path, new_cli: Path) -> None:
    with place(tmp_path, new_cli, (DOWN,), (FINE,), (FINE,)) as opsladder:
        assert opsladder.run("cycle").exit_code == 3
        retried = opsladder.run("retry", "1", "--json")
        fresh = opsladder.run("retry", "1", "--fresh-session")
        tree = opsladder.run("chain", "1")
        whole = opsladder.run("chain", "3", "--json").document
        again = opsladder.run("chains", "--json").document["chains"]

    assert retried.exit_code == 0, retried.err
    assert (retried.document["cycle"]["trigger"], retried.document["cycle"]["id"]) == ("retry", 2)
    [record] = retried.document["sessions"]
    assert (record["continuity"], record["reason"], record["parent_session_id"]) == ("resume", "operator_retry", 1)
    assert fresh.exit_code == 0, fresh.err
    assert "handoff (forced_fresh)" in fresh.out
    assert [s["id"] for s in whole["sessions"]] == [1, 2, 3]
    assert [s["cycle"] for s in whole["sessions"]] == [1, 2, 3]
    assert [s["epoch"] for s in whole["sessions"]] == [0, 1, 0]
    assert "of cycle 2" in tree.out
    assert "superseded" in tree.out
    assert [c["cycle"]["trigger"] for c in again] == ["retry", "retry", "manual"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [(("retry", "9"), 1, "There is no session 9."), (("stop", "9"), 1, "There is no session 9.")],
    ids=["retry", "stop"],
)
def test_a_record_that_is_not_there_is_said_to_be_missing(
    tmp_path: Path, new_cli: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    with place(tmp_path, new_cli, (FINE,)) as opsladder:
        opsladder.run("cycle")
        done = opsladder.run(*arguments)

    assert done.exit_code == code
    assert said in done.err


def test_a_record_that_runs_is_not_retried(tmp_path: Path, new_cli: Path) -> None:
    with place(tmp_path, new_cli, (HANGS,)) as opsladder, in_the_middle(opsladder):
        refused = opsladder.run("retry", "1")

    assert refused.exit_code == 2
    assert "`opsladder stop 1` ends it" in refused.err


def test_what_was_cut_off_by_a_reboot_goes_on_with_the_next_cycle(tmp_path: Path, new_cli: Path) -> None:
    with place(tmp_path, new_cli, (HANGS,), (FINE,)) as opsladder:
        with in_the_middle(opsladder) as process:
            process.send_signal(signal.SIGKILL)
            process.wait(DEADLINE_SECONDS)
        on = opsladder.run("cycle", "--json")
        shown = opsladder.run("session", "1", "--json").document

    assert on.exit_code == 0, on.err
    assert on.document["cycle"]["id"] == 1
    assert [(s["status"], s["reason"], s["resumes"]) for s in on.document["sessions"]] == [
        ("interrupted", "first_tier", 0),
        ("completed", "interrupted", 1),
    ]
    assert [(t["from"], t["to"]) for t in shown["history"]] == [
        (None, "created"),
        ("created", "active"),
        ("active", "interrupted"),
    ]
