"""Measure the fixed part of every API call: run each tier's real command line against the scripted API once.

Used by doctor and the benchmark. Starts the CLI, listens on loopback, leaves nothing behind.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from supervisor.claude.process import Limits, watch
from supervisor.climb.launch import launch, new_session_id
from supervisor.errors import ClaudeNotUsable
from supervisor.model.runtime import Runtime
from supervisor.rehearsal.scenario import Scenario
from supervisor.rehearsal.stage import stage
from supervisor.settings import Settings

_PROMPT = "measure"
_LIMITS = Limits(
    first_output_seconds=60.0,
    silence_seconds=60.0,
    wall_clock_seconds=120.0,
    end_grace_seconds=2.0,
    overload_wait_seconds=10.0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSize:
    """What one call of a tier carries before any work, in bytes of request."""

    tier: int
    bytes: int


async def measure_fixed_sizes(settings: Settings, runtime: Runtime, *, directory: Path) -> list[FixedSize]:
    """The size of each tier's first request, less the few bytes of the prompt it was given."""
    sizes: list[FixedSize] = []
    async with stage(settings, Scenario(title="measure", scripts=()), directory=directory) as (staged, api):
        for tier in range(1, len(settings.tiers) + 1):
            session_id = new_session_id()
            api.expect(session_id, tier)
            launched = await launch(
                staged, runtime, tier=tier, session_id=session_id, resume_session_id=None, dry_run=True
            )
            try:
                await watch(
                    launched.running,
                    prompt=_PROMPT,
                    limits=_LIMITS,
                    on_event=lambda _: None,
                    stop=asyncio.Event(),
                )
            finally:
                await launched.end(_LIMITS.end_grace_seconds)
            asked = [c for c in api.calls if c.session_id == session_id and not c.side]
            if not asked:
                raise ClaudeNotUsable(
                    f"The CLI at {runtime.path} sent no request for tier {tier}.",
                    remedy="Run it by hand with `claude -p hello` and see what it says.",
                )
            sizes.append(FixedSize(tier=tier, bytes=asked[0].request_bytes - len(_PROMPT)))
    return sizes
