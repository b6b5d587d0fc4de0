"""Put an operator's ladder on a stage: private state, scripted model, real CLI. Used by demo, rehearse and doctor.

Nothing of the rehearsal touches the operator's records, credentials or transcripts; what the scenario's tool calls do
in the working directory is real.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from supervisor.model.progress import Progress, TierStarted, Watch
from supervisor.rehearsal.api import ScriptedApi
from supervisor.rehearsal.scenario import Scenario
from supervisor.settings import Settings

SCRIPTED_KEY = "sk-ant-rehearsal-no-money-is-spent"
SCRIPTED_SIGN_IN = "sk-ant-oat01-rehearsal-no-money-is-spent"
# Whoever else serves the model (Bedrock, Vertex, Foundry and so on) would be asked, and paid, in place of the script.
_PROVIDERS = "CLAUDE_CODE_USE_"
_KEY, _TOKEN = "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"
_CREDENTIALS = (_KEY, _TOKEN, "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_UNIX_SOCKET")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def staged(settings: Settings, *, base_url: str, directory: Path, signed_in: bool = False) -> Settings:
    """The operator's settings with the model, the records and the transcripts replaced."""
    env = staged_environment(settings.agent_env, base_url=base_url, directory=directory, signed_in=signed_in)
    return replace(settings.with_state(directory / "state"), agent_env=env)


def staged_environment(
    env: Mapping[str, str], *, base_url: str, directory: Path, signed_in: bool = False
) -> dict[str, str]:
    """An agent's environment that can reach nothing but the scripted API.

    ``signed_in`` is as with a subscription, and not with a key: a usage limit is none to a CLI that has a key.
    """
    return {
        **{name: value for name, value in env.items() if not _leads_elsewhere(name)},
        "ANTHROPIC_BASE_URL": base_url,
        **({_TOKEN: SCRIPTED_SIGN_IN} if signed_in else {_KEY: SCRIPTED_KEY}),
        "CLAUDE_CONFIG_DIR": str(directory / "claude"),
        # The CLI leaves directories of its own in the temporary directory.
        "TMPDIR": str(directory),
        "CLAUDE_CODE_TMPDIR": str(directory),
    }


def _leads_elsewhere(name: str) -> bool:
    return name.startswith(_PROVIDERS) or name in _CREDENTIALS or name.upper() in _PROXIES


@asynccontextmanager
async def stage(
    settings: Settings, scenario: Scenario, *, directory: Path, keep_bodies: bool = False
) -> AsyncIterator[tuple[Settings, ScriptedApi]]:
    """A running scripted API, and settings that use it."""
    async with ScriptedApi(scenario, keep_bodies=keep_bodies) as api:
        yield staged(settings, base_url=api.base_url, directory=directory, signed_in=scenario.limits_usage), api


def cued(api: ScriptedApi, watch: Watch) -> Watch:
    """A watcher that also tells the API which tier each session plays, before the session gets its prompt."""

    def see(progress: Progress) -> None:
        if isinstance(progress, TierStarted) and progress.session.session_id is not None:
            api.expect(progress.session.session_id, progress.session.tier)
        watch(progress)

    return see
