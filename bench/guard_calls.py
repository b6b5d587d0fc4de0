"""A run of the real CLI with many shell calls, with the guard's hooks and without. Starts CLIs, uses loopback.

Used by ``guard``.
"""

import asyncio
import json
import shlex
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from bench.binaries import closed_environment
from bench.course import BenchmarkFailed
from bench.guard_rules import load
from bench.guard_tier import TierOne
from bench.pace import paced
from supervisor.claude.command import arguments
from supervisor.claude.probe import probe
from supervisor.climb.launch import new_session_id, run_spec
from supervisor.guard.bounds import Bounds
from supervisor.guard.hooks import hook_settings
from supervisor.guard.post import SHORT_PLACE, Post
from supervisor.guard.server import GuardServer
from supervisor.model.permission import CallEnd, Decision, ToolCall
from supervisor.model.runtime import Runtime
from supervisor.rehearsal.api import ScriptedApi
from supervisor.rehearsal.scenario import Scenario, Script, Turn
from supervisor.rehearsal.scenario import ToolCall as Asked
from supervisor.settings import Settings

_PROMPT = "Look after the shop."
# Says yes to everything, in the shell that the CLI starts anyway: what is above it, the guard could save at most.
_YES = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}})
_HOOK = {"type": "command", "command": f"printf %s {shlex.quote(_YES)}"}
_LEAST = json.dumps({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [_HOOK]}]}})


def story(calls: int, answer_seconds: float) -> Scenario:
    """A model that wants so many calls, one after the other."""
    looks = [Turn(tools=(Asked(name="Bash", input={"command": f"echo {number}"}),)) for number in range(calls)]
    script = Script(tier=1, turns=(*looks, Turn(text="Done.")))
    return paced(Scenario(title="calls", scripts=(script,)), answer_seconds)


async def compare(binary: Path, scenario: Scenario, *, rounds: int) -> list[tuple[float, float, float]]:
    """Seconds for a run with the guard's hooks, with the least hook there can be, and without; each once to warm up."""
    with tempfile.TemporaryDirectory(prefix="opsladder-bench-", ignore_cleanup_errors=True) as scratch:
        directory = Path(scratch)
        settings = load(directory)
        runtime = await probe(binary, cache_file=None, env=closed_environment(home=directory, base_url=""))
        runs = [
            (
                await _guarded(settings, runtime, scenario, directory),
                await _run(settings, runtime, scenario, directory, _LEAST),
                await _run(settings, runtime, scenario, directory, None),
            )
            for _ in range(rounds + 1)
        ]
    return runs[1:]


async def _guarded(settings: Settings, runtime: Runtime, scenario: Scenario, directory: Path) -> float:
    tier = TierOne(settings)
    asked = 0

    async def answer(call: ToolCall) -> Decision:
        nonlocal asked
        asked += 1
        return tier.decide(call)

    async def ended(end: CallEnd) -> None:
        """Nothing is kept."""

    bounds = Bounds()
    with Post.open((SHORT_PLACE,)) as post:
        hooks = hook_settings(post, bounds, python=sys.executable)
        async with GuardServer(post, answer=answer, ended=ended, bounds=bounds):
            seconds = await _run(settings, runtime, scenario, directory, hooks)
    wanted = len(scenario.scripts[0].turns) - 1
    if asked != wanted:
        raise BenchmarkFailed(f"The guard was asked {asked} times and not {wanted}.")
    return seconds


async def _run(settings: Settings, runtime: Runtime, scenario: Scenario, directory: Path, hooks: str | None) -> float:
    session_id = new_session_id()
    spec = run_spec(settings, tier=1, session_id=session_id, resume_session_id=None, guard=hooks)
    line = arguments(runtime, replace(spec, max_turns=None, max_budget_usd=None, report_schema=None))
    async with ScriptedApi(scenario, fallback=(1,)) as api:
        started = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *(runtime.path, *line),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            env=closed_environment(home=directory, base_url=api.base_url),
            cwd=settings.claude.work_dir,
        )
        await process.communicate(_PROMPT.encode())
        seconds = time.perf_counter() - started
        answers = sum(not call.side for call in api.calls)
    wanted = len(scenario.scripts[0].turns)
    if answers != wanted:
        raise BenchmarkFailed(f"The model was asked {answers} times and not {wanted}.")
    return seconds
