"""The two ends of a child's output: a bounded queue for stdout, a bounded tail for stderr. Used by claude.process."""

import asyncio
from collections import deque

_HIGH_WATER = 1024 * 1024


class Inflow(asyncio.Protocol):
    """Chunks as they arrive. Reading pauses while nobody takes them: a flood waits in the child, not in memory."""

    def __init__(self, wake: asyncio.Event) -> None:
        self._lost = False
        self._wake = wake
        self._chunks: deque[bytes] = deque()
        self._waiting = 0
        self._paused = False
        self._transport: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.ReadTransport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._chunks.append(data)
        self._waiting += len(data)
        if self._waiting > _HIGH_WATER and self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the signature is asyncio's
        self._lost = True
        self._wake.set()

    @property
    def ended(self) -> bool:
        """Whether nothing waits and nothing more will come."""
        return self._lost and not self._chunks

    def take(self) -> bytes | None:
        """The oldest chunk that waits."""
        if not self._chunks:
            return None
        chunk = self._chunks.popleft()
        self._waiting -= len(chunk)
        if self._paused and not self._chunks and self._transport is not None and not self._lost:
            self._paused = False
            self._transport.resume_reading()
        return chunk


class Tail(asyncio.Protocol):
    """The end of what was written."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()

    def data_received(self, data: bytes) -> None:
        self._kept += data
        del self._kept[: max(0, len(self._kept) - self._limit)]

    @property
    def text(self) -> str:
        return self._kept.decode("utf-8", "replace")
