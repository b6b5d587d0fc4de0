"""Bring the records of a run up to date whose supervisor died. Reads files. Called from climb.recovery.

First the raw stream as far as it was kept. Then the CLI's own transcript: a CLI outlives its supervisor, and what it
said until somebody ended it was read by nobody, but has been paid for.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from supervisor.claude.stream import StreamParser
from supervisor.claude.transcript import transcripts
from supervisor.model.events import CallUsage, StreamEvent, Text, ToolResult, ToolUse
from supervisor.model.session import Session

_CHUNK = 1 << 20
# What a transcript and a stream tell alike.
_TOLD = Text | ToolUse | ToolResult | CallUsage

OnEvent = Callable[[StreamEvent], None]
Told = frozenset[tuple[str, ...]]


def replay_stream(stream_file: Path, on_event: OnEvent) -> Told:
    """Hand on what is in the stream, and say what it was."""
    told: set[tuple[str, ...]] = set()
    for event in _events(stream_file):
        on_event(event)
        # How much a call used is told again and again, and the last word on it counts.
        if isinstance(event, Text | ToolUse | ToolResult):
            told.add(_key(event))
    return frozenset(told)


def replay_transcript(session: Session, env: Mapping[str, str], told: Told, on_event: OnEvent) -> None:
    """Hand on what only the transcript of the session tells."""
    if session.session_id is None:
        return
    if session.resumed_from is not None:
        # A forked transcript begins with a copy of the one that it continues, which is another record's.
        told |= {_key(event) for event in _transcript(env, session.resumed_from)}
    for event in _transcript(env, session.session_id):
        if _key(event) not in told:
            on_event(event)


def _key(event: _TOLD) -> tuple[str, ...]:
    match event:
        case Text():
            return ("text", event.message_id or "", event.text)
        case ToolUse():
            return ("tool_use", event.tool_use_id)
        case ToolResult():
            return ("tool_result", event.tool_use_id)
        case CallUsage():
            return ("usage", event.message_id)


def _transcript(env: Mapping[str, str], session_id: str) -> Iterator[_TOLD]:
    for path in transcripts(env, session_id):
        for event in _events(path):
            if isinstance(event, _TOLD):
                yield event


def _events(path: Path) -> Iterator[StreamEvent]:
    """Read a file as far as it was written; the last line may be half."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    parser = StreamParser()
    with file:
        while chunk := file.read(_CHUNK):
            yield from parser.feed(chunk)
        yield from parser.close()
