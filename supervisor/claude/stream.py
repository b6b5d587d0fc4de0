"""Turn what a CLI prints into typed events. Pure. Called from claude.process, and from climb.recovery to catch up.

Nothing that arrives is fatal: what is no event of a known kind becomes ``Unreadable``, a field of the wrong type counts
as missing, and a line that is too long is read from its two ends only. Keys may come in any order.
"""

import json
from collections.abc import Iterator, Mapping

from supervisor.claude.fields import count, items, mapping, name, number, text, tokens, usage_by_model
from supervisor.claude.lines import LINE_LIMIT, LineCutter, Overlong
from supervisor.claude.salvage import KEPT_RESULT, salvage, storable, unreadable
from supervisor.model.events import (
    Alive,
    ApiRetry,
    CallUsage,
    Init,
    RateLimit,
    Result,
    StreamEvent,
    Text,
    ToolResult,
    ToolUse,
)
from supervisor.model.session import Tokens

# The CLI speaks in the model's place when a call fails; such a message cost nothing and carries no usage of a model.
SYNTHETIC = "<synthetic>"

# Seen in the schemas of 2.1.225 and 2.1.325; they carry nothing to record.
_ALIVE_KINDS = frozenset(
    {
        "attachment",
        "auth_status",
        "command_lifecycle",
        "conversation_reset",
        "keep_alive",
        "prompt_suggestion",
        "session_notice",
        "tombstone",
        "tool_progress",
        "tool_use_summary",
    }
)
_ALIVE = Alive()
# The last second that a date can have. What lies beyond is no time in seconds.
_LAST_SECOND = 253_402_300_799


class StreamParser:
    """The events of one stream, chunk by chunk. Remembers which API calls it has reported already."""

    def __init__(self, *, line_limit: int = LINE_LIMIT) -> None:
        self._cutter = LineCutter(limit=line_limit)
        self._reported: set[str] = set()
        self._open_calls: dict[str | None, CallUsage] = {}

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        """The events that this chunk completes, in order."""
        return [event for line in self._cutter.feed(chunk) for event in self._read(line)]

    def close(self) -> list[StreamEvent]:
        """The events of a last line without a line feed."""
        line = self._cutter.close()
        return [] if line is None else list(self._read(line))

    def _read(self, line: bytes | Overlong) -> Iterator[StreamEvent]:
        if isinstance(line, Overlong):
            yield salvage(line)
            return
        if not line.strip():
            return
        try:
            parsed = json.loads(storable(line.decode("utf-8", "replace")))
        except (ValueError, RecursionError):
            yield unreadable("a line that is not JSON", line)
            return
        event = mapping(parsed)
        if event is None:
            yield unreadable("a JSON value that is not an object", line)
            return
        found = False
        for found_event in self._events(event, line):
            found = True
            yield found_event
        if not found:
            yield _ALIVE

    def _events(self, event: Mapping[str, object], line: bytes) -> Iterator[StreamEvent]:
        match event.get("type"):
            case "stream_event":
                yield from self._partial(event)
            case "assistant":
                yield from self._assistant(event, line)
            case "user":
                yield from _tool_results(event)
            case "system":
                yield from _system(event)
            case "result":
                yield _result(event)
            case "rate_limit_event":
                yield _rate_limit(event)
            case str(kind) if kind in _ALIVE_KINDS:
                pass
            case kind:
                yield unreadable(f"an event of an unknown kind: {str(kind)[:60]}", line)

    def _partial(self, event: Mapping[str, object]) -> Iterator[StreamEvent]:
        inner = mapping(event.get("event")) or {}
        parent = name(event.get("parent_tool_use_id"))
        match inner.get("type"):
            case "message_start":
                message = mapping(inner.get("message")) or {}
                yield from self._call_started(message, parent)
            case "message_delta":
                begun = self._open_calls.get(parent)
                if begun is not None:
                    yield CallUsage(
                        message_id=begun.message_id,
                        model=begun.model,
                        tokens=tokens(inner.get("usage"), base=begun.tokens) or begun.tokens,
                        final=True,
                        main_loop=begun.main_loop,
                    )

    def _assistant(self, event: Mapping[str, object], line: bytes) -> Iterator[StreamEvent]:
        message = mapping(event.get("message")) or {}
        parent = name(event.get("parent_tool_use_id"))
        message_id, model = name(message.get("id")), name(message.get("model"))
        if message_id is not None and message_id not in self._reported:
            yield from self._call_started(message, parent)
        content = message.get("content")
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else items(content):
            said = mapping(block) or {}
            match said.get("type"):
                case "text":
                    if words := name(said.get("text")):
                        yield Text(message_id=message_id, model=model, text=words, parent_tool_use_id=parent)
                case "tool_use":
                    call_id, tool = name(said.get("id")), name(said.get("name"))
                    if call_id is None or tool is None:
                        yield unreadable("a tool call without id or name", line)
                        continue
                    yield ToolUse(
                        message_id=message_id,
                        model=model,
                        tool_use_id=call_id,
                        name=tool,
                        input=mapping(said.get("input")) or {},
                        parent_tool_use_id=parent,
                    )

    def _call_started(self, message: Mapping[str, object], parent: str | None) -> Iterator[CallUsage]:
        message_id, model = name(message.get("id")), name(message.get("model"))
        if message_id is None or model == SYNTHETIC:
            return
        begun = CallUsage(
            message_id=message_id,
            model=model,
            tokens=tokens(message.get("usage")) or Tokens(),
            final=False,
            main_loop=parent is None,
        )
        self._reported.add(message_id)
        self._open_calls[parent] = begun
        yield begun


def _system(event: Mapping[str, object]) -> Iterator[StreamEvent]:
    match event.get("subtype"):
        case "init":
            yield Init(
                session_id=name(event.get("session_id")),
                model=name(event.get("model")),
                version=name(event.get("claude_code_version")),
                tools=tuple(tool for item in items(event.get("tools")) if (tool := name(item))),
                cwd=name(event.get("cwd")),
            )
        case "api_retry":
            delay_ms = number(event.get("retry_delay_ms"))
            yield ApiRetry(
                attempt=count(event.get("attempt")),
                max_retries=count(event.get("max_retries")),
                error_status=count(event.get("error_status")),
                delay_seconds=None if delay_ms is None else delay_ms / 1000,
                error=name(event.get("error")),
            )


def _tool_results(event: Mapping[str, object]) -> Iterator[ToolResult]:
    message = mapping(event.get("message")) or {}
    for item in items(message.get("content")):
        block = mapping(item) or {}
        call_id = name(block.get("tool_use_id"))
        if block.get("type") != "tool_result" or call_id is None:
            continue
        kept, size = _result_text(block.get("content"))
        yield ToolResult(
            tool_use_id=call_id,
            text=kept,
            size=size,
            is_error=block.get("is_error") is True,
            parent_tool_use_id=name(event.get("parent_tool_use_id")),
        )


def _result_text(content: object) -> tuple[str, int]:
    """The beginning of a tool's answer and the length of all of it."""
    if isinstance(content, str):
        return content[:KEPT_RESULT], len(content)
    parts: list[str] = []
    size = room = 0
    for item in items(content):
        block = mapping(item) or {}
        part = text(block.get("text"))
        if part is None:
            part = f"[{name(block.get('type')) or 'something unknown'}]"
        room = KEPT_RESULT - size
        size += len(part)
        if room > 0:
            parts.append(part[:room])
    return "\n".join(parts)[:KEPT_RESULT], size


def _rate_limit(event: Mapping[str, object]) -> RateLimit:
    info = mapping(event.get("rate_limit_info")) or {}
    resets_at = number(info.get("resetsAt"))
    return RateLimit(
        status=name(info.get("status")),
        resets_at=None if resets_at is None or resets_at > _LAST_SECOND else int(resets_at),
        kind=name(info.get("rateLimitType")),
        # The window is used up, and the account pays for what goes beyond it: the calls go through.
        on_credits=info.get("isUsingOverage") is True,
    )


def _result(event: Mapping[str, object]) -> Result:
    return Result(
        session_id=name(event.get("session_id")),
        subtype=name(event.get("subtype")),
        is_error=event.get("is_error") is True,
        text=text(event.get("result")),
        structured_output=mapping(event.get("structured_output")),
        stop_reason=name(event.get("stop_reason")),
        terminal_reason=name(event.get("terminal_reason")),
        api_error_status=count(event.get("api_error_status")),
        num_turns=count(event.get("num_turns")),
        total_cost_usd=number(event.get("total_cost_usd")),
        usage=tokens(event.get("usage")),
        model_usage=usage_by_model(event.get("modelUsage")) or {},
        own_model_usage=usage_by_model(event.get("model_usage_since_last_result")),
        permission_denials=len(items(event.get("permission_denials"))),
        errors=tuple(error for item in items(event.get("errors")) if (error := name(item))),
        duration_ms=count(event.get("duration_ms")),
        deferred_call=name((mapping(event.get("deferred_tool_use")) or {}).get("id")),
    )
