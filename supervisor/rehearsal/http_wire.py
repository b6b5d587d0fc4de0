"""Just enough HTTP/1.1 to serve one client on loopback: requests with a length in, responses with a length out.

Used by ``rehearsal.api``. Reads from the stream it is given; opens nothing.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

BODY_LIMIT = 100 * 1024 * 1024
_HEADER_LIMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str
    body: bytes
    keep_alive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """A request that cannot be served; where it ends is unknown, so the connection cannot be used again."""

    status: HTTPStatus
    why: str


async def read_request(reader: asyncio.StreamReader) -> Request | Malformed | None:
    """The next request, or ``None`` when the client has closed. One that leaves halfway raises IncompleteReadError."""
    line = await _line(reader)
    if line is None:
        return Malformed(status=HTTPStatus.REQUEST_URI_TOO_LONG, why="The request line is too long.")
    if not line:
        return None
    match line.split():
        case [method, target, version] if version.startswith("HTTP/1."):
            pass
        case _:
            return Malformed(status=HTTPStatus.BAD_REQUEST, why="This is not an HTTP/1.1 request line.")
    headers = await _headers(reader)
    if headers is None:
        return Malformed(status=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, why="The headers are too large.")
    if "transfer-encoding" in headers:
        return Malformed(status=HTTPStatus.LENGTH_REQUIRED, why="A request body needs a content-length.")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        return Malformed(status=HTTPStatus.BAD_REQUEST, why="The content-length is not a number.")
    if int(length) > BODY_LIMIT:
        return Malformed(status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why=f"A body has at most {BODY_LIMIT} bytes.")
    body = await reader.readexactly(int(length))
    keep_alive = version != "HTTP/1.0" and headers.get("connection", "").lower() != "close"
    return Request(method=method, path=target.partition("?")[0], body=body, keep_alive=keep_alive)


def response_head(status: int, *, length: int, content_type: str, extra: Mapping[str, str], keep_alive: bool) -> bytes:
    """Status line and headers of a response whose body of ``length`` bytes follows."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"  # 529, the API's own "overloaded", is in no registry.
    headers = {
        "content-type": content_type,
        "content-length": str(length),
        "connection": "keep-alive" if keep_alive else "close",
        **extra,
    }
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


async def _headers(reader: asyncio.StreamReader) -> dict[str, str] | None:
    headers: dict[str, str] = {}
    for _ in range(_HEADER_LIMIT):
        line = await _line(reader)
        if line is None:
            return None
        if not line.strip():
            return headers
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return None


async def _line(reader: asyncio.StreamReader) -> str | None:
    """One line; empty at the end of the stream, ``None`` when it is longer than the reader's limit."""
    try:
        return (await reader.readline()).decode("latin-1")
    except ValueError:
        return None
