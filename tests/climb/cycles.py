"""Run ``opsladder cycle`` as its own process in a directory of the test's own. Does I/O; imported by tests of climb."""

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psutil
from realcli import closed_environment

from supervisor.model.cycle import Chain, Event
from supervisor.model.session import UNFINISHED, Session
from supervisor.rehearsal.api import ScriptedApi
from supervisor.rehearsal.scenario import Scenario
from supervisor.store import Store, open_store, upgrade

DEADLINE_SECONDS = 60.0
NOWHERE = "http://127.0.0.1:9"
_RUN = "from supervisor.cli import main; main()"
# What takes minutes in earnest takes a moment here.
_IMPATIENT = """
from supervisor.claude import probe
from supervisor.climb.ladder import Ladder
Ladder.__init__.__kwdefaults__["store_patience_seconds"] = {seconds}
probe.probe.__kwdefaults__["seconds"] = {seconds}
"""


# Every place of the present test; cleared after it.
PLACES: list["Place"] = []


def until(reached: Callable[[], Any], *, what: str) -> Any:
    """Ask until the answer is yes, and return it."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (answer := reached()):
        assert time.monotonic() < deadline, f"not within {DEADLINE_SECONDS:g} seconds: {what}"
        time.sleep(0.01)
    return answer


@cache
def empty_database() -> bytes:
    """A migrated database without records: migrating anew takes longer than most cycles here."""
    with tempfile.TemporaryDirectory() as directory:
        upgrade(f"sqlite:///{directory}/opsladder.db")
        return (Path(directory) / "opsladder.db").read_bytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A command that has ended."""

    exit_code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


class Started:
    """A command that runs, in a session of its own like one in a terminal."""

    def __init__(self, command: list[str], env: dict[str, str], cwd: Path) -> None:
        self.process = subprocess.Popen(
            command,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def done(self, seconds: float = DEADLINE_SECONDS) -> Done:
        try:
            out, err = self.process.communicate(timeout=seconds)
        finally:
            self.let_go()
        return Done(exit_code=self.process.returncode, out=out, err=err)

    def let_go(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


class Place:
    """Where cycles run: a configuration, a working directory, a home, a state directory."""

    def __init__(
        self,
        root: Path,
        cli: Path,
        *,
        base_url: str = NOWHERE,
        ways: str = "healthy",
        lacks: str = "",
        state: Path | None = None,
        database: str | None = None,
        schedules: tuple[str, ...] = ("default",),
        config: str = "",
    ) -> None:
        PLACES.append(self)
        self._started: list[Started] = []
        self.root = root
        self.home, self.work = root / "home", root / "work"
        for directory in (self.home, self.work):
            directory.mkdir(exist_ok=True)
        self.state = state or root / "state"
        if state is None and database is None:
            self.state.mkdir(mode=0o700, exist_ok=True)
            (self.state / "opsladder.db").write_bytes(empty_database())
        self.url = database or f"sqlite:///{self.state}/opsladder.db"
        agent = ", ".join(
            f"{name} = {json.dumps(value)}"
            for name, value in {"STANDIN": ways, "STANDIN_LACKS": lacks, "STANDIN_PATH": str(cli)}.items()
        )
        tables = "".join(f'[[schedules]]\nname = "{name}"\n' for name in schedules)
        claude = f"[claude]\nend_grace_seconds = 2\nenv = {{ {agent} }}\n"
        (root / "opsladder.toml").write_text(claude + config + tables)
        self.env = {
            **closed_environment(home=self.home, base_url=base_url),
            "OPSLADDER_CONFIG": str(root / "opsladder.toml"),
            "OPSLADDER_CLAUDE__BIN": str(cli),
            "OPSLADDER_CLAUDE__WORK_DIR": str(self.work),
            "OPSLADDER_STATE__DIR": str(self.state),
        }
        if database is not None:
            self.env["OPSLADDER_STATE__DATABASE_URL"] = database

    def start(self, *arguments: str, patience: float | None = None, prelude: str = "", **env: str) -> Started:
        """Start a cycle. ``prelude`` is Python that its process does first."""
        if patience is not None:
            prelude += _IMPATIENT.format(seconds=patience)
        command = [sys.executable, "-W", "error", "-c", prelude + _RUN, "cycle", *arguments]
        started = Started(command, {**self.env, **env}, self.root)
        self._started.append(started)
        return started

    def cycle(self, *arguments: str, patience: float | None = None, prelude: str = "", **env: str) -> Done:
        return self.start(*arguments, patience=patience, prelude=prelude, **env).done()

    @contextmanager
    def store(self) -> Iterator[Store]:
        with open_store(self.url) as store:
            yield store

    def chains(self) -> list[Chain]:
        """Oldest first."""
        with self.store() as store:
            return store.chains(100)[::-1]

    def events(self, session: Session) -> list[Event]:
        with self.store() as store:
            return store.events(session_id=session.id)

    def notices(self, chain: Chain) -> list[Event]:
        with self.store() as store:
            return [e for e in store.events(cycle_id=chain.cycle.id) if e.kind == "notice"]

    def until_reached(self) -> None:
        """Wait until a tool of the agent runs."""
        until((self.work / "reached").exists, what="the agent is at work")

    def until_recorded(self) -> None:
        """Wait until some of what the agent says is in the records."""
        self.until_reached()
        until(lambda: self.chains()[-1].sessions[-1].messages > 3, what="messages are recorded")

    def go_on(self) -> None:
        """Let an agent that waits finish."""
        (self.work / "go").touch()

    def words_said_once(self, session: Session) -> int:
        """How many words the record has, from the first on, in their order and each once."""
        texts = [e.text for e in self.events(session) if e.kind == "text"]
        said = [int(text.split()[1]) for text in texts if text.startswith("word")]
        assert said == list(range(2, len(said) + 2))
        return len(said)

    def processes(self) -> list[str]:
        """Every living process of this place, known by its home."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("HOME") == str(self.home) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(f"{process.pid} {' '.join(process.cmdline())}")
        return found

    def clear(self) -> None:
        """End what a failed test left, and let go of what it started."""
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                psutil.Process(int(process.split()[0])).kill()
        for started in self._started:
            started.let_go()

    def files_left(self) -> list[str]:
        return [str(path) for name in ("streams", "handoffs") for path in (self.state / name).glob("*")]

    def assert_nothing_left(self) -> None:
        """No process, no file of a run, no record that is not over."""
        until(lambda: not self.processes(), what="no process is left")
        assert self.files_left() == []
        for chain in self.chains():
            assert chain.cycle.status != "running"
            assert not [s for s in chain.sessions if s.status in UNFINISHED]


@contextmanager
def scripted_api(scenario: Scenario, *, fallback: tuple[int, ...] = (1, 2, 3)) -> Iterator[ScriptedApi]:
    """The scripted API in a thread of its own, for commands that run as processes."""
    ready, over = threading.Event(), threading.Event()
    apis: list[ScriptedApi] = []

    async def serve() -> None:
        async with ScriptedApi(scenario, keep_bodies=True, fallback=fallback) as api:
            apis.append(api)
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(DEADLINE_SECONDS)
        yield apis[0]
    finally:
        over.set()
        thread.join()
