"""What a run left behind is read once: from its stream first, from its transcript what the stream does not have."""

import json
from pathlib import Path

from make import a_session

from supervisor.claude.gather import Gatherer
from supervisor.climb.replay import replay_stream, replay_transcript
from supervisor.model.events import StreamEvent, Text, ToolUse
from supervisor.model.session import Tokens


def said(number: int, *, tokens: int = 10) -> str:
    usage = {"input_tokens": 100, "output_tokens": tokens}
    content = [
        {"type": "text", "text": f"I do {number}."},
        {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": "true"}},
    ]
    body = {"id": f"msg_{number}", "model": "m", "role": "assistant", "usage": usage, "content": content}
    return json.dumps({"type": "assistant", "message": body}) + "\n"


def replayed(tmp_path: Path, *, stream: str, transcripts: dict[str, str], **session) -> list[StreamEvent]:
    project = tmp_path / ".claude" / "projects" / "p"
    project.mkdir(parents=True)
    for name, text in transcripts.items():
        (project / f"{name}.jsonl").write_text(text)
    (tmp_path / "stream").write_text(stream)
    events: list[StreamEvent] = []
    told = replay_stream(tmp_path / "stream", events.append)
    replay_transcript(a_session(session_id="own", **session), {"HOME": str(tmp_path)}, told, events.append)
    return events


def spoken(events: list[StreamEvent]) -> list[str]:
    return [e.text if isinstance(e, Text) else e.tool_use_id for e in events if isinstance(e, Text | ToolUse)]


def used(events: list[StreamEvent]) -> Tokens:
    gatherer = Gatherer()
    for event in events:
        gatherer.add(event)
    return gatherer.tokens_so_far


def test_what_is_in_both_is_told_once_and_what_only_the_transcript_has_comes_after(tmp_path):
    kinds_of_its_own = json.dumps({"type": "mode"}) + "\n"

    events = replayed(tmp_path, stream=said(1), transcripts={"own": kinds_of_its_own + said(1) + said(2)})

    assert spoken(events) == ["I do 1.", "toolu_1", "I do 2.", "toolu_2"]
    assert used(events) == Tokens(input=200, output=20)


def test_what_the_stream_had_only_begun_to_count_is_counted_to_its_end(tmp_path):
    events = replayed(tmp_path, stream=said(1, tokens=1), transcripts={"own": said(1, tokens=50)})

    assert used(events) == Tokens(input=100, output=50)


def test_what_a_forked_transcript_copied_is_not_its_own(tmp_path):
    transcripts = {"parent": said(1), "own": said(1) + said(2) + said(3)}

    events = replayed(tmp_path, stream=said(2), transcripts=transcripts, resumed_from="parent")

    assert spoken(events) == ["I do 2.", "toolu_2", "I do 3.", "toolu_3"]
    assert used(events) == Tokens(input=200, output=20)


def test_a_last_line_that_was_half_written_is_no_obstacle(tmp_path):
    events = replayed(tmp_path, stream="", transcripts={"own": said(1) + said(2)[:40]})

    assert spoken(events) == ["I do 1.", "toolu_1"]
