"""One question of a hook, asked as a CLI asks it, against an interpreter that does nothing. Starts processes.

The hook's own command line, the real client and server, the real decision; without the CLI and without records. Used by
``guard``.
"""

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from bench.course import BenchmarkFailed
from bench.guard_rules import load
from bench.guard_tier import TierOne
from supervisor.guard.bounds import Bounds
from supervisor.guard.hooks import hook_settings
from supervisor.guard.post import SHORT_PLACE, Post
from supervisor.guard.server import GuardServer
from supervisor.guard.wire import BEFORE
from supervisor.model.permission import CallEnd, Decision, ToolCall

_NOTHING = (sys.executable, "-I", "-S", "-c", "pass")


async def compare(text: str, *, rounds: int) -> list[tuple[float, float]]:
    """Seconds for asking about a shell command and for starting an interpreter, in turns."""
    with tempfile.TemporaryDirectory(prefix="opsladder-bench-") as scratch:
        tier = TierOne(load(Path(scratch)))

    async def answer(call: ToolCall) -> Decision:
        return tier.decide(call)

    async def ended(end: CallEnd) -> None:
        """Nothing is kept."""

    bounds = Bounds()
    with Post.open((SHORT_PLACE,)) as post:
        hooks = json.loads(hook_settings(post, bounds, python=sys.executable))["hooks"]
        asking = ("/bin/sh", "-c", hooks[BEFORE][0]["hooks"][0]["command"])
        async with GuardServer(post, answer=answer, ended=ended, bounds=bounds):
            pairs = [(await _asked(asking, text), await _started(_NOTHING)) for _ in range(rounds + 1)]
    return pairs[1:]


async def _asked(command: tuple[str, ...], text: str) -> float:
    question = {
        "session_id": "bench",
        "cwd": "/srv/shop",
        "hook_event_name": BEFORE,
        "tool_name": "Bash",
        "tool_input": {"command": text},
        "tool_use_id": "toolu_bench",
    }
    started = time.perf_counter()
    said = await _output(command, json.dumps(question).encode())
    seconds = time.perf_counter() - started
    if json.loads(said)["hookSpecificOutput"]["permissionDecision"] != "allow":
        raise BenchmarkFailed(f"The guard did not allow the call: {said.decode()}")
    return seconds


async def _started(command: tuple[str, ...]) -> float:
    started = time.perf_counter()
    await _output(command, b"")
    return time.perf_counter() - started


async def _output(command: tuple[str, ...], given: bytes) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate(given)
    return said
