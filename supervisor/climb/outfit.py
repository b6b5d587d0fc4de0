"""Get ready for a climb: the state directory, the CLI, the store. Does I/O. Called from cli and service.

What takes long to import is imported where it is used: the first CLI boots meanwhile.
"""

import tempfile
from typing import TYPE_CHECKING

from supervisor.claude.probe import cached_runtime, find_binary, probe
from supervisor.errors import OpsladderError
from supervisor.model.progress import Watch
from supervisor.model.runtime import Runtime
from supervisor.settings import Settings

if TYPE_CHECKING:
    from supervisor.climb.ladder import Ladder


def make_ladder(settings: Settings, runtime: Runtime, watch: Watch) -> "Ladder":
    """The tools of a climb, with the store open."""
    from supervisor.climb.ladder import Ladder
    from supervisor.prompts import Prompts
    from supervisor.store import open_store

    return Ladder(
        settings=settings,
        store=open_store(settings.database_url()),
        runtime=runtime,
        prompts=Prompts(settings.prompt_dirs),
        watch=watch,
    )


def prepare_state(settings: Settings) -> None:
    """Make the state directory, private, and prove that it can be written to before anything starts."""
    directory = settings.state.dir
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as trial:
            trial.write(b"\n")
    except OSError as error:
        raise OpsladderError(
            f"The state directory {directory} cannot be written to: {error.strerror}.",
            remedy="Set state.dir, make room, or correct its owner.",
        ) from error


async def find_runtime(settings: Settings) -> Runtime:
    """The CLI a cycle will use, and what it can do."""
    binary = find_binary(settings.claude.bin, path_var=settings.agent_env.get("PATH", ""), base_dir=settings.base_dir)
    cache_file = settings.probe_file
    return cached_runtime(binary, cache_file) or await probe(binary, cache_file=cache_file, env=settings.agent_env)
