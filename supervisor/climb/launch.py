"""Turn a tier of the settings into a CLI process that waits for its prompt. Spawns through ``claude.process``.

Called from climb.run, and from the cli before the store is loaded: a CLI takes longest to start, so the first one boots
while the rest of the program does. Until it is given a prompt it calls no API and runs no tool, and the prompt is
given only once the record stands; ended without one, it leaves nothing behind.
"""

import datetime as dt
import json
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.claude.command import RunSpec, arguments, environment
from supervisor.claude.process import Running, start
from supervisor.decide.report import SCHEMA
from supervisor.guard.bounds import ANSWER_SECONDS, Bounds
from supervisor.guard.hooks import hook_settings
from supervisor.guard.post import SHORT_PLACE, Post
from supervisor.model.runtime import Runtime
from supervisor.prompts import system_prompt

if TYPE_CHECKING:
    from supervisor.settings import Settings

SYSTEM_PROMPT_FILE = "system.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """A CLI that is booting or waits for its prompt, and where its hooks will ask."""

    session_id: str
    tier: int
    dry_run: bool
    running: Running
    post: Post
    bounds: Bounds

    async def end(self, grace_seconds: float) -> None:
        """End it with all it has started, and take its post away."""
        try:
            await self.running.end(grace_seconds)
        finally:
            self.post.close()


def new_session_id() -> str:
    """Ids before processes: minted here, stored, and only then used."""
    return str(uuid.uuid4())


def guard_places(settings: "Settings") -> tuple[Path, ...]:
    """Where the posts of guarded runs may be. A state directory can have too long a path for a socket."""
    return (settings.state.dir / "guard", SHORT_PLACE)


def guard_bounds(settings: "Settings", runtime: Runtime, tier: int) -> Bounds:
    """How long a call may wait for its answer: for a person only where the CLI cannot put the call off meanwhile."""
    if runtime.abilities.defer:
        return Bounds()
    return Bounds(answer_seconds=approval_limit(settings, runtime, tier).total_seconds() + ANSWER_SECONDS)


def approval_limit(settings: "Settings", runtime: Runtime, tier: int) -> dt.timedelta:
    """How long a call may wait for a person."""
    limit = settings.approval_limit()
    if runtime.abilities.defer:
        return limit
    # Half of the run's time, so that the other half is left to do something with the answer.
    return min(limit, dt.timedelta(minutes=settings.tiers[tier - 1].timeout_minutes / 2))


def run_spec(
    settings: "Settings", *, tier: int, session_id: str, resume_session_id: str | None, guard: str | None
) -> RunSpec:
    """Everything a tier's process is told on its command line; nothing is inherited from the tier before.

    ``guard`` are the settings that make it ask before every tool call. Only a run that is given no real work goes
    without.
    """
    wanted = settings.tiers[tier - 1]
    return RunSpec(
        session_id=session_id,
        resume_session_id=resume_session_id,
        model=wanted.model,
        tools=wanted.tools,
        disallowed_tools=wanted.disallowed_tools,
        max_turns=wanted.max_turns,
        max_budget_usd=wanted.max_budget_usd,
        system_prompt=system_prompt(settings.prompt_path(SYSTEM_PROMPT_FILE)),
        append_system_prompt=settings.claude.system_prompt == "append",
        report_schema=json.dumps(SCHEMA, separators=(",", ":")),
        settings_json=guard,
    )


async def launch(
    settings: "Settings",
    runtime: Runtime,
    *,
    tier: int,
    session_id: str,
    resume_session_id: str | None,
    dry_run: bool,
) -> Launched:
    """Start a tier's process. It does nothing before its prompt. OSError when there is no place for its guard."""
    post = Post.open(guard_places(settings))
    try:
        bounds = guard_bounds(settings, runtime, tier)
        spec = run_spec(
            settings,
            tier=tier,
            session_id=session_id,
            resume_session_id=resume_session_id,
            guard=hook_settings(post, bounds, python=sys.executable),
        )
        running = await start(
            [runtime.path, *arguments(runtime, spec)],
            env=environment(
                settings.agent_env,
                tier=tier,
                dry_run=dry_run,
                state_dir=str(settings.state.dir),
                run_marker=session_id,
            ),
            cwd=str(settings.claude.work_dir),
            marker=session_id,
        )
    except BaseException:
        post.close()
        raise
    return Launched(session_id=session_id, tier=tier, dry_run=dry_run, running=running, post=post, bounds=bounds)
