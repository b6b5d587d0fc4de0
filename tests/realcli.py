"""The real Claude CLI for tests: where its binaries come from, a closed environment for it, one run with its events.

Two versions, because they differ in what a resumed run counts: the one that the installed SDK carries, and an older one
that is fetched once with pip into ``.cache`` of the checkout. Does I/O; imported by tests and conftest.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

NEW_VERSION = "2.1.325"
OLD_VERSION = "2.1.225"
_OLD_SDK = "0.2.133"
_MEMBER = "claude_agent_sdk/_bundled/claude"
_CACHE = Path(__file__).resolve().parent.parent / ".cache"
_DOWNLOAD_SECONDS = 600


class CliMissing(Exception):
    """A binary that cannot be had here; the message says which and why."""


def find_new_cli() -> Path:
    """The binary inside the installed SDK; the SDK itself is not imported."""
    spec = find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        raise CliMissing("claude-agent-sdk is not installed: its wheel carries the Claude CLI")
    binary = Path(spec.origin).parent / "_bundled" / "claude"
    if not os.access(binary, os.X_OK):
        raise CliMissing(f"the installed claude-agent-sdk carries no Claude CLI at {binary}")
    return binary


def find_old_cli() -> Path:
    """The binary of an older SDK, downloaded the first time. Safe against other test processes doing the same."""
    home = _CACHE / f"claude-agent-sdk-{_OLD_SDK}"
    binary = home / "claude"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():
            _fetch(binary)
    return binary


def _fetch(binary: Path) -> None:
    with tempfile.TemporaryDirectory(dir=binary.parent) as scratch:
        wanted = f"claude-agent-sdk=={_OLD_SDK}"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        try:
            subprocess.run(
                [*command, "--only-binary", ":all:", "--dest", scratch, wanted],
                check=True,
                capture_output=True,
                text=True,
                timeout=_DOWNLOAD_SECONDS,
            )
        except subprocess.CalledProcessError as problem:
            last = (problem.stderr.strip().splitlines() or ["no message"])[-1]
            raise CliMissing(
                f"pip cannot download {wanted}, which carries Claude CLI {OLD_VERSION}: {last}"
            ) from problem
        except subprocess.TimeoutExpired as problem:
            raise CliMissing(f"pip did not download {wanted} within {_DOWNLOAD_SECONDS} seconds") from problem
        wheel = next(Path(scratch).glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            if _MEMBER not in archive.namelist():
                raise CliMissing(f"{wheel.name} carries no Claude CLI for this platform")
            unpacked = Path(archive.extract(_MEMBER, scratch))
        unpacked.chmod(0o755)
        # Whoever finds the final name finds a complete file, also after a crash in the middle.
        unpacked.replace(binary)


def closed_environment(*, home: Path, base_url: str) -> dict[str, str]:
    """An environment for the CLI with nothing of the caller's: it can reach loopback, its own home and nothing else."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        # Otherwise the CLI leaves a directory for each session in the machine's /tmp.
        "TMPDIR": str(home),
        "CLAUDE_CODE_TMPDIR": str(home),
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_KEY": "sk-ant-rehearsal",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class CliRun:
    """A finished run: its exit code, every event of its stream, and what it wrote to stderr."""

    exit_code: int
    events: tuple[dict[str, Any], ...]
    stderr: str

    @property
    def result(self) -> dict[str, Any]:
        results = [event for event in self.events if event.get("type") == "result"]
        assert results, f"no result event; stderr: {self.stderr}"
        return results[-1]

    def of_type(self, kind: str, subtype: str | None = None) -> list[dict[str, Any]]:
        return [e for e in self.events if e.get("type") == kind and subtype in (None, e.get("subtype"))]

    @property
    def tool_results(self) -> list[dict[str, Any]]:
        return [
            block
            for event in self.of_type("user")
            for block in event["message"]["content"]
            if isinstance(block, dict) and block.get("type") == "tool_result"
        ]


async def run_cli(
    binary: Path,
    arguments: Sequence[str],
    *,
    prompt: str,
    env: Mapping[str, str],
    cwd: Path,
    deadline_seconds: float = 60.0,
) -> CliRun:
    """Run the CLI with a streamed output and its prompt on stdin, to its end or to the deadline."""
    process = await asyncio.create_subprocess_exec(
        binary,
        *("-p", "--output-format", "stream-json", "--verbose", *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
        cwd=cwd,
    )
    try:
        stdout, stderr = await asyncio.wait_for(process.communicate(prompt.encode()), deadline_seconds)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    assert process.returncode is not None
    events = tuple(json.loads(line) for line in stdout.splitlines() if line.strip())
    return CliRun(exit_code=process.returncode, events=events, stderr=stderr.decode(errors="replace"))
