"""Guarded runs of the real CLI with a scripted model, started as the product does. Does I/O; imported by tests."""

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from realcli import closed_environment

from supervisor.claude.command import RunSpec, arguments, environment
from supervisor.claude.process import Exit, Limits, start, watch
from supervisor.guard.bounds import Bounds
from supervisor.guard.hooks import hook_settings
from supervisor.guard.post import SHORT_PLACE, Post
from supervisor.guard.server import GuardServer
from supervisor.model.permission import CallEnd, Decision, ToolCall, Verdict
from supervisor.model.runtime import Abilities, Runtime
from supervisor.rehearsal.api import ScriptedApi
from supervisor.rehearsal.scenario import Scenario, Script, Turn
from supervisor.rehearsal.scenario import ToolCall as Asked

Deciding = Callable[[ToolCall], Awaitable[Decision]]

_LIMITS = Limits(
    first_output_seconds=60,
    silence_seconds=60,
    wall_clock_seconds=120,
    end_grace_seconds=2,
    overload_wait_seconds=5,
)


def bash(command: str) -> Turn:
    return Turn(text="I act.", tools=(Asked(name="Bash", input={"command": command}),))


def say(verdict: Verdict, sentence: str = "It is so decided.") -> Decision:
    return Decision(verdict=verdict, rule="test", sentence=sentence)


def always(decision: Decision) -> Deciding:
    async def answer(call: ToolCall) -> Decision:
        return decision

    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A finished run: its raw events and what its model was asked."""

    session_id: str
    exit: Exit
    events: tuple[dict[str, Any], ...]
    requests: tuple[Any, ...]

    @property
    def result(self) -> dict[str, Any]:
        return [event for event in self.events if event.get("type") == "result"][-1]

    @property
    def told_the_model(self) -> str:
        """The newest request, as text."""
        return json.dumps(self.requests[-1], ensure_ascii=False)


@dataclass(slots=True, kw_only=True)
class Scene:
    """One CLI in one directory, with a guard whose questions and endings are kept."""

    cli: Path
    tmp_path: Path
    bounds: Bounds = field(default_factory=Bounds)
    asked: list[ToolCall] = field(default_factory=list)
    ended: list[CallEnd] = field(default_factory=list)
    one_ended: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.home.mkdir(exist_ok=True)
        self.work.mkdir(exist_ok=True)

    @property
    def home(self) -> Path:
        return self.tmp_path / "home"

    @property
    def work(self) -> Path:
        return self.tmp_path / "work"

    def made(self, name: str = "made") -> bool:
        """Whether a tool call has left its file."""
        return (self.work / name).exists()

    def post(self) -> Post:
        return Post.open([self.tmp_path / "guard", SHORT_PLACE])

    def server(self, post: Post, answer: Deciding) -> GuardServer:
        async def deciding(call: ToolCall) -> Decision:
            self.asked.append(call)
            return await answer(call)

        async def ending(end: CallEnd) -> None:
            self.ended.append(end)
            self.one_ended.set()

        return GuardServer(post, answer=deciding, ended=ending, bounds=self.bounds)

    @asynccontextmanager
    async def guard(self, answer: Deciding) -> AsyncIterator[Post]:
        with self.post() as post:
            async with self.server(post, answer):
                yield post

    async def run(
        self,
        *turns: Turn,
        settings: str,
        prompt: str = "Look after the web server.",
        resume: str | None = None,
        tools: tuple[str, ...] = ("Bash",),
        allowed: bool = True,
        schema: str | None = None,
    ) -> Ran:
        """One run; ``allowed`` also tells the CLI that the tools need nobody's permission: the hooks have to hold."""
        session_id = str(uuid.uuid4())
        spec = RunSpec(
            session_id=session_id,
            resume_session_id=resume,
            model="haiku",
            tools=tools,
            disallowed_tools=(),
            max_turns=None,
            max_budget_usd=None,
            system_prompt="You watch over a web server.",
            append_system_prompt=False,
            report_schema=schema,
            settings_json=settings,
        )
        line = arguments(_runtime(self.cli), spec)
        if allowed:
            line[1:1] = ["--allowedTools", ",".join(tools)]
        stream = self.tmp_path / f"{session_id}.jsonl"
        scenario = Scenario(title="test", scripts=(Script(tier=1, turns=turns),))
        async with ScriptedApi(scenario, keep_bodies=True) as api:
            api.expect(session_id, 1)
            env = environment(
                closed_environment(home=self.home, base_url=api.base_url),
                tier=1,
                dry_run=False,
                state_dir=str(self.tmp_path),
                run_marker=session_id,
            )
            running = await start([str(self.cli), *line], env=env, cwd=self.work, marker=session_id)
            gone = await watch(
                running,
                prompt=prompt,
                limits=_LIMITS,
                on_event=lambda event: None,
                stop=asyncio.Event(),
                copy_to=stream,
            )
            requests = tuple(call.body for call in api.calls if not call.side)
        lines = stream.read_text().splitlines()
        return Ran(
            session_id=session_id, exit=gone, events=tuple(json.loads(entry) for entry in lines), requests=requests
        )

    def settings(self, post: Post, **changes: Any) -> str:
        return hook_settings(post, self.bounds, **{"python": sys.executable, **changes})

    async def guarded(self, *turns: Turn, answer: Deciding, **options: Any) -> Ran:
        """A run under a guard of its own."""
        async with self.guard(answer) as post:
            return await self.run(*turns, settings=self.settings(post), **options)


def _runtime(cli: Path) -> Runtime:
    return Runtime(
        id="test",
        host="test",
        path=str(cli),
        version="2",
        abilities=Abilities(
            resume=True,
            fork_session=True,
            session_id=True,
            tools=True,
            json_schema=True,
            partial_messages=False,
            system_prompt=True,
            append_system_prompt=True,
            setting_sources=True,
            settings=True,
            strict_mcp_config=True,
            max_budget_usd=True,
            defer=True,
        ),
    )
