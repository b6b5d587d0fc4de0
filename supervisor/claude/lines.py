"""Cut a byte stream into lines without ever holding a line that is too long. Pure. Called from claude.stream."""

from collections.abc import Iterator
from dataclasses import dataclass

LINE_LIMIT = 8 * 1024 * 1024
KEPT_HEAD = 64 * 1024
KEPT_TAIL = 4 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlong:
    """A line that passed the limit: its beginning, its end, and how many bytes it had."""

    head: bytes
    tail: bytes
    size: int


class LineCutter:
    """Takes chunks of any size and gives back whole lines, without their line feeds and without the empty ones.

    The pieces of an unfinished line are kept apart and joined once, so the cost is linear in the bytes.
    """

    def __init__(self, *, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | Overlong]:
        """The lines that this chunk completes."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            piece = chunk[start:end]
            start = end + 1
            if not self._size and len(piece) <= self._limit:
                if piece:
                    yield piece
                continue
            self._keep(piece)
            yield self._finish()
        if start < len(chunk):
            self._keep(chunk[start:] if start else chunk)

    def close(self) -> bytes | Overlong | None:
        """The last line, when the stream ended without a line feed."""
        return self._finish() if self._size else None

    def _keep(self, piece: bytes) -> None:
        within = self._size <= self._limit
        self._size += len(piece)
        if within:
            self._pieces.append(piece)
            if self._size > self._limit:
                whole = b"".join(self._pieces)
                self._pieces.clear()
                self._head, self._tail = whole[:KEPT_HEAD], whole[-KEPT_TAIL:]
        else:
            self._head += piece[: KEPT_HEAD - len(self._head)]
            self._tail = (self._tail + piece[-KEPT_TAIL:])[-KEPT_TAIL:]

    def _finish(self) -> bytes | Overlong:
        if self._size > self._limit:
            line: bytes | Overlong = Overlong(head=self._head, tail=self._tail, size=self._size)
        else:
            line = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        self._head = self._tail = b""
        return line
