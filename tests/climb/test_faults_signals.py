"""A cycle that is interrupted: recorded as such, nothing left running, and the next one goes on with it."""

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from climber import bash, newest_user_text, report, texts
from cycles import Place, scripted_api, until

from supervisor.model.cycle import Chain
from supervisor.model.session import Tokens
from supervisor.rehearsal.api import ScriptedApi
from supervisor.rehearsal.scenario import Scenario, Script


def busy(root: Path) -> Scenario:
    """A tier that looks, and then waits for a program of the place's own, which leaves a process in another session.

    The session that goes on with it has only a report to give.
    """
    program = root / "work" / "wait"
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/bin/sh\nsetsid sleep 600 &\necho once >> waited\ntouch reached\nsleep 600\n")
    program.chmod(0o755)
    turns = bash("echo finding-from-tier-one"), bash(str(program), text="I wait."), report(False)
    goes_on = Script(tier=1, attempt=2, turns=(report(False),))
    return Scenario(title="busy", scripts=(Script(tier=1, turns=turns), goes_on))


def times_waited(place: Place) -> int:
    return (place.work / "waited").read_text().count("once")


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


def assert_gone_on(chain: Chain, api: ScriptedApi) -> None:
    """The model went on where it was: it knows what it had found, and that nobody knows how its last call ended."""
    cut_off, after = chain.sessions
    assert chain.cycle.status == "healthy"
    assert (after.status, after.continuity, after.reason) == ("completed", "resume", "interrupted")
    assert (after.parent_session_id, after.resumed_from, after.resumes) == (cut_off.id, cut_off.session_id, 1)
    asked = [call for call in api.calls if call.session_id == after.session_id and not call.side]
    assert "finding-from-tier-one" in texts(asked[0].body)
    told = newest_user_text(asked[0].body)
    assert "nobody knows how it ended" in told
    assert "/work/wait" in told
    assert "finding-from-tier-one" not in told
    for session in chain.sessions:
        assert session.tokens == sum(api.account(session.session_id).values(), start=Tokens())


@pytest.mark.parametrize("ask", [interrupt_terminal, terminate], ids=["ctrl_c", "sigterm"])
def test_an_interrupted_tier_is_recorded_ended_and_gone_on_with_by_the_next_cycle(tmp_path, cli, ask):
    with scripted_api(busy(tmp_path), fallback=(1,)) as api:
        place = Place(tmp_path, cli, base_url=api.base_url, config=may_wait(tmp_path))
        started = place.start("--json")
        place.until_reached()
        until(lambda: [p for p in place.processes() if "sleep 600" in p], what="its tool waits")

        ask(started.pid)
        done = started.done()

        assert done.exit_code == 4, done.err
        cycle, [session] = done.document["cycle"], done.document["sessions"]
        assert (cycle["status"], cycle["reason"]) == ("paused", "interrupted")
        assert (session["status"], session["failure"]) == ("interrupted", "interrupted")
        assert session["cost_usd"] > 0
        place.assert_nothing_left()
        [chain] = place.chains()
        assert [notice.level for notice in place.notices(chain)] == ["critical"]

        again = place.cycle("--json")

        assert again.exit_code == 0, again.err
        [chain] = place.chains()
        assert_gone_on(chain, api)
        assert times_waited(place) == 1
        place.assert_nothing_left()


@pytest.mark.parametrize("ask", [interrupt_process, hang_up], ids=["sigint", "sighup"])
def test_other_signals_interrupt_just_the_same(tmp_path, standin, ask):
    place = Place(tmp_path, standin, ways="busy")
    started = place.start("--json")
    place.until_reached()

    ask(started.pid)
    done = started.done()

    assert done.exit_code == 4, done.err
    cycle, [session] = done.document["cycle"], done.document["sessions"]
    assert (cycle["status"], cycle["reason"]) == ("paused", "interrupted")
    assert (session["status"], session["cost_basis"]) == ("interrupted", "estimated")
    place.assert_nothing_left()


def test_a_supervisor_that_is_told_to_end_ends_a_cli_that_heeds_no_signal_within_its_limit(tmp_path, standin):
    place = Place(tmp_path, standin, ways="deaf")
    started = place.start("--json")
    place.until_reached()

    terminate(started.pid)
    done = started.done()

    assert done.exit_code == 4, done.err
    place.assert_nothing_left()
    place.go_on()
    again = place.cycle("--json")
    assert again.exit_code == 0, again.err
    assert again.document["cycle"]["id"] == done.document["cycle"]["id"]
    assert [s["status"] for s in again.document["sessions"]] == ["interrupted", "completed"]


def test_a_cli_killed_from_outside_is_gone_on_with_in_the_same_cycle(tmp_path, cli):
    with scripted_api(busy(tmp_path), fallback=(1,)) as api:
        place = Place(tmp_path, cli, base_url=api.base_url, config=may_wait(tmp_path))
        started = place.start("--json")
        place.until_reached()
        [[session]] = [chain.sessions for chain in place.chains()]
        # The CLI writes its transcript a little later than its stream; what it has not written dies with it.
        until(lambda: "/work/wait" in transcripts(place), what="the transcript is written")

        psutil.Process(session.pid).kill()
        done = started.done()

        assert done.exit_code == 0, done.err
        document, _ = done.document["sessions"]
        assert (document["status"], document["failure"]) == ("interrupted", "killed")
        assert (document["cost_basis"], document["session_id"]) == ("estimated", session.session_id)
        [chain] = place.chains()
        assert_gone_on(chain, api)
        assert times_waited(place) == 1
        place.assert_nothing_left()


def test_a_cli_interrupted_from_outside_is_gone_on_with_too_and_has_told_the_model_itself(tmp_path, cli):
    with scripted_api(busy(tmp_path), fallback=(1,)) as api:
        place = Place(tmp_path, cli, base_url=api.base_url, config=may_wait(tmp_path))
        started = place.start("--json")
        place.until_reached()
        [[session]] = [chain.sessions for chain in place.chains()]

        interrupt_process(session.pid)
        done = started.done()

        assert done.exit_code == 0, done.err
        before, after = done.document["sessions"]
        assert (before["status"], before["failure"], before["cost_basis"]) == ("interrupted", "killed", "reported")
        assert (after["status"], after["continuity"], after["reason"]) == ("completed", "resume", "interrupted")
        asked = [call for call in api.calls if call.session_id == after["session_id"] and not call.side]
        assert "interrupted by user" in texts(asked[-1].body)
        assert times_waited(place) == 1
        place.assert_nothing_left()


def test_a_cli_that_is_killed_again_and_again_is_given_up_after_max_resumes(tmp_path, standin):
    place = Place(tmp_path, standin, ways="killed", config="[continuity]\nmax_resumes = 2\n")

    done = place.cycle("--json")

    assert done.exit_code == 1, done.err
    assert (done.document["cycle"]["status"], done.document["cycle"]["reason"]) == ("failed", "killed")
    assert [s["failure"] for s in done.document["sessions"]] == ["killed"] * 3
    [chain] = place.chains()
    assert [s.resumes for s in chain.sessions] == [0, 1, 2]
    assert place.cycle().exit_code == 1
    assert len(place.chains()) == 2
    place.assert_nothing_left()


def test_a_supervisor_killed_in_mid_tier_is_followed_by_one_that_goes_on_with_its_cycle(tmp_path, cli):
    with scripted_api(busy(tmp_path), fallback=(1,)) as api:
        place = Place(tmp_path, cli, base_url=api.base_url, config=may_wait(tmp_path))
        started = place.start()
        place.until_reached()
        until(lambda: place.chains()[0].sessions[0].messages > 1, what="messages are recorded")

        # Nobody has asked for its exit code yet: it stays a zombie, as under an init that never asks.
        started.process.kill()
        until(lambda: psutil.Process(started.pid).status() == psutil.STATUS_ZOMBIE, what="it is dead")
        until(lambda: [p for p in place.processes() if "sleep 600" in p], what="its tool waits")
        again = place.cycle("--json")
        started.done()

        assert again.exit_code == 0, again.err
        [chain] = place.chains()
        [notice] = place.notices(chain)
        assert (notice.level, f"pid {started.pid}" in notice.text) == ("critical", True)
        lost = chain.sessions[0]
        assert (lost.status, lost.failure, lost.cost_basis) == ("interrupted", "interrupted", "estimated")
        kinds = [e.kind for e in place.events(lost)]
        # The last call was ended with its CLI, which may have noted that in its transcript.
        assert kinds[:6] == ["prompt", "text", "tool_use", "tool_result", "text", "tool_use"]
        assert kinds[6:] in ([], ["tool_result"])
        assert_gone_on(chain, api)
        assert times_waited(place) == 1
        place.assert_nothing_left()


def test_tools_that_outlive_their_cli_are_found_by_their_mark_whatever_the_session_is_called(tmp_path, standin):
    place = Place(tmp_path, standin, ways="busy", lacks="--session-id --fork-session")
    started = place.start()
    place.until_reached()
    [[session]] = [chain.sessions for chain in place.chains()]
    started.process.kill()
    psutil.Process(session.pid).kill()
    until(lambda: len([p for p in place.processes() if "sleep 600" in p]) == 2, what="both its tools are left")
    place.go_on()

    assert place.cycle().exit_code == 0

    lost, _ = place.chains()[0].sessions
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

    lost, after = place.chains()[0].sessions
    assert after.status == "completed"
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
    assert (lost.cycle.status, lost.cycle.reason) == ("paused", "interrupted")
    assert place.words_said_once(lost.sessions[0]) == lost.sessions[0].messages - 1
    assert len(place.notices(lost)) == 1
    place.assert_nothing_left()


def test_of_two_commands_for_the_schedule_of_a_dead_supervisor_one_goes_on_with_its_cycle(tmp_path, standin):
    place = Place(tmp_path, standin, ways="busy")
    started = place.start()
    place.until_reached()
    started.process.kill()
    started.done()
    (place.work / "reached").unlink()

    pair = [place.start("--json"), place.start("--json")]
    left = until(lambda: [s for s in pair if s.process.poll() is not None], what="one of them has left")[0]
    [goes_on] = [s for s in pair if s is not left]
    place.until_reached()
    place.go_on()

    assert left.done().exit_code == 5
    done = goes_on.done()
    assert done.exit_code == 0, done.err
    [lost] = [c for c in place.chains() if c.cycle.status != "skipped"]
    assert [s.status for s in lost.sessions] == ["interrupted", "completed"]
    assert len((place.work / "argv.jsonl").read_text().splitlines()) == 2
    place.assert_nothing_left()


def suspended_without_a_lock(place: Place, supervisor: psutil.Process) -> bool:
    """Suspend a supervisor; not while it writes, which would keep everyone else from writing too."""
    supervisor.suspend()
    with closing(sqlite3.connect(place.state / "opsladder.db", timeout=0, isolation_level=None)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            supervisor.resume()
            return False
    return True


def test_a_living_supervisor_is_left_alone(tmp_path, standin):
    place = Place(tmp_path, standin, ways="busy", schedules=("one", "two"))
    started = place.start("one")
    place.until_reached()
    place.go_on()
    stopped = psutil.Process(started.pid)
    until(lambda: suspended_without_a_lock(place, stopped), what="it is suspended between two of its writes")
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
        until(lambda: not place.processes(), what="nothing is left")
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
