"""A real `opsladder run` to measure, the stand-in CLI it starts, and the socket on which it thinks systemd listens.

Used by ``service``. The stand-in is a shell script that costs next to nothing: what is measured is the supervisor. Each
of its runs says a little, waits at a gate until the benchmark opens it, and reports that all is well.
"""

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil

from bench.binaries import closed_environment
from bench.course import OPSLADDER, BenchmarkFailed

_NOWHERE = "http://127.0.0.1:9"
_DEADLINE_SECONDS = 300.0
_POLL_SECONDS = 0.1
# A sign of life is given every third of it. The shipped unit allows a minute; this is to see more of them.
_WATCHDOG_SECONDS = 3.0

# A service may have so many files open, unless it asks for more.
_AS_SYSTEMD_DOES = 'ulimit -Sn 1024 && exec "$0" "$@"'

_STAND_IN = """#!/bin/sh
case $1 in
--version) echo '2.1.325 (Claude Code)'; exit ;;
--help)
    for name in print output-format resume fork-session session-id tools json-schema system-prompt \\
        append-system-prompt setting-sources settings strict-mcp-config; do echo "  --$name  an option"; done
    exit ;;
esac
while [ $# -gt 0 ]; do
    if [ "$1" = --session-id ]; then id=$2; fi
    shift
done
if [ -z "$(cat)" ]; then exit; fi
say() {
    echo '{"type":"assistant","parent_tool_use_id":null,"message":{"id":"msg_'$1'","model":"claude-haiku-4-5",'\\
'"role":"assistant","usage":{"input_tokens":1000,"output_tokens":10},"content":[{"type":"text","text":"I look."}]}}'
}
echo '{"type":"system","subtype":"init","model":"claude-haiku-4-5","tools":["Bash"],"session_id":"'$id'"}'
say 1
: > "waits-$id"
true < gate 2> /dev/null
say 2
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"","session_id":"'$id'",'\\
'"total_cost_usd":0.01,"structured_output":{"summary":"web is healthy","escalation":{"needed":false}}}'
"""


class Gate:
    """Where every run of the stand-in waits: to open a pipe for reading takes somebody who writes to it."""

    def __init__(self, work_dir: Path) -> None:
        self._work_dir = work_dir
        self._path = work_dir / "gate"
        self._writer: int | None = None
        os.mkfifo(self._path)

    def waiting(self) -> int:
        """How many runs have come as far as this."""
        return sum(1 for _ in self._work_dir.glob("waits-*"))

    def open(self) -> None:
        """Let all go on, those that come later too."""
        if self._writer is None:
            self._writer = os.open(self._path, os.O_RDWR)
            self._path.unlink()

    def close(self) -> None:
        self.open()
        if self._writer is not None:
            os.close(self._writer)


class Manager:
    """The socket of systemd, of which the daemon is told. ``times_ready`` is how often it said that it was."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "notify"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind(str(self._path))
        self._signs: list[float] = []
        self.times_ready = 0

    @property
    def variables(self) -> dict[str, str]:
        """What systemd puts into the environment of a service."""
        return {"NOTIFY_SOCKET": str(self._path), "WATCHDOG_USEC": f"{_WATCHDOG_SECONDS * 1e6:.0f}"}

    def listen(self) -> None:
        """Hear what has been said by now."""
        while select.select([self._socket], [], [], 0)[0]:
            said = self._socket.recv(4096).decode().splitlines()
            self.times_ready += said.count("READY=1")
            if "WATCHDOG=1" in said:
                self._signs.append(time.monotonic())

    def longest_silence(self) -> float:
        """The longest time between two signs of life, as far as they were heard when they were given."""
        return max((after - before for before, after in pairwise(self._signs)), default=0.0)

    def close(self) -> None:
        self._socket.close()
        self._path.unlink()


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the daemon itself has used, without the processes it started."""

    cpu_seconds: float
    rss: int
    uss: int
    threads: int
    descriptors: int


class Daemon:
    """A service that runs."""

    def __init__(self, process: "subprocess.Popen[bytes]", place: "Place", manager: Manager) -> None:
        self._process = process
        self._seen = psutil.Process(process.pid)
        self._place = place
        self._manager = manager

    def usage(self) -> Usage:
        with self._seen.oneshot():
            cpu, memory = self._seen.cpu_times(), self._seen.memory_full_info()
            return Usage(
                cpu_seconds=cpu.user + cpu.system,
                rss=memory.rss,
                uss=memory.uss,
                threads=self._seen.num_threads(),
                descriptors=self._seen.num_fds(),
            )

    def until(self, holds: Callable[[], object], what: str) -> float:
        """Wait for something, and return how many seconds that took. The daemon has to live meanwhile."""
        began = time.monotonic()
        self._manager.listen()
        while not holds():
            if self._process.poll() is not None:
                raise BenchmarkFailed(f"The daemon ended with {self._process.returncode}:\n{self._place.log()}")
            if time.monotonic() - began > _DEADLINE_SECONDS:
                raise BenchmarkFailed(f"Not within {_DEADLINE_SECONDS:g} s: {what}.\n{self._place.log()}")
            time.sleep(_POLL_SECONDS)
            self._manager.listen()
        return time.monotonic() - began

    def until_ready(self, times: int = 1) -> float:
        """Wait until it has said so for the n-th time: once after its start, and once after each reload."""
        return self.until(lambda: self._manager.times_ready >= times, "it is ready")

    def rest(self, seconds: float) -> None:
        """Let it alone for so long."""
        over = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= over, "time passes")

    def reload(self) -> float:
        """Have the configuration read anew. Returns how many seconds that took."""
        times = self._manager.times_ready + 1
        self._process.send_signal(signal.SIGHUP)
        return self.until_ready(times)

    def scrape(self) -> tuple[float, int]:
        """How many seconds Prometheus waits for how many bytes."""
        began = time.monotonic()
        with urllib.request.urlopen(f"{self._place.url}/metrics", timeout=_DEADLINE_SECONDS) as answer:
            size = len(answer.read())
        return time.monotonic() - began, size

    def longest_silence(self) -> float:
        return self._manager.longest_silence()

    def end(self) -> None:
        """Ask it to end, which it does without a fault."""
        self._process.send_signal(signal.SIGTERM)
        if (code := self._process.wait(_DEADLINE_SECONDS)) != 0:
            raise BenchmarkFailed(f"The daemon ended with {code}:\n{self._place.log()}")


class Place:
    """Everything a daemon needs, in one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home, self.work_dir = directory / "home", directory / "work"
        for made in (self.home, self.work_dir):
            made.mkdir()
        stand_in = directory / "claude"
        stand_in.write_text(_STAND_IN, encoding="utf-8")
        stand_in.chmod(0o755)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.database_url = f"sqlite:///{directory}/state/opsladder.db"
        self._config = directory / "opsladder.toml"
        self._log = directory / "log"
        self._env = {
            **closed_environment(home=self.home, base_url=_NOWHERE),
            "OPSLADDER_CLAUDE__BIN": str(stand_in),
            "OPSLADDER_CLAUDE__WORK_DIR": str(self.work_dir),
            "OPSLADDER_STATE__DIR": str(directory / "state"),
            "OPSLADDER_WEB__PORT": str(port),
        }

    def configure(self, text: str) -> None:
        self._config.write_text(text, encoding="utf-8")

    def log(self) -> str:
        """The end of what the daemon said."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-4000:]

    def complaints(self) -> list[str]:
        """Whatever the daemon said that was no mere information."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if " info: " not in line]

    def upgrade(self) -> None:
        """Make the database, which every daemon but the very first finds made."""
        command = [OPSLADDER, "db", "upgrade", "--config", str(self._config)]
        subprocess.run(command, env=self._env, cwd=self.directory, check=True, capture_output=True)

    @contextmanager
    def daemon(self) -> Iterator[Daemon]:
        """One that has just been started. Nothing of it is left afterwards."""
        manager = Manager(self.directory)
        with self._log.open("wb") as log:
            process = subprocess.Popen(
                ["sh", "-c", _AS_SYSTEMD_DOES, OPSLADDER, "run", "--config", str(self._config)],
                env={**self._env, **manager.variables},
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            yield Daemon(process, self, manager)
        finally:
            process.kill()
            process.wait()
            manager.close()
            self._end_all()

    def _end_all(self) -> None:
        """End what a daemon that had to be killed left behind, known by its home."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("HOME") == str(self.home):
                    process.kill()
