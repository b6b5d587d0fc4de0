"""A cycle that is interrupted: recorded as such, nothing left running, and its session can be taken up again."""

import asyncio
import os
import random
import signal
import time
from pathlib import Path

import psutil
import pytest
from climber import bash, report, scripts, texts
from cycles import Place, scripted_api, until
from realcli import run_cli

from supervisor.model.cycle import Chain
from supervisor.rehearsal.scenario import Scenario


def busy(root: Path) -> Scenario:
    """A tier that looks, and then waits for a program of the place's own, which leaves a process in another session."""
    program = root / "work" / "wait"
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/bin/sh\nsetsid sleep 600 &\ntouch reached\nsleep 600\n")
    program.chmod(0o755)
    return scripts((bash("echo finding-from-tier-one"), bash(str(program), text="I wait."), report(False)))


def may_wait(root: Path) -> str:
    """The configuration in which it may."""
    allow = f'allow = ["{root / "work" / "wait"}"]\n'
    tiers = (("haiku", "tier1.md"), ("sonnet", "tier2.md"), ("opus", "tier3.md"))
    return "".join(f'[[tiers]]\nname = "{m}"\nmodel = "{m}"\nprompt = "{p}"\n{allow}' for m, p in tiers)


def interrupt_process(pid: int) -> None:
    os.kill(pid, signal.SIGINT)


def interrupt_terminal(pid: int) -> None:
    """As a terminal does on Ctrl-C: everyone in the foreground."""
    os.killpg(pid, signal.SIGINT)


def terminate(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)


def hang_up(pid: int) -> None:
    os.kill(pid, signal.SIGHUP)


def transcripts(place: Place) -> str:
    return "".join(path.read_text() for path in place.home.glob(".claude/projects/*/*.jsonl"))


def assert_resumable(place: Place, cli, api, chain: Chain) -> None:
    """Take the session up again with the CLI itself: the model reads what it had found."""
    [session] = chain.sessions
    before = len(api.calls)
    again = asyncio.run(
        run_cli(
            cli,
            ["--resume", session.session_id, "--model", "haiku"],
            prompt="Go on.",
            env={name: value for name, value in place.env.items() if not name.startswith("OPSLADDER_")},
            cwd=place.work,
        )
    )
    assert again.exit_code == 0, again.stderr
    assert again.result["session_id"] == session.session_id
    asked = [call for call in api.calls[before:] if not call.side]
    assert "finding-from-tier-one" in texts(asked[0].body)


@pytest.mark.parametrize("ask", [interrupt_terminal, terminate], ids=["ctrl_c", "sigterm"])
def test_an_interrupted_tier_is_recorded_ended_and_resumable(tmp_path, cli, ask):
    with scripted_api(busy(tmp_path)) as api:
        place = Place(tmp_path, cli, base_url=api.base_url, config=may_wait(tmp_path))
        started = place.start("--json")
        place.until_reached()
        assert [p for p in place.processes() if "sleep 600" in p]

        ask(started.pid)
        done = started.done()

        assert done.exit_code == 1, done.err
        cycle, [session] = done.document["cycle"], done.document["sessions"]
        assert (cycle["status"], cycle["reason"]) == ("stopped", "interrupted")
        assert (session["status"], session["failure"]) == ("interrupted", "interrupted")
        assert session["cost_usd"] > 0
        place.assert_nothing_left()
        [chain] = place.chains()
        assert [notice.level for notice in place.notices(chain)] == ["critical"]
        assert_resumable(place, cli, api, chain)


@pytest.mark.parametrize("ask", [interrupt_process, hang_up], ids=["sigint", "sighup"])
def test_other_signals_interrupt_just_the_same(tmp_path, standin, ask):
    place = Place(tmp_path, standin, ways="busy")
    started = place.start("--json")
    place.until_reached()

    ask(started.pid)
    done = started.done()

    assert done.exit_code == 1, done.err
    cycle, [session] = done.document["cycle"], done.document["sessions"]
    assert (cycle["status"], cycle["reason"]) == ("stopped", "interrupted")
    assert (session["status"], session["cost_basis"]) == ("interrupted", "estimated")
    place.assert_nothing_left()


def test_a_cli_killed_from_outside_is_interrupted_and_resumable(tmp_path, cli):
    with scripted_api(busy(tmp_path)) as api:
        place = Place(tmp_path, cli, base_url=api.base_url, config=may_wait(tmp_path))
        started = place.start("--json")
        place.until_reached()
        [[session]] = [chain.sessions for chain in place.chains()]
        # The CLI writes its transcript a little later than its stream; what it has not written dies with it.
        # A transcript without the call it was killed in, 2.1.225 resumes as an empty conversation.
        until(lambda: "/work/wait" in transcripts(place), what="the transcript is written")

        psutil.Process(session.pid).kill()
        done = started.done()

        assert done.exit_code == 1, done.err
        [document] = done.document["sessions"]
        assert (document["status"], document["failure"]) == ("interrupted", "killed")
        assert (document["cost_basis"], document["session_id"]) == ("estimated", session.session_id)
        place.assert_nothing_left()
        assert_resumable(place, cli, api, place.chains()[0])


def test_a_supervisor_killed_in_mid_tier_is_cleaned_up_after_by_the_next_cycle(tmp_path, cli):
    scenario = scripts(busy(tmp_path).scripts[0].turns, (report(False),))
    with scripted_api(scenario, fallback=(1, 2)) as api:
        place = Place(tmp_path, cli, base_url=api.base_url, config=may_wait(tmp_path))
        started = place.start()
        place.until_reached()
        until(lambda: place.chains()[0].sessions[0].messages > 1, what="messages are recorded")

        # Nobody has asked for its exit code yet: it stays a zombie, as under an init that never asks.
        started.process.kill()
        until(lambda: psutil.Process(started.pid).status() == psutil.STATUS_ZOMBIE, what="it is dead")
        assert [p for p in place.processes() if "sleep 600" in p]
        again = place.cycle("--json")
        started.done()

        assert again.exit_code == 0, again.err
        lost, after = place.chains()
        assert (lost.cycle.status, lost.cycle.reason) == ("stopped", "interrupted")
        [notice] = place.notices(lost)
        assert (notice.level, f"pid {started.pid}" in notice.text) == ("critical", True)
        [session] = lost.sessions
        assert (session.status, session.failure, session.cost_basis) == ("interrupted", "interrupted", "estimated")
        assert session.cost_usd
        kinds = [e.kind for e in place.events(session)]
        assert kinds == ["prompt", "text", "tool_use", "tool_result", "text", "tool_use"]
        assert after.cycle.status == "healthy"
        place.assert_nothing_left()
        assert_resumable(place, cli, api, lost)


def test_tools_that_outlive_their_cli_are_found_by_their_mark_whatever_the_session_is_called(tmp_path, standin):
    place = Place(tmp_path, standin, ways="busy", lacks="--session-id --fork-session")
    started = place.start()
    place.until_reached()
    [[session]] = [chain.sessions for chain in place.chains()]
    started.process.kill()
    psutil.Process(session.pid).kill()
    assert len([p for p in place.processes() if "sleep 600" in p]) == 2
    place.go_on()

    assert place.cycle().exit_code == 0

    [lost] = place.chains()[0].sessions
    assert lost.session_id is not None
    place.assert_nothing_left()


def test_a_stream_that_is_lost_takes_nothing_from_what_was_recorded_live(tmp_path, standin):
    place = Place(tmp_path, standin, ways="chatters")
    started = place.start()
    place.until_recorded()
    started.process.kill()
    started.done()
    [[live]] = [chain.sessions for chain in place.chains()]
    Path(place.files_left()[0]).unlink()
    place.go_on()

    assert place.cycle().exit_code == 0

    [lost] = place.chains()[0].sessions
    kept = ("session_id", "messages", "tools_executed", "tokens", "cost_usd", "last_message_at")
    assert {name: getattr(lost, name) for name in kept} == {name: getattr(live, name) for name in kept}
    assert (lost.status, lost.cost_basis) == ("interrupted", "estimated")
    place.assert_nothing_left()


def test_two_commands_that_find_a_dead_supervisor_settle_it_once(tmp_path, standin):
    place = Place(tmp_path, standin, ways="chatters", schedules=("one", "two", "three"))
    started = place.start("one")
    place.until_recorded()
    started.process.kill()
    started.done()
    place.go_on()

    pair = [place.start("two"), place.start("three")]

    assert [s.done().exit_code for s in pair] == [0, 0]
    [lost] = [c for c in place.chains() if c.cycle.schedule == "one"]
    assert (lost.cycle.status, lost.cycle.reason) == ("stopped", "interrupted")
    assert place.words_said_once(lost.sessions[0]) == lost.sessions[0].messages - 1
    assert len(place.notices(lost)) == 1
    place.assert_nothing_left()


def test_a_living_supervisor_is_left_alone(tmp_path, standin):
    place = Place(tmp_path, standin, ways="busy", schedules=("one", "two"))
    started = place.start("one")
    place.until_reached()
    place.go_on()
    stopped = psutil.Process(started.pid)
    stopped.suspend()
    try:
        assert place.cycle("two").exit_code == 0
        assert {c.cycle.schedule: c.cycle.status for c in place.chains()} == {"one": "running", "two": "healthy"}
    finally:
        stopped.resume()
    assert started.done().exit_code == 0
    place.assert_nothing_left()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda n: n.name)
def test_a_cli_that_was_booted_ahead_never_outlives_its_supervisor(tmp_path, cli, number):
    """The signal comes as soon as the CLI is there, long before its prompt."""
    with scripted_api(busy(tmp_path)) as api:
        place = Place(tmp_path, cli, base_url=api.base_url, config=may_wait(tmp_path))
        started = place.start("--json")
        until(lambda: [p for p in place.processes() if "--session-id" in p], what="it is booted")

        os.kill(started.pid, number)
        done = started.done()

        assert done.exit_code != 0
        until(lambda: not place.processes(), what="nothing is left", seconds=10)
        assert api.calls == ()


def test_nobody_to_show_it_to_is_no_reason_to_break_off(tmp_path, standin):
    place = Place(tmp_path, standin, ways="busy")
    started = place.start()
    place.until_reached()
    started.process.stdout.close()
    place.go_on()
    started.process.wait()

    [chain] = place.chains()
    assert (chain.cycle.status, chain.sessions[0].status) == ("healthy", "completed")
    place.assert_nothing_left()


KILLS = 8
SEED = 20261116


def test_killed_at_any_instant_no_schedule_is_stuck_and_nothing_is_left(tmp_path, standin):
    """Each kill comes at another instant of a cycle with three tiers and handoffs; the next one finds what is left."""
    place = Place(tmp_path, standin, ways="needs needs healthy", config="[continuity]\nmax_resumes = 0\n")
    begun = time.monotonic()
    assert place.cycle().exit_code == 0
    whole = time.monotonic() - begun
    instants = random.Random(SEED)

    for _ in range(KILLS):
        started = place.start()
        with_deadline = time.monotonic() + whole * instants.uniform(0.2, 1.0)
        until(lambda: time.monotonic() >= with_deadline, what="the instant")  # noqa: B023
        started.process.kill()
        started.done()

    assert place.cycle().exit_code == 0
    place.assert_nothing_left()
    chains = place.chains()
    assert {c.cycle.status for c in chains} <= {"resolved", "stopped"}
    for chain in chains:
        for session in chain.sessions:
            kinds = [e.kind for e in place.events(session) if e.kind != "prompt"]
            assert kinds == ["text", "tool_use", "tool_result"][: len(kinds)]
            assert session.session_id is not None
