"""The fixed size of a Tier 1 API call with opsladder's command line, against a plain one. Run by ``__main__``.

Bytes of the first request less the prompt, as the scripted API receives them. It is paid again on every turn.
"""

import asyncio
import tempfile
from pathlib import Path

from bench.binaries import CONFIG, both, closed_environment
from supervisor.claude.probe import probe
from supervisor.rehearsal.api import ScriptedApi
from supervisor.rehearsal.measure import measure_fixed_sizes
from supervisor.rehearsal.scenario import Scenario, Script, Turn
from supervisor.settings import load_settings

_AIM = 0.30
_PROMPT = "measure"
_ANSWER = Scenario(title="answer", scripts=(Script(tier=1, turns=(Turn(text="Done.", repeat=True),)),))


def run() -> None:
    for version, binary in both().items():
        with tempfile.TemporaryDirectory(prefix="opsladder-bench-", ignore_cleanup_errors=True) as scratch:
            ours, plain = asyncio.run(_measure(binary, Path(scratch)))
        print(
            f"  Claude CLI {version}: ours {ours} bytes, plain {plain} bytes, ratio {ours / plain:.3f} "
            f"(aim: at most {_AIM:.2f})",
            flush=True,
        )


async def _measure(binary: Path, directory: Path) -> tuple[int, int]:
    for name in ("home", "work", "stage"):
        (directory / name).mkdir()
    config = directory / "opsladder.toml"
    config.write_text(CONFIG, encoding="utf-8")
    own = {"OPSLADDER_CLAUDE__WORK_DIR": str(directory / "work"), "OPSLADDER_STATE__DIR": str(directory / "state")}
    async with ScriptedApi(_ANSWER, fallback=(1,)) as api:
        env = closed_environment(home=directory / "home", base_url=api.base_url)
        settings = load_settings(config, {**env, **own}, cwd=directory)
        runtime = await probe(binary, cache_file=None, env=settings.agent_env)
        fixed = await measure_fixed_sizes(settings, runtime, directory=directory / "stage")
        tier = settings.tiers[0]
        process = await asyncio.create_subprocess_exec(
            *(binary, "-p", "--model", tier.model, "--allowedTools", "Bash,Read,Grep,Glob"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            env=env,
            cwd=directory / "work",
        )
        await process.communicate(_PROMPT.encode())
        asked = next(call for call in api.calls if not call.side)
    return fixed[0].bytes, asked.request_bytes - len(_PROMPT)
