"""The installed `opsladder` in a process of its own, from an environment with nothing of the caller's. Does I/O.

Imported by the tests of the command line and of the README.
"""

import asyncio
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from realcli import closed_environment

from supervisor.rehearsal.api import ScriptedApi
from supervisor.rehearsal.scenario import Scenario

OPSLADDER = Path(sys.executable).parent / "opsladder"
NOWHERE = "http://127.0.0.1:9"
DEADLINE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A finished command."""

    exit_code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Stdout as the one JSON document it has to be."""
        return json.loads(self.out)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """`opsladder` for one test: ``run("chains", "--json")``. Home, work and state are below its directory."""

    directory: Path
    env: Mapping[str, str]

    @property
    def work(self) -> Path:
        return self.directory / "work"

    @property
    def state(self) -> Path:
        return self.directory / "state"

    def environment(self, **more: str) -> dict[str, str]:
        return {name: value for name, value in {**self.env, **more}.items() if value}

    def run(self, *arguments: str, by: Sequence[str] = (), **env: str) -> Ran:
        """Run to the end; an empty variable is one that is not set. ``by`` is a command that runs the command."""
        done = subprocess.run(
            [*by, str(OPSLADDER), *arguments],
            cwd=self.work,
            env=self.environment(**env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        return Ran(exit_code=done.returncode, out=done.stdout, err=done.stderr)

    @contextmanager
    def started(self, *arguments: str, **env: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        """Start it, with stdout and stderr in the file that is given back; it does not outlive the block."""
        output = self.directory / f"{'-'.join(arguments)}.{len(list(self.directory.iterdir()))}.out"
        with output.open("wb") as file:
            # Whoever runs the tests in the background ignores SIGINT, and children would inherit that.
            process = subprocess.Popen(
                ["env", "--default-signal=INT", str(OPSLADDER), *arguments],
                cwd=self.work,
                env=self.environment(**env),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        try:
            yield process, output
        finally:
            process.terminate()
            try:
                process.wait(DEADLINE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Onlooker(CommandLine):
    """A command line on records that do not change: asked the same again, it gives the same answer."""

    answers: dict[object, Ran] = field(default_factory=dict)

    def run(self, *arguments: str, by: Sequence[str] = (), **env: str) -> Ran:
        question = (arguments, tuple(by), tuple(env.items()))
        if question not in self.answers:
            self.answers[question] = CommandLine.run(self, *arguments, by=by, **env)
        return self.answers[question]


def command_line(directory: Path, *, base_url: str = NOWHERE, **env: str) -> CommandLine:
    for name in ("home", "work"):
        (directory / name).mkdir(exist_ok=True)
    base = closed_environment(home=directory / "home", base_url=base_url)
    own = {
        "OPSLADDER_STATE__DIR": str(directory / "state"),
        "OPSLADDER_CLAUDE__BIN": str(directory / "no-such-claude"),
        "COLUMNS": "80",
    }
    return CommandLine(directory=directory, env={**base, **own, **env})


def as_ordinary_user() -> list[str]:
    """What to put before a command so that file permissions hold for it, also when the tests run as root."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("root may read everything, and setpriv is not installed to take that from it")
    return [setpriv, "--bounding-set", "-dac_override,-dac_read_search"]


@contextmanager
def scripted_api(scenario: Scenario, *, tiers: Sequence[int]) -> Iterator[str]:
    """The address of a scripted API whose sessions play these tiers in the order in which they appear."""
    ready: queue.Queue[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = queue.Queue()

    async def serve() -> None:
        stop = asyncio.Event()
        async with ScriptedApi(scenario, fallback=tiers) as api:
            ready.put((api.base_url, asyncio.get_running_loop(), stop))
            await stop.wait()

    server = threading.Thread(target=lambda: asyncio.run(serve()))
    server.start()
    address, loop, stop = ready.get(timeout=DEADLINE_SECONDS)
    try:
        yield address
    finally:
        loop.call_soon_threadsafe(stop.set)
        server.join(DEADLINE_SECONDS)
