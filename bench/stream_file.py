"""A large stream as a CLI prints it: shapes of 2.1.325, sizes of a long night. Writes one file. Used by ``stream``.

Mostly small pieces of messages, whole messages between them, tool results of 1 to 100 kB, some of several MB, and the
result. The CLI says a tool's output twice in one line, and so does this.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path

_PHRASES = (
    "the service answers slowly since the last deployment;",
    "nginx: worker process exited on signal 9",
    "“upstream timed out”",
    "/var/log/app/current.log\t10.0.3.17",
    '"GET /healthz HTTP/1.1" 200 1532 0.003',
    "postgres: checkpoint complete → naïve retry",
)
_MODEL = "claude-haiku-5-5"
_SESSION = "8209c518-f1e7-464b-9e41-8e8eb8f28f77"
_PIECES_PER_MESSAGE = 200
_ANSWER_BYTES = (1_000, 100_000)
_LARGE_ANSWER_BYTES = (1_000_000, 3_500_000)
_LARGE_EVERY = 25


def write_stream(path: Path, *, size: int) -> int:
    """Write at least ``size`` bytes; returns how many lines. The same size gives the same file."""
    chance = random.Random(size)
    lines = written = 0
    with path.open("wb") as file:
        for event in _events(chance):
            line = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            written += file.write(line)
            lines += 1
            if written >= size and event["type"] == "user":
                break
        file.write(json.dumps(_result()).encode() + b"\n")
    return lines + 1


def _events(chance: random.Random) -> Iterator[dict[str, object]]:
    yield {
        "type": "system",
        "subtype": "init",
        "cwd": "/srv",
        "session_id": _SESSION,
        "tools": ["Bash"],
        "model": _MODEL,
    }
    number = 0
    while True:
        number += 1
        yield from _message(chance, number)
        bounds = _LARGE_ANSWER_BYTES if number % _LARGE_EVERY == 0 else _ANSWER_BYTES
        yield _answer(number, _text(chance, chance.randint(*bounds) // 2))


def _message(chance: random.Random, number: int) -> Iterator[dict[str, object]]:
    usage = {
        "input_tokens": 12,
        "output_tokens": 1,
        "cache_read_input_tokens": 14_217,
        "cache_creation_input_tokens": 96,
    }
    message_id = f"msg_{number:08d}"
    head = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": _MODEL,
        "stop_reason": None,
        "usage": usage,
    }
    yield _piece({"type": "message_start", "message": {**head, "content": []}})
    yield _piece({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    said = [_text(chance, chance.randint(4, 60)) for _ in range(_PIECES_PER_MESSAGE)]
    for words in said:
        yield _piece({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": words}})
    yield _whole({**head, "content": [{"type": "text", "text": "".join(said)}]})
    command = {"command": f"journalctl -u app -n {number}", "description": "Read the log"}
    call = {"type": "tool_use", "id": f"toolu_{number:08d}", "name": "Bash", "input": command}
    yield _whole({**head, "content": [call]})
    yield _piece(
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {**usage, "output_tokens": 240}}
    )
    yield _piece({"type": "message_stop"})


def _piece(event: dict[str, object]) -> dict[str, object]:
    return {
        "type": "stream_event",
        "event": event,
        "session_id": _SESSION,
        "parent_tool_use_id": None,
        "uuid": "8bb2aa11-9459-415f-99ed-69e94c748cbc",
    }


def _whole(message: dict[str, object]) -> dict[str, object]:
    return {"type": "assistant", "message": message, "parent_tool_use_id": None, "session_id": _SESSION}


def _answer(number: int, output: str) -> dict[str, object]:
    block = {"tool_use_id": f"toolu_{number:08d}", "type": "tool_result", "content": output, "is_error": False}
    return {
        "type": "user",
        "message": {"role": "user", "content": [block]},
        "parent_tool_use_id": None,
        "session_id": _SESSION,
        "tool_use_result": {"stdout": output, "stderr": "", "interrupted": False},
    }


def _result() -> dict[str, object]:
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "session_id": _SESSION,
        "num_turns": 3,
        "result": "done",
        "total_cost_usd": 0.0009,
        "usage": {"input_tokens": 8534, "output_tokens": 95},
        "modelUsage": {
            _MODEL: {"inputTokens": 8534, "outputTokens": 95, "costUSD": 0.0009, "contextWindow": 1_000_000}
        },
    }


def _text(chance: random.Random, size: int) -> str:
    """About ``size`` characters of log-like text, with line feeds, quotes and the odd character beyond ASCII."""
    line = " ".join(chance.choices(_PHRASES, k=4)) + "\n"
    return (line * (size // len(line) + 1))[:size]
