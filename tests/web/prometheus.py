"""A real Prometheus for tests, and its promtool. Does I/O. Skips by name where they are not installed."""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

RULES = Path(__file__).resolve().parents[2] / "config" / "prometheus-rules.yml"

_DEADLINE_SECONDS = 60.0
_CONFIG = """
global:
  scrape_interval: 200ms
  evaluation_interval: 200ms
rule_files: [{rules}]
scrape_configs:
  - job_name: opsladder
    static_configs:
      - targets: ["{target}"]
"""


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian package prometheus)")
    return found


def promtool(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program("promtool"), *arguments], input=given, capture_output=True, text=True, timeout=60, check=False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """A running server."""

    address: str

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its HTTP API."""
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=_DEADLINE_SECONDS) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def query(self, expression: str) -> list[Any]:
        found: list[Any] = self.ask("query", query=expression)["result"]
        return found

    def values(self, expression: str, label: str) -> dict[str, float]:
        return {found["metric"][label]: float(found["value"][1]) for found in self.query(expression)}

    def number(self, expression: str) -> float | None:
        found = self.query(expression)
        return float(found[0]["value"][1]) if found else None


def eventually(holds: Callable[[], object]) -> None:
    """Wait until something holds, which takes Prometheus a scrape or two."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.1)


@contextmanager
def running_prometheus(target: str, home: Path) -> Iterator[Prometheus]:
    """A server with our rules that scrapes the target, ended afterwards."""
    command = [program("prometheus")]
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (home / "prometheus.yml").write_text(_CONFIG.format(rules=RULES, target=target))
    command += [f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/data"]
    command += [f"--web.listen-address={address}", "--log.level=warn"]
    if (setpriv := shutil.which("setpriv")) is not None:
        command = [setpriv, "--pdeathsig", "KILL", *command]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=home, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        eventually(lambda: _ready(address, process, home / "log"))
        yield Prometheus(address=address)
    finally:
        process.terminate()
        try:
            process.wait(_DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _ready(address: str, process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, f"Prometheus did not start: {log.read_text(errors='replace')[-2000:]}"
    try:
        with urllib.request.urlopen(f"http://{address}/-/ready", timeout=_DEADLINE_SECONDS):
            return True
    except OSError:
        return False
