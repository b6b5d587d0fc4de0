"""Start programs and hold on to them. The only spawner. Called from claude.process and claude.probe.

A started CLI is inert: it waits for its prompt and neither calls the API nor runs a tool before. So it can boot while
the caller still writes the record of it.
"""

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from supervisor.claude.pipes import Inflow, Tail
from supervisor.claude.tree import Tree, adopt_orphans
from supervisor.errors import ClaudeNotUsable

_SIGNAL_BASE = 128
_OUTPUT_TICK_SECONDS = 0.01
_OUTPUT_END_GRACE_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a short program printed. ``complete`` is false when it took too long or printed too much."""

    stdout: bytes
    exit_code: int | None
    complete: bool


class Running:
    """A process that was started: it waits for its prompt, works, or has ended."""

    def __init__(self, child: subprocess.Popen[bytes], *, marker: str | None) -> None:
        self.pid = child.pid
        self.pid_started = psutil.Process(child.pid).create_time()
        self._child = child
        self._stdin, self._stdout, self._stderr = _pipe(child.stdin), _pipe(child.stdout), _pipe(child.stderr)
        self._tree = Tree(self.pid, self.pid_started, mark=marker, child=child)
        self._transports: dict[IO[bytes], asyncio.BaseTransport] = {}
        self._closed = False

    @property
    def exit_code(self) -> int | None:
        """``None`` while it runs; 128 plus the signal when one killed it."""
        code = self._child.poll()
        return _SIGNAL_BASE - code if code is not None and code < 0 else code

    def keep_waiting(self) -> None:
        """Make a fresh CLI wait for its prompt: without a first byte it gives up on stdin after three seconds."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._stdin.fileno(), b"\n")

    async def send_prompt(self, text: str) -> None:
        """Hand over the prompt and close stdin. A process that does not read it does not hold the caller up."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, self._stdin)
        self._transports[self._stdin] = transport
        transport.write(text.encode("utf-8", "replace"))
        transport.write_eof()

    async def listen(self, stdout: asyncio.Protocol, stderr: asyncio.Protocol) -> None:
        """Connect the two outputs; once per process."""
        loop = asyncio.get_running_loop()
        self._transports[self._stdout], _ = await loop.connect_read_pipe(lambda: stdout, self._stdout)
        self._transports[self._stderr], _ = await loop.connect_read_pipe(lambda: stderr, self._stderr)

    def interrupt(self) -> None:
        """Ask it to stop and to write down what it knows."""
        self._tree.interrupt()

    async def end_processes(self, grace_seconds: float) -> None:
        """End it with everything it started; what they have written can still be read."""
        await self._tree.end(grace_seconds)

    async def end(self, grace_seconds: float) -> None:
        """End it with everything it started, and let go of it. May be called at any time, and again."""
        try:
            await self._tree.end(grace_seconds)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        if self._closed:
            return
        self._closed = True
        for pipe in (self._stdin, self._stdout, self._stderr):
            transport = self._transports.get(pipe)
            if transport is None:
                with contextlib.suppress(OSError):
                    pipe.close()
            elif not isinstance(transport, asyncio.WriteTransport):
                transport.close()
            elif not transport.is_closing() or transport.get_write_buffer_size():
                # Closing would wait for a reader that is gone.
                transport.abort()


def _pipe(end: IO[bytes] | None) -> IO[bytes]:
    if end is None:
        raise ValueError("the process was started without its three pipes")
    return end


async def start(argv: Sequence[str], *, env: Mapping[str, str], cwd: str | Path, marker: str | None) -> Running:
    """Start a program in a session of its own. It waits for its prompt; whoever starts it has to ``end`` it.

    ``marker`` is the value of OPSLADDER_RUN in ``env``, by which the run's processes are found again.
    """
    adopt_orphans()
    try:
        # asyncio's own way costs a thread per process on Python 3.11; this one returns within milliseconds too.
        child = subprocess.Popen(  # noqa: ASYNC220
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )
    except OSError as error:
        raise ClaudeNotUsable(
            f"{argv[0]} could not be started in {cwd}: {error.strerror or error}.",
            remedy="Check claude.bin and claude.work_dir with `opsladder doctor`.",
        ) from error
    running = Running(child, marker=marker)
    running.keep_waiting()
    return running


async def end_tree(pid: int, pid_started: float, *, marker: str | None, grace_seconds: float) -> None:
    """End what a dead supervisor has left: the process, its descendants, and whoever carries its mark."""
    await Tree(pid, pid_started, mark=marker).end(grace_seconds)


async def output_of(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: str | Path, seconds: float, most_bytes: int
) -> Output:
    """Run a short program without input, and no longer or louder than allowed."""
    running = await start(argv, env=env, cwd=cwd, marker=None)
    wake = asyncio.Event()
    inflow, printed = Inflow(wake), bytearray()
    try:
        await running.listen(inflow, Tail(0))
        await running.send_prompt("")
        deadline = asyncio.get_running_loop().time() + seconds
        while len(printed) <= most_bytes and asyncio.get_running_loop().time() < deadline:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_OUTPUT_TICK_SECONDS):
                    await wake.wait()
            wake.clear()
            while chunk := inflow.take():
                printed += chunk
            if inflow.ended and running.exit_code is not None:
                break
        complete = inflow.ended and running.exit_code is not None and len(printed) <= most_bytes
        return Output(stdout=bytes(printed[:most_bytes]), exit_code=running.exit_code, complete=complete)
    finally:
        await running.end(_OUTPUT_END_GRACE_SECONDS)
