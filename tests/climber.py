"""Climb a scenario on the real CLI in a directory of the test's own. Does I/O; imported by tests of the ladder."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from realcli import closed_environment

from supervisor.claude.probe import probe
from supervisor.climb.cycle import run_cycle
from supervisor.climb.ladder import CycleRequest, Ladder
from supervisor.climb.stop import StopRequest
from supervisor.model.cycle import Chain, Event, EventKind, Trigger
from supervisor.model.progress import Progress
from supervisor.model.runtime import Runtime
from supervisor.model.session import Session, Tokens
from supervisor.prompts import Prompts
from supervisor.rehearsal.account import Call
from supervisor.rehearsal.api import ScriptedApi
from supervisor.rehearsal.scenario import Scenario, Script, ToolCall, Turn
from supervisor.rehearsal.stage import cued
from supervisor.settings import Settings, load_settings
from supervisor.store import Store, open_store

ENVIRONMENT = "The web shop runs on host alpha-7; its health page is /healthz."
CONFIG = f"""
[[schedules]]
name = "default"
environment = "{ENVIRONMENT}"
"""


def bash(command: str, *, text: str = "I look.", usage: Tokens | None = None, **more: Any) -> Turn:
    return Turn(text=text, tools=(ToolCall(name="Bash", input={"command": command}),), usage=usage, **more)


def report(needed: bool, *, usage: Tokens | None = None, **more: Any) -> Turn:
    status = "down" if needed else "healthy"
    escalation = {"needed": needed, "reason": "web is still down"} if needed else {"needed": False}
    document = {
        "summary": f"web is {status}",
        "services": [{"name": "web", "status": status}],
        "escalation": escalation,
    }
    return Turn(report=document, usage=usage, **more)


def scripts(*tiers: tuple[Turn, ...]) -> Scenario:
    return Scenario(
        title="test", scripts=tuple(Script(tier=number, turns=turns) for number, turns in enumerate(tiers, start=1))
    )


CLIMB = scripts(
    (bash("echo finding-from-tier-one"), report(True)),
    (bash("echo tried-by-tier-two"), report(True)),
    (bash("echo mended-by-tier-three"), report(False)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Climbed:
    """A finished cycle with everything a test may want to look at."""

    chain: Chain
    store: Store
    settings: Settings
    calls: tuple[Call, ...]
    account: Callable[[str | None], Any]
    progress: tuple[Progress, ...]
    state: Path

    @property
    def sessions(self) -> tuple[Session, ...]:
        return self.chain.sessions

    def calls_of(self, tier: int) -> list[Call]:
        return [c for c in self.calls if c.tier == tier and not c.side]

    def events(self, *kinds: EventKind) -> list[Event]:
        return self.store.events(cycle_id=self.chain.cycle.id, kinds=kinds or None)

    def prompt(self, session: Session) -> str:
        [event] = self.store.events(session_id=session.id, kinds=(EventKind.PROMPT,))
        return event.text


def texts(body: Any) -> str:
    """Every text a request puts before the model, in order."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            for key in ("text", "content", "input"):
                walk(value.get(key))
            if value.get("type") == "tool_use":
                found.append(str(value.get("input")))
        elif isinstance(value, list | tuple):
            for item in value:
                walk(item)

    walk(body.get("system"))
    walk([m.get("content") for m in body["messages"]])
    return "\n".join(found)


def newest_user_text(body: Any) -> str:
    users = [m for m in body["messages"] if m["role"] == "user"]
    return texts({"system": None, "messages": users[-1:]})


def make_settings(tmp_path: Path, cli: Path, base_url: str, config: str = CONFIG, **environ: str) -> Settings:
    home = tmp_path / "home"
    work = tmp_path / "work"
    for directory in (home, work):
        directory.mkdir(exist_ok=True)
    file = tmp_path / "opsladder.toml"
    file.write_text(config)
    return load_settings(
        file,
        {
            **closed_environment(home=home, base_url=base_url),
            "OPSLADDER_CLAUDE__BIN": str(cli),
            "OPSLADDER_CLAUDE__WORK_DIR": str(work),
            "OPSLADDER_STATE__DIR": str(tmp_path / "state"),
            **environ,
        },
        cwd=tmp_path,
    )


async def climb(
    tmp_path: Path,
    cli: Path,
    scenario: Scenario = CLIMB,
    *,
    config: str = CONFIG,
    environ: dict[str, str] | None = None,
    see: Callable[[Progress, Settings], None] | None = None,
    runtime: Callable[[Runtime], Runtime] = lambda found: found,
    stop: StopRequest | None = None,
    ladder_changes: dict[str, Any] | None = None,
    fallback: tuple[int, ...] = (),
    **request: Any,
) -> Climbed:
    """One cycle of the scenario. ``see`` is told of progress before the CLI goes on."""
    seen: list[Progress] = []
    async with ScriptedApi(scenario, keep_bodies=True, fallback=fallback) as api:
        settings = make_settings(tmp_path, cli, api.base_url, config, **(environ or {}))
        settings.state.dir.mkdir(mode=0o700, parents=True, exist_ok=True)

        def watch(progress: Progress) -> None:
            seen.append(progress)
            if see is not None:
                see(progress, settings)

        ladder = Ladder(
            settings=settings,
            store=open_store(settings.database_url()),
            runtime=runtime(await probe(cli, cache_file=settings.state.dir / "probe.json", env=settings.agent_env)),
            prompts=Prompts(settings.prompt_dirs),
            watch=cued(api, watch),
        )
        ladder = dataclasses.replace(ladder, **(ladder_changes or {}))
        values: dict[str, Any] = {
            "schedule": "default",
            "trigger": Trigger.MANUAL,
            "dry_run": settings.escalation.dry_run,
            "max_tier": settings.escalation.max_tier,
        }
        chain = await run_cycle(ladder, CycleRequest(**{**values, **request}), stop=stop)
        return Climbed(
            chain=chain,
            store=ladder.store,
            settings=settings,
            calls=api.calls,
            account=api.account,
            progress=tuple(seen),
            state=settings.state.dir,
        )
