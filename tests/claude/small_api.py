"""The smallest Messages API that a real CLI talks to: a list of answers, given in turn. Loopback only.

An answer is an HTTP status, or the content blocks of a message. Side questions, which offer no tools, get a short text.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence

Block = dict[str, object]
Answer = int | Sequence[Block]


def bash(command: str) -> Block:
    return {"type": "tool_use", "name": "Bash", "input": {"command": command, "description": "a test"}}


def text(said: str) -> Block:
    return {"type": "text", "text": said}


@contextlib.asynccontextmanager
async def small_api(*answers: Answer) -> AsyncIterator[str]:
    """The base URL of an API that gives these answers; the last one again and again."""
    left = list(answers)
    asked = 0
    clients: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        clients.add(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                sizes = [
                    line.split(":")[1] for line in head.lower().split("\r\n") if line.startswith("content-length:")
                ]
                body = await reader.readexactly(int(sizes[0]) if sizes else 0)
                if not head.startswith("POST /v1/messages") or "count_tokens" in head.split("\r\n")[0]:
                    writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                    continue
                question = json.loads(body)
                answer: Answer = [text("a title")]
                if question.get("tools"):
                    asked += 1
                    answer = left.pop(0) if len(left) > 1 else left[0]
                writer.write(_response(answer, question["model"], asked))
        clients.discard(writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in list(clients):
            writer.close()
        await server.wait_closed()


def _response(answer: Answer, model: str, number: int) -> bytes:
    if isinstance(answer, int):
        body = json.dumps({"type": "error", "error": {"type": "api_error", "message": "as the test wishes"}}).encode()
        kind, status = "application/json", answer
    else:
        body = b"".join(
            f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in _message(answer, model, number)
        )
        kind, status = "text/event-stream", 200
    return f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def _message(blocks: Sequence[Block], model: str, number: int) -> list[dict[str, object]]:
    start = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "content": []}
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": {**start, "usage": {"input_tokens": 1000, "output_tokens": 1}}}
    ]
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            opened, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            opened = {**block, "id": f"toolu_{number}_{index}", "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": index, "content_block": opened},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    reason = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    return [
        *events,
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 50}},
        {"type": "message_stop"},
    ]
