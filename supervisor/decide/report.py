"""Read the report an agent ends with. Pure. Called from climb.run and by the store when it reads one back.

The report is data from a model: anything that does not fit the schema makes the whole report invalid, because a
half-understood report must not pass for "healthy".
"""

import json
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeVar

from supervisor.model.report import (
    Action,
    Health,
    InvalidReport,
    Level,
    Report,
    ReportedEvent,
    ServiceState,
)

_TEXT = {"type": "string"}

SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "summary": _TEXT,
        "services": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": _TEXT, "status": {"enum": [h.value for h in Health]}, "detail": _TEXT},
                "required": ["name", "status"],
            },
        },
        "actions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"service": _TEXT, "kind": _TEXT, "command": _TEXT, "succeeded": {"type": "boolean"}},
                "required": ["service", "kind", "command", "succeeded"],
            },
        },
        "events": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"level": {"enum": [v.value for v in Level]}, "service": _TEXT, "message": _TEXT},
                "required": ["level", "message"],
            },
        },
        "escalation": {
            "type": "object",
            "properties": {"needed": {"type": "boolean"}, "reason": _TEXT},
            "required": ["needed"],
        },
    },
    "required": ["summary", "escalation"],
}

_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)

_T = TypeVar("_T")
_E = TypeVar("_E", bound=StrEnum)


def find_report(structured: Mapping[str, object] | None, final_text: str | None) -> Report | InvalidReport:
    """The report of a run: its structured output, else the last fenced JSON block of its final text."""
    if structured is not None:
        return read_report(structured)
    if not final_text:
        return InvalidReport(problems=("the run ended without any final text",))
    blocks = _FENCE.findall(final_text)
    if not blocks:
        return InvalidReport(problems=("the final text has no fenced JSON block",))
    try:
        document = json.loads(blocks[-1])
    except (ValueError, RecursionError) as error:
        return InvalidReport(problems=(f"the last fenced block is not JSON: {error}",))
    if not isinstance(document, dict):
        return InvalidReport(problems=("the last fenced block is not a JSON object",))
    return read_report(document)


def read_report(document: Mapping[str, object]) -> Report | InvalidReport:
    """Check a report document against the schema; say everything that is wrong with it."""
    reader = _Reader()
    summary = reader.text(document, "summary", "summary", required=True)
    escalation = document.get("escalation")
    needed, reason = False, ""
    if isinstance(escalation, Mapping):
        needed = reader.flag(escalation, "needed", "escalation.needed")
        reason = reader.text(escalation, "reason", "escalation.reason", required=needed)
    else:
        reader.problems.append("escalation is missing or not an object")
    services = reader.items(document, "services", reader.service)
    actions = reader.items(document, "actions", reader.action)
    events = reader.items(document, "events", reader.event)
    if reader.problems:
        return InvalidReport(problems=tuple(reader.problems))
    return Report(
        summary=summary,
        escalation_needed=needed,
        escalation_reason=reason,
        services=services,
        actions=actions,
        events=events,
    )


class _Reader:
    """Takes values out of a document and remembers what did not fit."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def text(self, source: Mapping[str, object], key: str, place: str, *, required: bool = False) -> str:
        value = source.get(key)
        if value is None and not required:
            return ""
        if not isinstance(value, str) or (required and not value.strip()):
            self.problems.append(f"{place} is missing or not a text")
            return ""
        return value

    def flag(self, source: Mapping[str, object], key: str, place: str) -> bool:
        value = source.get(key)
        if not isinstance(value, bool):
            self.problems.append(f"{place} is missing or neither true nor false")
            return False
        return value

    def choice(self, source: Mapping[str, object], key: str, place: str, among: type[_E]) -> _E:
        value = source.get(key)
        for member in among:
            if value == member.value:
                return member
        self.problems.append(f"{place} must be one of {', '.join(among)}")
        return next(iter(among))

    def items(
        self, source: Mapping[str, object], key: str, read: Callable[[Mapping[str, object], str], _T]
    ) -> tuple[_T, ...]:
        value = source.get(key)
        if value is None:
            return ()
        if not isinstance(value, list | tuple):
            self.problems.append(f"{key} is not a list")
            return ()
        found: list[_T] = []
        for index, item in enumerate(value):
            place = f"{key}[{index}]"
            if isinstance(item, Mapping):
                found.append(read(item, place))
            else:
                self.problems.append(f"{place} is not an object")
        return tuple(found)

    def service(self, item: Mapping[str, object], place: str) -> ServiceState:
        return ServiceState(
            name=self.text(item, "name", f"{place}.name", required=True),
            status=self.choice(item, "status", f"{place}.status", Health),
            detail=self.text(item, "detail", f"{place}.detail"),
        )

    def action(self, item: Mapping[str, object], place: str) -> Action:
        return Action(
            service=self.text(item, "service", f"{place}.service", required=True),
            kind=self.text(item, "kind", f"{place}.kind", required=True),
            command=self.text(item, "command", f"{place}.command"),
            succeeded=self.flag(item, "succeeded", f"{place}.succeeded"),
        )

    def event(self, item: Mapping[str, object], place: str) -> ReportedEvent:
        return ReportedEvent(
            level=self.choice(item, "level", f"{place}.level", Level),
            message=self.text(item, "message", f"{place}.message", required=True),
            service=self.text(item, "service", f"{place}.service"),
        )
