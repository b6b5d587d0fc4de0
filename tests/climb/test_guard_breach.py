"""A CLI that does not heed the guard: ended at once, never believed, and a person is told."""

import json

import pytest
from cycles import Place


@pytest.mark.parametrize("way", ["bypasses", "bypasses_and_leaves", "heeds_nothing"])
def test_a_run_that_acts_without_leave_is_ended_after_its_first_call(tmp_path, standin, way):
    place = Place(tmp_path, standin, ways=way)
    done = place.cycle("--json")

    assert done.exit_code == 1
    [session] = done.document["sessions"]
    assert (session["status"], session["failure"]) == ("failed", "guard_bypassed")
    cycle = done.document["cycle"]
    assert (cycle["status"], cycle["reason"]) == ("failed", "guard_bypassed")
    assert not (place.work / "second").exists()
    [chain] = place.chains()
    told = [notice for notice in place.notices(chain) if notice.level == "critical"]
    assert any("guard was bypassed" in notice.text for notice in told)
    place.assert_nothing_left()


def test_a_call_that_was_let_through_is_no_breach(tmp_path, standin):
    done = Place(tmp_path, standin, ways="healthy").cycle("--json")

    assert done.exit_code == 0
    [session] = done.document["sessions"]
    assert session["tool_calls"] == {"allowed": 1, "denied": 0, "deferred": 0}


def test_a_cli_that_takes_no_settings_is_not_started_at_all(tmp_path, standin):
    place = Place(tmp_path, standin, ways="healthy", lacks="--settings")
    done = place.cycle("--json")

    assert done.exit_code == 1
    [session] = done.document["sessions"]
    assert session["failure"] == "spawn_failed"
    assert "--settings" in session["detail"]
    assert not (place.work / "argv.jsonl").exists()


def test_no_tool_is_allowed_beforehand_and_no_other_settings_count(tmp_path, standin):
    place = Place(tmp_path, standin, ways="healthy")
    place.cycle()
    [line] = map(json.loads, (place.work / "argv.jsonl").read_text().splitlines())

    assert "--allowedTools" not in line
    assert line[line.index("--setting-sources") + 1] == ""
    hooks = json.loads(line[line.index("--settings") + 1])["hooks"]
    assert set(hooks) == {"PreToolUse", "PostToolUse", "PostToolUseFailure"}
