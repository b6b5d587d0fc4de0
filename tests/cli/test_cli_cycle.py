"""`opsladder cycle` as a person runs it, and looking on while it runs."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from climber import CLIMB, bash, report, scripts

from tests.cli.command_line import DEADLINE_SECONDS, CommandLine, command_line, scripted_api

CONTRACT = {
    "": {"schema", "cycle", "total", "sessions"},
    "cycle": {
        *("id", "schedule", "trigger", "status", "reason", "dry_run", "incident", "started_at", "ended_at"),
    },
    "total": {"cost_usd", "cost_is_exact", "duration_seconds", "sessions"},
    "sessions": {
        *("id", "tier", "model", "session_id", "parent_session_id", "status", "continuity", "reason", "cost_usd"),
        *("cost_basis", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "context_tokens"),
        *("context_window", "num_turns", "duration_seconds", "exit_code", "stop_reason", "tool_calls", "report"),
        *("started_at", "ended_at"),
    },
    "tool_calls": {"allowed", "denied", "deferred"},
}


def until(happened: Callable[[], bool], *, deadline_seconds: float = DEADLINE_SECONDS) -> None:
    deadline = time.monotonic() + deadline_seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)


def test_a_cycle_prints_the_document_that_scripts_rely_on_and_keeps_it(tmp_path: Path, new_cli: Path) -> None:
    with scripted_api(CLIMB, tiers=(1, 2, 3)) as base_url:
        opsladder = command_line(tmp_path, base_url=base_url, OPSLADDER_CLAUDE__BIN=str(new_cli))
        done = opsladder.run("cycle", "--json")
    chain = done.document

    assert (done.exit_code, done.err) == (0, "")
    assert set(chain) >= CONTRACT[""]
    assert set(chain["cycle"]) >= CONTRACT["cycle"]
    assert set(chain["total"]) >= CONTRACT["total"]
    assert [s["tier"] for s in chain["sessions"]] == [1, 2, 3]
    for session in chain["sessions"]:
        assert set(session) >= CONTRACT["sessions"]
        assert set(session["tool_calls"]) >= CONTRACT["tool_calls"]
    assert (chain["cycle"]["trigger"], chain["cycle"]["status"]) == ("manual", "resolved")
    assert chain["cycle"]["started_at"].endswith("Z")
    kept = opsladder.run("chain", "3", "--json").document
    assert [event["kind"] for event in kept.pop("events")] == ["decision"] * 4 + ["notice"]
    assert kept == chain
    assert opsladder.run("chains", "--json").document["chains"] == [chain]
    spent = opsladder.run("cost", "--json").document
    assert spent["total_usd"] == pytest.approx(chain["total"]["cost_usd"])


def test_a_damaged_file_that_was_rebuilt_is_told_wherever_one_looks(tmp_path: Path, new_cli: Path) -> None:
    with scripted_api(scripts((report(False),)), tiers=(1,)) as base_url:
        opsladder = command_line(tmp_path, base_url=base_url, OPSLADDER_CLAUDE__BIN=str(new_cli))
        opsladder.state.mkdir(mode=0o700)
        (opsladder.state / "cooldown.json").write_text('{"schema": "half')
        # Nobody listens there: what could not be sent stays on the list.
        done = opsladder.run("cycle", OPSLADDER_NOTIFY__WARNING="json://127.0.0.1:9")
    shown, document = opsladder.run("chain", "1"), opsladder.run("chain", "1", "--json").document

    said = f"{opsladder.state}/cooldown.json was damaged and is written anew from the records."
    assert done.exit_code == 0
    assert [line for line in done.out.splitlines() if "damaged" in line] == [f"WARNING: {said}"]
    assert f"! {said}".replace(" ", "") in "".join(shown.out.split())
    [notice] = [event for event in document["events"] if event["kind"] == "notice"]
    assert (notice["level"], notice["text"], notice["session_id"]) == ("warning", said, None)
    assert "damaged" in opsladder.run("notify", "list").out


USAGE = {
    "unknown_schedule": (("cycle", "weekly"), "There is no schedule named 'weekly'. There is: default."),
    "tier_too_high": (("cycle", "--start-tier", "9"), "There is no tier 9: the ladder has 3."),
    "tier_zero": (("cycle", "--max-tier", "0"), "--max-tier"),
}


@pytest.mark.parametrize(("arguments", "said"), USAGE.values(), ids=USAGE.keys())
def test_a_cycle_nobody_can_run_is_refused_before_anything_starts(
    opsladder: CommandLine, arguments: tuple[str, ...], said: str
) -> None:
    done = opsladder.run(*arguments)

    assert (done.exit_code, done.out) == (2, "")
    assert said in done.err
    assert not opsladder.state.exists()


@pytest.fixture
def waiting(tmp_path: Path, new_cli: Path) -> Iterator[tuple[CommandLine, Path]]:
    """A cycle whose one tool call is running, until the file that is given along exists."""
    go = tmp_path / "go"
    scenario = scripts((bash(f"until [ -e {go} ]; do sleep 0.1; done; echo released"), report(False)))
    with scripted_api(scenario, tiers=(1,)) as base_url:
        opsladder = command_line(tmp_path, base_url=base_url, OPSLADDER_CLAUDE__BIN=str(new_cli))
        with opsladder.started("cycle") as (_, output):
            until(lambda: b"until [ -e" in output.read_bytes())
            yield opsladder, go


def test_a_running_session_is_followed_to_its_end(waiting: tuple[CommandLine, Path]) -> None:
    opsladder, go = waiting
    with (
        opsladder.started("session", "1", "--follow") as (follower, shown),
        opsladder.started("session", "1", "--follow") as (impatient, cut),
        opsladder.started("session", "1", "--follow", "--json") as (script, document),
    ):
        until(lambda: all(b"runs  Bash: until" in output.read_bytes() for output in (shown, cut)))
        impatient.send_signal(signal.SIGINT)
        assert impatient.wait(DEADLINE_SECONDS) == 130
        assert follower.poll() is None
        assert opsladder.run("chains", "--json").document["chains"][0]["cycle"]["status"] == "running"

        go.touch()
        assert (follower.wait(DEADLINE_SECONDS), script.wait(DEADLINE_SECONDS)) == (0, 0)

    assert b"Traceback" not in cut.read_bytes()
    text = shown.read_text()
    order = (
        "Tier 1 haiku … active",
        "runs  Bash: until",
        "guard  ✓ allow",
        "gets  released",
        "Tier 1 haiku ✓ completed",
    )
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    assert text.count("guard  ") == 1
    assert document.read_text() == opsladder.run("session", "1", "--json").out


def test_a_session_whose_supervisor_was_killed_is_not_followed_for_ever(tmp_path: Path, new_cli: Path) -> None:
    scenario = scripts((bash("sleep 600"),), (report(False),))
    with scripted_api(scenario, tiers=(1, 2)) as base_url:
        opsladder = command_line(tmp_path, base_url=base_url, OPSLADDER_CLAUDE__BIN=str(new_cli))
        with opsladder.started("cycle") as (supervisor, output):
            until(lambda: b"sleep 600" in output.read_bytes())
            supervisor.kill()
            supervisor.wait()
        done = opsladder.run("session", "1", "--follow")
        # The next cycle ends what the dead one left running.
        opsladder.run("cycle", "--max-tier", "1", "--start-tier", "3")

    assert done.exit_code == 1
    assert done.err == (
        "opsladder: Nobody runs record 1 any more: its supervisor is gone. The next cycle settles it.\n"
    )
