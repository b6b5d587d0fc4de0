"""The scripted API in a process of its own, so that neither side of a comparison pays for it.

``ApiServer`` starts it and asks it for chains; the other half of this file is what runs there: each line on stdin
closes the chain before and opens a new one, and is answered with one JSON line on stdout. Listens on loopback.
"""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from types import TracebackType
from typing import IO, Self

from bench.pace import AT_ONCE, paced
from supervisor.rehearsal.api import ScriptedApi
from supervisor.rehearsal.scenario import Scenario, Script, ToolCall, Turn


def _look(what: str) -> Turn:
    return Turn(text=f"I look at {what}.", tools=(ToolCall(name="Bash", input={"command": f"echo {what}"}),))


def _report(*, needed: bool) -> Turn:
    status = "down" if needed else "healthy"
    escalation = {"needed": True, "reason": "web is still down"} if needed else {"needed": False}
    services = [{"name": "web", "status": status}]
    return Turn(report={"summary": f"web is {status}", "services": services, "escalation": escalation})


CLIMB = Scenario(
    title="climb",
    scripts=(
        Script(tier=1, turns=(_look("the-health-page"), _look("the-log"), _report(needed=True))),
        Script(tier=2, turns=(_look("the-restart"), _report(needed=True))),
        Script(tier=3, turns=(_look("the-repair"), _report(needed=False))),
    ),
)


class ApiServer:
    """The API's process. ``with ApiServer() as server:`` ends it at the end of the block."""

    def __init__(self, answer_seconds: float = AT_ONCE) -> None:
        self._command = [sys.executable, "-m", "bench.api_server", str(answer_seconds)]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        _open(self._process.stdin).close()
        _open(self._process.stdout).close()
        self._process.wait()

    def new_chain(self) -> tuple[str, dict[str, int]]:
        """Where the next three sessions find their model, and how many answers each tier of the chain before got."""
        stdin = _open(self._process.stdin)
        stdin.write("next\n")
        stdin.flush()
        answer = json.loads(_open(self._process.stdout).readline())
        return answer["base_url"], answer["answered_before"]


def _open(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise ValueError("the process was started without pipes")
    return pipe


async def _serve(answer_seconds: float) -> None:
    climb = paced(CLIMB, answer_seconds)
    answered: Counter[str] = Counter()
    wanted = await asyncio.to_thread(sys.stdin.readline)
    while wanted:
        async with ScriptedApi(climb, fallback=(1, 2, 3)) as api:
            print(json.dumps({"base_url": api.base_url, "answered_before": answered}), flush=True)
            wanted = await asyncio.to_thread(sys.stdin.readline)
            answered = Counter(f"tier {call.tier}" for call in api.calls if not call.side)


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1])))
