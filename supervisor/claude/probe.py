"""Find the Claude CLI and learn what it can do. Runs it, and caches the answer. Called from cli and climb.

The cached answer is read without an event loop: it is on the way of every start.
"""

import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, fields
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from supervisor.claude.fields import mapping
from supervisor.durable import write_durably
from supervisor.errors import ClaudeNotUsable
from supervisor.model.runtime import Abilities, Runtime

logger = logging.getLogger(__name__)

_SCHEMA = 1
_PROBE_SECONDS = 20.0
_MOST_OUTPUT = 1024 * 1024
_DEFER_SINCE = (2, 1, 176)
_GENUINE = "(Claude Code)"
_VERSION = re.compile(r"\d+(?:\.\d+)+")
# An option is defined near the margin; further in, option names are only talked about.
_OPTION = re.compile(r"^ {1,8}(?:-\w, *)?(--[\w-]+)(?:, *(--[\w-]+))?", re.MULTILINE)
_REMEDY = "Install the Claude CLI (`pip install 'opsladder[cli]'` brings one), or set claude.bin to where it is."

_FLAGS = {
    "resume": "--resume",
    "fork_session": "--fork-session",
    "session_id": "--session-id",
    "tools": "--tools",
    "json_schema": "--json-schema",
    "partial_messages": "--include-partial-messages",
    "system_prompt": "--system-prompt",
    "append_system_prompt": "--append-system-prompt",
    "setting_sources": "--setting-sources",
    "settings": "--settings",
    "strict_mcp_config": "--strict-mcp-config",
    "max_budget_usd": "--max-budget-usd",
}


def find_binary(configured: str | None, *, path_var: str, base_dir: Path) -> Path:
    """The CLI to use: a name is looked up on the PATH, a path is taken from ``base_dir``.

    Without one it is ``claude`` on the PATH, else the one that comes with the Python SDK.
    """
    if configured is None:
        found = shutil.which("claude", path=path_var)
        binary = Path(found) if found else _sdk_binary()
        if binary is None:
            raise ClaudeNotUsable(f"There is no claude on the PATH ({path_var}).", remedy=_REMEDY)
        return _executable(binary)
    if "/" not in configured:
        found = shutil.which(configured, path=path_var)
        if found is None:
            raise ClaudeNotUsable(f"There is no executable {configured} on the PATH ({path_var}).", remedy=_REMEDY)
        return Path(found).absolute()
    return _executable(base_dir / Path(configured).expanduser())


def cached_runtime(binary: Path, cache_file: Path) -> Runtime | None:
    """What an earlier probe found, if it was of this very file on this host."""
    try:
        cached = mapping(json.loads(cache_file.read_bytes())) or {}
        return _runtime_from(cached) if cached.get("key") == _key(binary) else None
    except (OSError, ValueError, TypeError, RecursionError):
        return None


async def probe(
    binary: Path, *, cache_file: Path | None, env: Mapping[str, str], seconds: float = _PROBE_SECONDS
) -> Runtime:
    """Ask the binary what it is, or take what is cached. Nothing of the user's is read or written by it."""
    if cache_file is not None and (cached := cached_runtime(binary, cache_file)) is not None:
        return cached
    _executable(binary)
    key = _key(binary)
    with tempfile.TemporaryDirectory(prefix="opsladder-probe-", ignore_cleanup_errors=True) as scratch:
        private = {**env, "HOME": scratch, "CLAUDE_CONFIG_DIR": scratch, "DISABLE_AUTOUPDATER": "1"}
        says_version = await _ask(binary, "--version", env=private, cwd=scratch, seconds=seconds)
        says_help = await _ask(binary, "--help", env=private, cwd=scratch, seconds=seconds)
    runtime = _runtime(binary, says_version, says_help)
    if cache_file is not None:
        _write_cache(cache_file, {"schema": _SCHEMA, "key": key, "runtime": asdict(runtime)})
    return runtime


def _sdk_binary() -> Path | None:
    spec = find_spec("claude_agent_sdk")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        binary = Path(place) / "_bundled" / "claude"
        if binary.is_file():
            return binary
    return None


def _executable(binary: Path) -> Path:
    binary = binary.absolute()
    if not binary.exists():
        raise ClaudeNotUsable(f"{binary} does not exist.", remedy=_REMEDY)
    if binary.is_dir():
        raise ClaudeNotUsable(f"{binary} is a directory.", remedy="Set claude.bin to the program itself.")
    if not os.access(binary, os.X_OK):
        raise ClaudeNotUsable(f"{binary} is not executable.", remedy=f"Run `chmod +x {binary}`.")
    return binary


async def _ask(binary: Path, flag: str, *, env: Mapping[str, str], cwd: str, seconds: float) -> str:
    # Here, because a cached answer needs neither an event loop nor psutil.
    from supervisor.claude.spawn import output_of

    output = await output_of([str(binary), flag], env=env, cwd=cwd, seconds=seconds, most_bytes=_MOST_OUTPUT)
    if not output.complete:
        too_much = len(output.stdout) >= _MOST_OUTPUT
        problem = "prints without end" if too_much else f"did not answer within {seconds:g} seconds"
        raise ClaudeNotUsable(f"{binary} {flag} {problem}: it is not a Claude CLI, or a broken one.", remedy=_REMEDY)
    return output.stdout.decode("utf-8", "replace")


def _runtime(binary: Path, says_version: str, says_help: str) -> Runtime:
    genuine = _GENUINE in says_version
    options = {option for names in _OPTION.findall(says_help) for option in names if option}
    if not {"--print", "--output-format"} <= options:
        if not genuine:
            raise ClaudeNotUsable(
                f"{binary} is not a Claude CLI: its --help offers no --print and --output-format.", remedy=_REMEDY
            )
        raise ClaudeNotUsable(
            f"{binary} says that it is a Claude CLI, but its --help offers no --print and --output-format.",
            remedy="Use a newer Claude CLI.",
        )
    numbers = _VERSION.search(says_version)
    version = numbers.group() if numbers else (says_version.strip().splitlines() or ["unknown"])[0][:40]
    # Which abilities a fork took over cannot be told from its own version numbers.
    defers = genuine and numbers is not None and tuple(int(n) for n in version.split(".")) >= _DEFER_SINCE
    abilities = Abilities(defer=defers, **{ability: flag in options for ability, flag in _FLAGS.items()})
    host, real_path = _host(), str(binary.resolve())
    identity = json.dumps([host, real_path, version, asdict(abilities)], sort_keys=True)
    return Runtime(
        id=sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:12],
        host=host,
        path=str(binary),
        version=version,
        abilities=abilities,
    )


def _host() -> str:
    return os.uname().nodename


def _key(binary: Path) -> dict[str, object]:
    """What has to be unchanged for a cached answer to hold."""
    real_path = binary.resolve()
    status = real_path.stat()
    return {
        "host": _host(),
        "path": str(binary),
        "real_path": str(real_path),
        "size": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "inode": status.st_ino,
    }


def _runtime_from(cached: Mapping[str, object]) -> Runtime | None:
    runtime = mapping(cached.get("runtime"))
    if cached.get("schema") != _SCHEMA or runtime is None:
        return None
    abilities = mapping(runtime.get("abilities")) or {}
    names = {field.name for field in fields(Abilities)}
    texts = {name: runtime.get(name) for name in ("id", "host", "path", "version")}
    if set(abilities) != names or not all(isinstance(able, bool) for able in abilities.values()):
        return None
    if not all(isinstance(value, str) and value for value in texts.values()):
        return None
    return Runtime(
        abilities=Abilities(**{name: bool(able) for name, able in abilities.items()}),
        **{name: str(value) for name, value in texts.items()},
    )


def _write_cache(cache_file: Path, document: Mapping[str, object]) -> None:
    try:
        cache_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_durably(cache_file, json.dumps(document))
    except OSError as error:
        # The answer is as good without its cache; only the next start takes longer.
        logger.warning("The probe is not cached", extra={"path": str(cache_file), "why": error.strerror})
