"""What is kept of each thing a run says, without the secrets in it. Pure. Called from climb.recorder."""

import datetime as dt
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

from supervisor.decide.masking import Masker
from supervisor.model.cycle import EventKind, NewEvent
from supervisor.model.events import ApiRetry, RateLimit, StreamEvent, Text, ToolResult, ToolUse, Unreadable
from supervisor.model.report import Level, Report
from supervisor.store import SessionEnd

# What comes from the stream, in its order; everything else in a record is the supervisor's own.
STREAM_KINDS = frozenset(
    {
        EventKind.TEXT,
        EventKind.TOOL_USE,
        EventKind.TOOL_RESULT,
        EventKind.API_RETRY,
        EventKind.RATE_LIMIT,
        EventKind.UNREADABLE,
    }
)
REPORT_TOOL = "StructuredOutput"
_INPUT_LIMIT = 10_000
_INPUT_DEPTH = 50
_TOO_DEEP = "(nested too deeply to be kept)"
# It becomes an argument of a command line and part of a file's name.
_USABLE_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,127}")


def entry(event: StreamEvent, *, session: int, now: dt.datetime, masker: Masker) -> NewEvent | None:
    """What is kept of one stream event: ``None`` for those that only prove the run is alive. Ids are no secrets."""
    match event:
        case Text():
            return NewEvent(
                kind=EventKind.TEXT,
                at=now,
                session_id=session,
                text=masker.text(event.text),
                data={"message_id": event.message_id, "parent_tool_use_id": event.parent_tool_use_id},
            )
        case ToolUse(name=name) if name != REPORT_TOOL:
            # Before anything is cut: half a secret would not be known for one.
            given = cast(Mapping[str, object], masker.value(event.input))
            return NewEvent(
                kind=EventKind.TOOL_USE,
                at=now,
                session_id=session,
                text=describe_input(given),
                data={
                    "tool_use_id": event.tool_use_id,
                    "name": name,
                    "input": _bounded(given),
                    "parent_tool_use_id": event.parent_tool_use_id,
                },
            )
        case ToolResult():
            return NewEvent(
                kind=EventKind.TOOL_RESULT,
                at=now,
                session_id=session,
                text=masker.text(event.text),
                data={"tool_use_id": event.tool_use_id, "is_error": event.is_error, "size": event.size},
            )
        case ApiRetry():
            return NewEvent(
                kind=EventKind.API_RETRY,
                at=now,
                session_id=session,
                level=Level.WARNING,
                text=f"The API answered {event.error_status or 'not at all'}: the CLI tries again.",
                data={"attempt": event.attempt, "status": event.error_status, "error": masker.value(event.error)},
            )
        case RateLimit():
            paid = ", going on with credits" if event.on_credits else ""
            return NewEvent(
                kind=EventKind.RATE_LIMIT,
                at=now,
                session_id=session,
                level=Level.WARNING if event.reached else Level.INFO,
                text=f"The account's usage window: {event.status}{paid}.",
                data={"status": event.status, "resets_at": event.resets_at, "type": event.kind},
            )
        case Unreadable():
            return NewEvent(
                kind=EventKind.UNREADABLE,
                at=now,
                session_id=session,
                level=Level.WARNING,
                text=masker.text(event.why),
                data={"raw": masker.text(event.raw), "size": event.size},
            )
        case _:
            return None


def describe_input(given: Mapping[str, object]) -> str:
    """A tool call in one line: the command, the file, else its whole input."""
    for key in ("command", "file_path", "pattern", "url", "path"):
        value = given.get(key)
        if isinstance(value, str):
            return value
    return _input_text(given)[:_INPUT_LIMIT]


def usable_id(said: str | None) -> str | None:
    """A session id as a CLI said it, if it can be used as one."""
    return said if said is not None and _USABLE_ID.fullmatch(said) else None


def _bounded(given: Mapping[str, object]) -> object:
    text = _input_text(given)
    return dict(given) if len(text) <= _INPUT_LIMIT and text != _TOO_DEEP else {"shortened": text[:_INPUT_LIMIT]}


def _input_text(given: Mapping[str, object]) -> str:
    """The input as JSON. What a model nests for its own pleasure must not exhaust the stack, here or in the store."""
    level: list[object] = [given]
    for _ in range(_INPUT_DEPTH):
        level = [item for value in level for item in _inside(value)]
        if not level:
            return json.dumps(dict(given), ensure_ascii=False)
    return _TOO_DEEP


def _inside(value: object) -> list[object]:
    match value:
        case dict():
            return list(value.values())
        case list():
            return value
        case _:
            return []


def doing(kept: NewEvent | None) -> str:
    """What a run is doing, in one line, by the newest entry; the call that hands in the report leaves none."""
    if kept is None:
        return "writing its report"
    line = " ".join(kept.text.split())
    match kept.kind:
        case EventKind.TOOL_USE:
            return f"{kept.data['name']}: {line}"
        case EventKind.TEXT:
            return line or "thinking"
        case _:
            return "thinking"


def ending(end: SessionEnd, masker: Masker) -> SessionEnd:
    """What is kept of how a run ended."""
    return replace(
        end,
        detail=None if end.detail is None else masker.text(end.detail),
        report=None if end.report is None else _report(end.report, masker.text),
    )


def _report(report: Report, mask: Callable[[str], str]) -> Report:
    return replace(
        report,
        summary=mask(report.summary),
        escalation_reason=mask(report.escalation_reason),
        services=tuple(replace(s, name=mask(s.name), detail=mask(s.detail)) for s in report.services),
        actions=tuple(
            replace(a, service=mask(a.service), kind=mask(a.kind), command=mask(a.command)) for a in report.actions
        ),
        events=tuple(replace(e, service=mask(e.service), message=mask(e.message)) for e in report.events),
    )
