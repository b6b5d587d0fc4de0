"""A real PostgreSQL server for tests: temporary, reachable only through a socket in its own directory. Does I/O.

Used by fixtures: ``with running_postgres() as server: url = server.new_database()``. As root the server runs as another
user, since PostgreSQL refuses root. When the test process dies, the kernel ends the server.
"""

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

# One group, so that only one worker starts a server.
ON_POSTGRES = (pytest.mark.postgres, pytest.mark.xdist_group("postgres"))

_DEADLINE_SECONDS = 60


def _programs() -> Path | None:
    """The directory with the server's programs, the newest version first."""
    on_path = shutil.which("initdb")
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda bin_: int(bin_.parent.name.split(".")[0]), reverse=True
    )
    candidates = ([Path(on_path).resolve().parent] if on_path else []) + installed
    return next((bin_ for bin_ in candidates if (bin_ / "initdb").exists() and (bin_ / "postgres").exists()), None)


def _server_user() -> str | None:
    """The user to run the server as; ``None`` when that is the present one."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


class Postgres:
    """One server and its directory."""

    def __init__(self, programs: Path, home: Path) -> None:
        self._programs = programs
        self._home = home
        self._user = _server_user()
        self._process: subprocess.Popen[bytes] | None = None
        self._names = (f"test_{number}" for number in itertools.count(1))
        if self._user is not None:
            entry = pwd.getpwnam(self._user)
            os.chown(home, entry.pw_uid, entry.pw_gid)
        options = ["--username=opsladder", "--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8"]
        made = self._run([str(programs / "initdb"), "-D", str(home / "data"), *options])
        if made.wait(_DEADLINE_SECONDS) != 0:
            raise RuntimeError(f"initdb failed: {self._log()}")

    def start(self) -> None:
        """Start the server and wait until it answers."""
        settings = {"listen_addresses": "", "fsync": "off", "shared_buffers": "16MB", "max_connections": "60"}
        command = [str(self._programs / "postgres"), "-D", str(self._home / "data"), "-k", str(self._home)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        if (setpriv := shutil.which("setpriv")) is not None:
            command = [setpriv, "--pdeathsig", "QUIT", *command]
        self._process = self._run(command)
        deadline = time.monotonic() + _DEADLINE_SECONDS
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL did not start: {self._log()}") from error
                time.sleep(0.02)
            else:
                return

    def crash(self) -> None:
        """End the server at once: no checkpoint, every connection is cut."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGQUIT)
        try:
            self._process.wait(_DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def new_database(self) -> str:
        """Make an empty database and return its URL."""
        name = next(self._names)
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def url(self, database: str) -> str:
        return f"postgresql://opsladder@/{database}?host={self._home}"

    def _run(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self._home / "log").open("ab") as log:
            if self._user is None:
                return subprocess.Popen(command, cwd=self._home, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            group = pwd.getpwnam(self._user).pw_gid
            return subprocess.Popen(
                command,
                cwd=self._home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self._user,
                group=group,
                extra_groups=[],
            )

    def _log(self) -> str:
        return (self._home / "log").read_text(errors="replace")[-2000:]


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A started server, ended and deleted afterwards. Skips by name where PostgreSQL is not installed."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's initdb and postgres are neither on PATH nor under /usr/lib/postgresql")
    # Not below pytest's own directory: a socket's path may have 107 bytes, and the server's user has to get there.
    with tempfile.TemporaryDirectory(prefix="opsladder-pg-", ignore_cleanup_errors=True) as home:
        server = Postgres(programs, Path(home))
        try:
            server.start()
            yield server
        finally:
            server.crash()
