"""Watch one CLI from its prompt to the end of its last process. Does I/O through ``spawn``. Called from climb."""

import asyncio
import contextlib
import inspect
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from supervisor.claude.limits import Limits, Patience
from supervisor.claude.pipes import Inflow, Tail
from supervisor.claude.spawn import Running, end_tree, start
from supervisor.claude.stream import StreamParser
from supervisor.model.events import ApiRetry, StreamEvent
from supervisor.model.outcome import Ended

__all__ = ["Exit", "Limits", "OnEvent", "Running", "end_tree", "start", "watch"]

logger = logging.getLogger(__name__)

OnEvent = Callable[[StreamEvent], Awaitable[None] | None]

_STDERR_KEPT = 8 * 1024
_TICK_SECONDS = 0.1
# Once the output has ended, the exit is a matter of milliseconds.
_CLOSING_TICK_SECONDS = 0.005
# A grandchild may hold the pipe open after the exit; it is not waited for, and the rest is read once it is gone.
_HELD_PIPE_SECONDS = 0.25
_DRAIN_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a process went. ``exit_code`` is 128 plus the signal when one killed it, ``None`` when it is not known.

    ``last_retry`` is what the API made the CLI wait for when the run was over, if it did.
    """

    ended: Ended
    exit_code: int | None
    stderr_tail: str
    last_retry: ApiRetry | None = None


async def watch(
    running: Running,
    *,
    prompt: str | None,
    limits: Limits,
    on_event: OnEvent,
    stop: asyncio.Event,
    copy_to: Path | None = None,
) -> Exit:
    """Give the prompt (``None`` when it was sent already), hand every event on, return when nothing of the run is left.

    ``stop`` is the wish to end it, and is set too when a limit ends it. ``copy_to`` receives the raw stream, so that
    what was said survives this process. However this function is left, by returning, cancellation or an exception of
    ``on_event``, the whole process tree has ended by then.
    """
    try:
        with _Copy(copy_to) as copy:
            return await _Watcher(running, limits, on_event, stop, copy).run(prompt)
    finally:
        await running.end(limits.end_grace_seconds)


class _Watcher:
    """One run under watch: a single coroutine that wakes for bytes and at every tick."""

    def __init__(self, running: Running, limits: Limits, on_event: OnEvent, stop: asyncio.Event, copy: "_Copy") -> None:
        self._running = running
        self._limits = limits
        self._on_event = on_event
        self._stop = stop
        self._copy = copy
        self._clock = asyncio.get_running_loop().time
        self._patience = Patience(limits, now=self._clock())
        self._parser = StreamParser()
        self._wake = asyncio.Event()
        self._inflow = Inflow(self._wake)
        self._stderr = Tail(_STDERR_KEPT)
        self._exited_at: float | None = None
        self._closing_since: float | None = None

    async def run(self, prompt: str | None) -> Exit:
        await self._running.listen(self._inflow, self._stderr)
        if prompt is not None:
            await self._running.send_prompt(prompt)
        self._patience = Patience(self._limits, now=self._clock())
        ended = await self._until_over()
        last_retry = self._patience.last_retry
        if ended is not Ended.BY_ITSELF:
            # Interrupted, the CLI still says what it has used; so it is heard out. Whoever hears it must know that.
            self._stop.set()
            self._running.interrupt()
            await self._until(self._has_left, self._limits.end_grace_seconds)
        await self._running.end_processes(self._limits.end_grace_seconds)
        await self._until(lambda: self._inflow.ended, _DRAIN_SECONDS)
        await self._deliver(self._parser.close())
        return Exit(
            ended=ended,
            exit_code=self._running.exit_code,
            stderr_tail=self._stderr.text,
            last_retry=last_retry,
        )

    async def _until_over(self) -> Ended:
        while True:
            await self._turn()
            if self._has_left():
                return Ended.BY_ITSELF
            if self._stop.is_set():
                return Ended.INTERRUPTED
            ended = self._patience.verdict(self._clock())
            if ended is not None and self._exited_at is None:
                return ended

    async def _until(self, reached: Callable[[], bool], seconds: float) -> None:
        deadline = self._clock() + seconds
        while not reached() and self._clock() < deadline:
            await self._turn()

    def _has_left(self) -> bool:
        """Whether the CLI has exited and its output has ended, or is held open by someone else."""
        if self._running.exit_code is None:
            return False
        now = self._clock()
        if self._exited_at is None:
            self._exited_at = now
        return self._inflow.ended or now - self._exited_at >= _HELD_PIPE_SECONDS

    async def _turn(self) -> None:
        """Wait for bytes or for the next tick, and hand on what has come."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._tick()):
                await self._wake.wait()
        self._wake.clear()
        while chunk := self._inflow.take():
            self._copy.write(chunk)
            await self._deliver(self._parser.feed(chunk))
            self._patience.heard(self._clock())

    def _tick(self) -> float:
        if not self._inflow.ended:
            return _TICK_SECONDS
        now = self._clock()
        if self._closing_since is None:
            self._closing_since = now
        return _CLOSING_TICK_SECONDS if now - self._closing_since < 1.0 else _TICK_SECONDS

    async def _deliver(self, events: list[StreamEvent]) -> None:
        for event in events:
            self._patience.saw(event, self._clock())
            handled = self._on_event(event)
            if inspect.isawaitable(handled):
                await handled


class _Copy:
    """The raw stream on disk, for the owner's eyes only. A disk that refuses it costs the copy and not the run."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            try:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                # Emptied: after a restore the record's number may have been another's, whose stream was left behind.
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            except OSError as error:
                self._give_up(error)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def write(self, chunk: bytes) -> None:
        if self._descriptor is None:
            return
        try:
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            os.close(self._descriptor)
            self._descriptor = None
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        logger.warning(
            "The raw stream is not kept: a crash of the supervisor would lose its newest records",
            extra={"path": str(self._path), "why": error.strerror},
        )
