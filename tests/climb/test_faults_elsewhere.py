"""The world changes while a cycle is cut off: the clock, the host, the directory, the transcript. The work goes on."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from climber import bash, newest_user_text, report, texts
from cycles import Place, scripted_api
from killing import MOVES, discrepancies, kill_at_commit, new_place, settle

from supervisor.climb.owner import LEASE
from supervisor.rehearsal.scenario import Scenario, Script

# The ladder's clock is ahead of the machine's by as many hours as a file says.
SHIFTED_CLOCK = """
import datetime as dt, pathlib
from supervisor.climb.ladder import Ladder, utc_now
Ladder.__init__.__kwdefaults__["clock"] = lambda: utc_now() + dt.timedelta(hours=int(pathlib.Path("ahead").read_text()))
"""
BEFORE_TIER_1_ENDS = 4


def set_clock(place: Place, hours: int) -> None:
    (place.root / "ahead").write_text(str(hours))


def change(place: Place, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(place.state / "opsladder.db")) as database, database:
        assert database.execute(statement, values).rowcount > 0


@pytest.fixture
def cut_off(tmp_path: Path, standin: Path) -> Place:
    """A place whose supervisor was killed when tier 1 had done its work and nobody had recorded that."""
    place = new_place(tmp_path / "place", standin)
    assert kill_at_commit(place, BEFORE_TIER_1_ENDS, before=True, of=MOVES)
    return place


@pytest.mark.parametrize("hours", [48, -48], ids=["forward", "back"])
def test_a_clock_that_is_set_in_mid_run_neither_ends_the_run_nor_the_cycle(tmp_path, standin, hours):
    place = Place(tmp_path, standin, ways="busy")
    set_clock(place, 0)
    started = place.start("--json", prelude=SHIFTED_CLOCK)
    place.until_reached()

    set_clock(place, hours)
    place.go_on()
    done = started.done()

    assert done.exit_code == 0, done.err
    [session] = done.document["sessions"]
    assert session["status"] == "completed"
    again = place.cycle("--json", prelude=SHIFTED_CLOCK)
    assert again.exit_code == 0, again.err
    place.assert_nothing_left()


@pytest.mark.parametrize(
    ("hours", "continuity", "reason"),
    [(48, "handoff", "session_expired"), (-48, "resume", "next_tier")],
    ids=["forward", "back"],
)
def test_a_clock_that_was_set_between_the_cut_and_the_next_cycle_costs_at_most_the_resume(
    cut_off, hours, continuity, reason
):
    set_clock(cut_off, hours)

    done = cut_off.cycle("--json", prelude=SHIFTED_CLOCK)

    assert done.exit_code == 0, done.err
    _, second = done.document["sessions"]
    assert (second["continuity"], second["reason"]) == (continuity, reason)
    assert discrepancies(cut_off) == []


def test_the_cycle_of_another_host_is_left_alone_until_it_has_been_silent_for_its_lease(cut_off):
    other_host = "UPDATE cycles SET owner_host = ?, heartbeat_at = strftime('%Y-%m-%d %H:%M:%f', 'now', ?)"
    change(cut_off, other_host, "elsewhere 1234", "-10 seconds")

    skipped = cut_off.cycle("--json")

    assert (skipped.exit_code, skipped.document["cycle"]["reason"]) == (5, "already_running")
    assert [c.cycle.status for c in cut_off.chains()] == ["running", "skipped"]

    change(
        cut_off, other_host + " WHERE status = 'running'", "elsewhere 1234", f"-{LEASE.total_seconds() + 10} seconds"
    )
    done = cut_off.cycle("--json")

    assert done.exit_code == 0, done.err
    assert done.document["cycle"]["id"] == 1
    assert [s["status"] for s in done.document["sessions"]] == ["completed", "completed"]


def test_a_state_directory_that_was_moved_to_another_host_goes_on_by_handoff(cut_off):
    change(cut_off, "UPDATE sessions SET runtime_id = 'elsewhere'")

    settle(cut_off)

    [chain] = cut_off.chains()
    assert [(s.continuity, s.reason) for s in chain.sessions[1:]] == [("handoff", "runtime_changed")]
    assert discrepancies(cut_off) == []


def test_a_working_directory_that_was_moved_is_gone_on_with_by_handoff(cut_off):
    moved = cut_off.work.rename(cut_off.root / "moved")
    cut_off.work = moved
    cut_off.env["OPSLADDER_CLAUDE__WORK_DIR"] = str(moved)

    settle(cut_off)

    [chain] = cut_off.chains()
    assert [(s.continuity, s.reason) for s in chain.sessions[1:]] == [("handoff", "work_dir_changed")]
    assert discrepancies(cut_off) == []


def in_the_last_answer(transcript: bytes) -> bytes:
    """All but the second half of the last line in which the model speaks, and what comes after."""
    lines = transcript.splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if b'"role":"assistant"' in line)
    return b"".join(lines[:last]) + lines[last][: len(lines[last]) // 2]


def in_the_first_answer(transcript: bytes) -> bytes:
    lines = transcript.splitlines(keepends=True)
    first = min(n for n, line in enumerate(lines) if b'"role":"assistant"' in line)
    return b"".join(lines[:first]) + lines[first][:20]


@pytest.mark.parametrize(
    ("truncated", "continuity"),
    [(in_the_last_answer, "resume"), (in_the_first_answer, "handoff")],
    ids=["last_answer", "first_answer"],
)
def test_a_transcript_that_ends_in_the_middle_of_a_line_does_not_end_the_work(tmp_path, cli, truncated, continuity):
    waits = tmp_path / "work" / "wait"
    waits.parent.mkdir()
    waits.write_text("#!/bin/sh\ntouch reached\nsleep 600\n")
    waits.chmod(0o755)
    turns = bash("echo finding-from-tier-one"), bash(str(waits), text="I wait."), report(False)
    scenario = Scenario(
        title="cut", scripts=(Script(tier=1, turns=turns), Script(tier=1, attempt=2, turns=(report(False),)))
    )
    tier = f'[[tiers]]\nname = "one"\nmodel = "haiku"\nprompt = "tier1.md"\nallow = ["{waits}"]\n'
    with scripted_api(scenario, fallback=(1,)) as api:
        place = Place(tmp_path, cli, base_url=api.base_url, config=tier)
        started = place.start("--json")
        place.until_reached()
        started.process.terminate()
        assert started.done().exit_code == 4
        [file] = place.home.glob(".claude/projects/*/*.jsonl")
        file.write_bytes(truncated(file.read_bytes()))

        done = place.cycle("--json")

        assert done.exit_code == 0, done.err
        [chain] = place.chains()
        after = chain.sessions[-1]
        assert (chain.cycle.status, after.continuity) == ("healthy", continuity)
        asked = [call for call in api.calls if call.session_id == after.session_id and not call.side]
        assert "finding-from-tier-one" in texts(asked[0].body)
        assert str(waits) in newest_user_text(asked[0].body)
        place.assert_nothing_left()
