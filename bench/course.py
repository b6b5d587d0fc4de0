"""One CLI with everything a climb needs, and the two ways to climb: `opsladder cycle` and a shell loop. Runs both.

Used by ``ladder``, which compares them, and by ``breakdown``, which looks into them. A climb gets a home of its own, so
that none finds another's transcripts; records and the probe of the CLI are kept, as on a machine in use. What a cycle
keeps of an open incident is dropped after it: the next one would resume it, which the loop does not do.
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.api_server import CLIMB, ApiServer
from bench.binaries import CONFIG, closed_environment
from supervisor.claude.command import arguments
from supervisor.climb.launch import new_session_id, run_spec
from supervisor.climb.outfit import find_runtime
from supervisor.model.cycle import EventKind
from supervisor.settings import Settings, load_settings
from supervisor.store import open_store

OPSLADDER = str(Path(sys.executable).parent / "opsladder")
_LOOP = Path(__file__).with_name("loop.sh")
_TIERS = (1, 2, 3)
_EXPECTED = {f"tier {script.tier}": len(script.turns) for script in CLIMB.scripts}
_DEADLINE_SECONDS = 300


class BenchmarkFailed(Exception):
    """Something other than a number came out."""


def missing_tools() -> list[str]:
    """What the comparison needs and this machine does not have."""
    return [tool for tool in ("bash", "jq", OPSLADDER) if shutil.which(tool) is None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Climb:
    """One climb that was measured, in seconds since the epoch."""

    started: float
    ended: float
    stderr: str

    @property
    def seconds(self) -> float:
        return self.ended - self.started


class Course:
    """Climbs with one binary."""

    def __init__(self, binary: Path, server: ApiServer, directory: Path) -> None:
        self._binary = binary
        self._server = server
        self._directory = directory
        self._work_dir = directory / "work"
        self._work_dir.mkdir()
        self._config = directory / "opsladder.toml"
        self._config.write_text(CONFIG, encoding="utf-8")

    def warm_up(self) -> None:
        """Climb once each way, which makes the database, the probe's cache and Python's compiled modules.

        The loop is given the very prompts that the cycle has recorded, and the flags that opsladder makes.
        """
        self.cycle()
        settings = self._settings()
        runtime = asyncio.run(find_runtime(settings))
        for tier, prompt in zip(_TIERS, _recorded_prompts(settings), strict=True):
            spec = run_spec(settings, tier=tier, session_id=new_session_id(), resume_session_id=None, guard=None)
            *flags, _, _ = arguments(runtime, spec)
            (self._directory / f"flags-{tier}").write_text("".join(f"{flag}\0" for flag in flags), encoding="utf-8")
            (self._directory / f"prompt-{tier}").write_text(prompt, encoding="utf-8")
        self.loop()

    def cycle(self, opsladder: Sequence[str] = (OPSLADDER,)) -> Climb:
        """Climb with the product; ``opsladder`` is how it is started."""
        with self._chain() as env:
            command = [*opsladder, "cycle", "--config", str(self._config)]
            climb = self._climb(command, {**env, **self._own_variables()})
        with open_store(self._settings().database_url(), create=False) as store:
            store.drop_sessions()
        return climb

    def loop(self) -> Climb:
        """Climb with the shell."""
        with self._chain() as env:
            return self._climb(["bash", str(_LOOP), str(self._binary), str(self._directory)], env)

    @contextmanager
    def _chain(self) -> Iterator[dict[str, str]]:
        """An empty environment plus what a CLI needs. Afterwards every tier must have asked all its questions."""
        base_url, _ = self._server.new_chain()
        with tempfile.TemporaryDirectory(dir=self._directory, ignore_cleanup_errors=True) as home:
            yield closed_environment(home=Path(home), base_url=base_url)
        _, answered = self._server.new_chain()
        if answered != _EXPECTED:
            raise BenchmarkFailed(f"The API answered {answered} and not {_EXPECTED}.")

    def _climb(self, command: list[str], env: dict[str, str]) -> Climb:
        started = time.time()
        done = subprocess.run(
            command,
            env=env,
            cwd=self._work_dir,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_DEADLINE_SECONDS,
        )
        ended = time.time()
        if done.returncode != 0:
            raise BenchmarkFailed(f"{command[0]} exited with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return Climb(started=started, ended=ended, stderr=done.stderr)

    def _own_variables(self) -> dict[str, str]:
        return {
            "OPSLADDER_CLAUDE__BIN": str(self._binary),
            "OPSLADDER_CLAUDE__WORK_DIR": str(self._work_dir),
            "OPSLADDER_STATE__DIR": str(self._directory / "state"),
        }

    def _settings(self) -> Settings:
        env = closed_environment(home=self._directory, base_url="http://127.0.0.1:9")
        return load_settings(self._config, {**env, **self._own_variables()}, cwd=self._work_dir)


def _recorded_prompts(settings: Settings) -> list[str]:
    with open_store(settings.database_url(), create=False) as store:
        return [event.text for event in store.events(cycle_id=1, kinds=(EventKind.PROMPT,))]
