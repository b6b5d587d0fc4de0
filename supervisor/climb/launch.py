"""Turn a tier of the settings into a CLI process that waits for its prompt. Spawns through ``claude.process``.

Called from climb.run, and from the cli before the store is loaded: a CLI takes longest to start, so the first one boots
while the rest of the program does. Until it is given a prompt it calls no API and runs no tool, and the prompt is
given only once the record stands; ended without one, it leaves nothing behind.
"""

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from supervisor.claude.command import RunSpec, arguments, environment
from supervisor.claude.process import Running, start
from supervisor.decide.report import SCHEMA
from supervisor.model.runtime import Runtime
from supervisor.prompts import system_prompt

if TYPE_CHECKING:
    from supervisor.settings import Settings

SYSTEM_PROMPT_FILE = "system.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """A CLI that is booting or waits for its prompt."""

    session_id: str
    tier: int
    dry_run: bool
    running: Running


def new_session_id() -> str:
    """Ids before processes: minted here, stored, and only then used."""
    return str(uuid.uuid4())


def run_spec(settings: "Settings", *, tier: int, session_id: str, resume_session_id: str | None) -> RunSpec:
    """Everything a tier's process is told on its command line; nothing is inherited from the tier before."""
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
        settings_json=None,
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
    """Start a tier's process. It does nothing before its prompt."""
    spec = run_spec(settings, tier=tier, session_id=session_id, resume_session_id=resume_session_id)
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
    return Launched(session_id=session_id, tier=tier, dry_run=dry_run, running=running)
