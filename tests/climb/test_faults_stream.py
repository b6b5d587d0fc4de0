"""A CLI that says odd things, too much or too little: each has a name, a sentence and an exit code."""

import json

import pytest
from cycles import Place
from standin_cli import OTHER_ID

from supervisor.model.session import CostBasis, Session, Tokens

MINTS_ITS_OWN = "--session-id --fork-session"

# way: exit code, cycle status and reason, session status and failure, a part of the sentence
FAULTS = {
    "no_line_feed": (0, "healthy", None, "completed", None, "web is healthy"),
    "only_garbage": (1, "failed", "not_claude", "failed", "not_claude", "Check claude.bin"),
    "no_result": (1, "failed", "no_result", "failed", "no_result", "out of cheese"),
    "no_report": (3, "unresolved", "no_report", "completed", None, "no fenced JSON block"),
    "bad_report": (3, "unresolved", "no_report", "completed", None, "services[0].status must be one of"),
}
HEALTHY = (0, "healthy", None, "completed", None, "web is healthy")


def answered(place: Place, exit_code, status, reason, ended, failure, sentence) -> Session:
    """Run a cycle, check its answer and that nothing is left, and return its record."""
    done = place.cycle("--json")
    assert done.exit_code == exit_code, done.err
    cycle, [session] = done.document["cycle"], done.document["sessions"]
    assert (cycle["status"], cycle["reason"]) == (status, reason)
    assert (session["status"], session["failure"]) == (ended, failure)
    assert sentence in cycle["detail"]
    assert session["session_id"] is not None
    assert "Traceback" not in done.err
    place.assert_nothing_left()
    [[record]] = [chain.sessions for chain in place.chains()]
    return record


@pytest.mark.parametrize(("way", "answer"), FAULTS.items(), ids=FAULTS)
def test_every_odd_stream_has_a_clear_answer(tmp_path, standin, way, answer):
    answered(Place(tmp_path, standin, ways=way), *answer)


def test_what_cannot_be_read_is_kept_raw_and_counted(tmp_path, standin):
    place = Place(tmp_path, standin, ways="garbage")

    session = answered(place, *HEALTHY)

    assert session.unknown_lines == 4
    raw = [e.data["raw"] for e in place.events(session) if e.kind == "unreadable"]
    assert raw == ["not json", "[1, 2]", "\ufffd\ufffd\ufffd", '{"type": "nonsense"}']


def test_a_line_of_100_mb_is_kept_as_the_beginning_of_a_tool_result(tmp_path, standin):
    place = Place(tmp_path, standin, ways="huge_line")

    session = answered(place, *HEALTHY)

    [huge] = [e for e in place.events(session) if e.data.get("tool_use_id") == "toolu_big"]
    assert huge.data["size"] > 100 * 1024 * 1024
    assert len(huge.text) < 100_000


def test_a_call_nested_too_deeply_is_recorded_without_its_depths(tmp_path, standin):
    place = Place(tmp_path, standin, ways="deep")

    session = answered(place, *HEALTHY)

    calls = [e for e in place.events(session) if e.kind == "tool_use"]
    assert [e.data["tool_use_id"] for e in calls] == [f"toolu_{n}" for n in range(1, 6)]


def test_a_killed_run_keeps_its_session_its_messages_and_an_estimate_of_its_cost(tmp_path, standin):
    place = Place(tmp_path, standin, ways="killed", config="[continuity]\nmax_resumes = 0\n")

    session = answered(place, 1, "failed", "killed", "interrupted", "killed", "killed by signal 9")

    assert (session.cost_basis, session.tokens) == (CostBasis.ESTIMATED, Tokens(input=1000, output=10))
    assert session.cost_usd
    assert session.exit_code == 137
    assert [e.kind for e in place.events(session)] == ["prompt", "text", "tool_use", "tool_result"]


def test_without_any_session_id_the_next_tier_is_handed_its_context(tmp_path, standin):
    place = Place(tmp_path, standin, ways="nameless healthy", lacks=MINTS_ITS_OWN)

    done = place.cycle("--json")

    assert done.exit_code == 0, done.err
    one, two = done.document["sessions"]
    assert one["session_id"] is None
    assert (two["continuity"], two["reason"], two["parent_session_id"]) == ("handoff", "no_session_id", one["id"])
    place.assert_nothing_left()


@pytest.mark.parametrize("lacks", ["", MINTS_ITS_OWN], ids=["asked_for_another", "asked_for_none"])
def test_the_session_id_that_the_stream_reports_is_the_one_that_is_resumed(tmp_path, standin, lacks):
    place = Place(tmp_path, standin, ways="another_id healthy", lacks=lacks)
    # The id has a transcript, so that nothing else stands against resuming it.
    project = place.home / ".claude" / "projects" / "p"
    project.mkdir(parents=True)
    (project / f"{OTHER_ID}.jsonl").write_text('{"message": {"role": "assistant"}}\n')

    one, two = place.cycle("--json").document["sessions"]

    assert one["session_id"] == OTHER_ID
    assert (two["continuity"], two["resumed_from"]) == ("resume", OTHER_ID)
    _, second = [json.loads(line) for line in (place.work / "argv.jsonl").read_text().splitlines()]
    assert second[second.index("--resume") + 1] == OTHER_ID


@pytest.mark.parametrize("lacks", ["", MINTS_ITS_OWN], ids=["asked_for_another", "asked_for_none"])
def test_a_session_id_that_is_none_never_becomes_an_argument(tmp_path, standin, lacks):
    place = Place(tmp_path, standin, ways="hostile_id healthy", lacks=lacks)

    done = place.cycle("--json", "--fresh-session" if not lacks else "--json")

    assert done.exit_code == 0, done.err
    one, two = done.document["sessions"]
    assert (one["session_id"] is None) == bool(lacks)
    assert two["continuity"] == "handoff"
    assert "--dangerously-skip-permissions" not in (place.work / "argv.jsonl").read_text()


def test_a_run_of_thousands_of_messages_is_recorded_whole(tmp_path, standin):
    place = Place(tmp_path, standin, ways="babbles")

    session = answered(place, *HEALTHY)

    assert session.messages == 4999
    assert [e.text for e in place.events(session) if e.kind == "text"][1:] == [f"word {n}" for n in range(2, 5000)]
