"""A message of the model as the Messages API writes it: one JSON document, or server-sent events. No I/O.

Used by ``rehearsal.api``.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from supervisor.model.session import Tokens

_ESTIMATED_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBlock:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUseBlock:
    id: str
    name: str
    input: Mapping[str, object]


Block = TextBlock | ToolUseBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One complete answer."""

    id: str
    model: str
    blocks: tuple[Block, ...]
    tokens: Tokens

    @property
    def stop_reason(self) -> str:
        return "tool_use" if any(isinstance(block, ToolUseBlock) for block in self.blocks) else "end_turn"


def estimated_tokens(*, request_bytes: int, blocks: tuple[Block, ...]) -> Tokens:
    """A plausible price for an answer whose scenario names none."""
    written = sum(len(json.dumps(_whole_block(block))) for block in blocks)
    return Tokens(
        input=max(1, request_bytes // _ESTIMATED_CHARACTERS_PER_TOKEN),
        output=max(1, written // _ESTIMATED_CHARACTERS_PER_TOKEN),
    )


def message_document(message: Message) -> bytes:
    """The answer to a request that does not stream."""
    head = _head(message, message.tokens)
    content = [_whole_block(block) for block in message.blocks]
    return json.dumps({**head, "content": content, "stop_reason": message.stop_reason}).encode()


def message_events(message: Message) -> Iterator[bytes]:
    """The answer to a request that streams, one server-sent event each."""
    # As the real API does: the count of what is put out is only true in the last delta.
    started = Tokens(
        input=message.tokens.input,
        output=min(1, message.tokens.output),
        cache_read=message.tokens.cache_read,
        cache_write=message.tokens.cache_write,
    )
    yield _event("message_start", {"message": _head(message, started)})
    for index, block in enumerate(message.blocks):
        opening, delta = _streamed_block(block)
        yield _event("content_block_start", {"index": index, "content_block": opening})
        yield _event("content_block_delta", {"index": index, "delta": delta})
        yield _event("content_block_stop", {"index": index})
    ending = {"stop_reason": message.stop_reason, "stop_sequence": None}
    yield _event("message_delta", {"delta": ending, "usage": _counts(message.tokens)})
    yield _event("message_stop", {})


def error_document(kind: str, message: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


def _event(name: str, fields: Mapping[str, object]) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()


def _head(message: Message, tokens: Tokens) -> dict[str, object]:
    lifetimes = {"ephemeral_5m_input_tokens": tokens.cache_write, "ephemeral_1h_input_tokens": 0}
    return {
        "id": message.id,
        "type": "message",
        "role": "assistant",
        "model": message.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**_counts(tokens), "cache_creation": lifetimes, "service_tier": "standard"},
    }


def _counts(tokens: Tokens) -> dict[str, object]:
    return {
        "input_tokens": tokens.input,
        "output_tokens": tokens.output,
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation_input_tokens": tokens.cache_write,
    }


def _whole_block(block: Block) -> dict[str, object]:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ToolUseBlock():
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": dict(block.input)}


def _streamed_block(block: Block) -> tuple[dict[str, object], dict[str, object]]:
    match block:
        case TextBlock():
            return {"type": "text", "text": ""}, {"type": "text_delta", "text": block.text}
        case ToolUseBlock():
            delta: dict[str, object] = {"type": "input_json_delta", "partial_json": json.dumps(dict(block.input))}
            return {**_whole_block(block), "input": {}}, delta
