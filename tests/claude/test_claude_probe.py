"""Finding a CLI, asking it what it can do, and trusting the cached answer only as long as it holds."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor.claude.probe import cached_runtime, find_binary, probe
from supervisor.errors import ClaudeNotUsable
from supervisor.model.runtime import Runtime

ENV = {"PATH": "/usr/bin:/bin"}
HELP = """Usage: forked [options]

Options:
  -p, --print               Print and exit. See also --resume and
                            --fork-session in the manual
  --output-format <format>  Format
  --allowedTools, --allowed-tools <tools...>
  --session-id <uuid>       Id
  --system-prompt-snapshot  Not --system-prompt
"""


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def fork(path: Path, *, version: str = "1.2.3 (Forked)") -> Path:
    counter = path.with_suffix(".count")
    return script(
        path,
        f'echo x >> {counter}\ntouch "$HOME/written"\n'
        f"case $1 in --version) echo '{version}';; --help) cat <<'END'\n{HELP}\nEND\n;; esac",
    )


def times_run(path: Path) -> int:
    return len(path.with_suffix(".count").read_text().splitlines())


def ask(binary: Path, cache_file: Path | None = None, seconds: float = 20.0) -> Runtime:
    return asyncio.run(probe(binary, cache_file=cache_file, env=ENV, seconds=seconds))


def test_the_real_cli_is_known_for_what_it_is(cli: Path, cli_version: str):
    runtime = ask(cli)

    assert runtime.version == cli_version
    assert runtime.path == str(cli)
    assert runtime.host == os.uname().nodename
    assert runtime.abilities == replace(
        runtime.abilities, **dict.fromkeys(runtime.abilities.__dataclass_fields__, True)
    )


def test_a_fork_is_taken_for_what_its_help_offers(tmp_path: Path):
    runtime = ask(fork(tmp_path / "forked"))

    assert runtime.version == "1.2.3"
    able = {name for name in runtime.abilities.__dataclass_fields__ if getattr(runtime.abilities, name)}
    assert able == {"session_id"}


def test_the_probed_program_cannot_write_into_the_users_home(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    binary = fork(tmp_path / "forked")

    asyncio.run(probe(binary, cache_file=None, env={**ENV, "HOME": str(home)}))

    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param("echo 'true (GNU coreutils) 9.1'", "is not a Claude CLI", id="another program"),
        pytest.param("head -c 3000 /dev/urandom", "is not a Claude CLI", id="prints garbage"),
        pytest.param("echo '9.9 (Claude Code)'", "offers no --print", id="claims to be one"),
        pytest.param("sleep 600", "did not answer within 0.5 seconds", id="hangs"),
        pytest.param("trap '' INT TERM; while :; do sleep 600; done", "did not answer", id="hangs and is deaf"),
        pytest.param("exec yes", "prints without end", id="endless output"),
    ],
)
def test_a_program_that_is_no_claude_is_refused(tmp_path: Path, body: str, problem: str):
    with pytest.raises(ClaudeNotUsable, match=problem) as refused:
        ask(script(tmp_path / "other", body), tmp_path / "cache.json", 0.5)

    assert str(tmp_path / "other") in refused.value.message
    assert refused.value.remedy
    assert not (tmp_path / "cache.json").exists()


def test_a_file_that_is_no_program_is_refused(tmp_path: Path):
    binary = tmp_path / "claude"
    binary.write_bytes(b"\x00\x01 not a program")
    binary.chmod(0o755)

    with pytest.raises(ClaudeNotUsable, match="could not be started"):
        ask(binary)


def test_a_probe_is_done_once_and_kept_private(tmp_path: Path):
    binary, cache = fork(tmp_path / "forked"), tmp_path / "state" / "probe.json"

    first = ask(binary, cache)

    assert cached_runtime(binary, cache) == first == ask(binary, cache)
    assert times_run(binary) == 2
    assert cache.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in cache.parent.iterdir()] == ["probe.json"]


def rewritten(binary: Path, cache: Path) -> None:
    fork(binary, version="1.2.4 (Forked)!")


def touched(binary: Path, cache: Path) -> None:
    os.utime(binary, ns=(1, 1))


def replaced(binary: Path, cache: Path) -> None:
    status = binary.stat()
    copy = binary.with_name("copy")
    copy.write_bytes(binary.read_bytes())
    copy.chmod(0o755)
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
    copy.replace(binary)


def torn(binary: Path, cache: Path) -> None:
    cache.write_bytes(cache.read_bytes()[:40])


def of_another_host(binary: Path, cache: Path) -> None:
    document = json.loads(cache.read_text())
    document["key"]["host"] = "elsewhere"
    cache.write_text(json.dumps(document))


def of_another_shape(binary: Path, cache: Path) -> None:
    document = json.loads(cache.read_text())
    del document["runtime"]["abilities"]["resume"]
    cache.write_text(json.dumps(document))


@pytest.mark.parametrize("change", [rewritten, touched, replaced, torn, of_another_host, of_another_shape])
def test_a_cached_probe_holds_only_while_nothing_has_changed(tmp_path: Path, change: Callable[[Path, Path], None]):
    binary, cache = fork(tmp_path / "forked"), tmp_path / "probe.json"
    ask(binary, cache)

    change(binary, cache)

    assert cached_runtime(binary, cache) is None
    runtime = ask(binary, cache)
    assert cached_runtime(binary, cache) == runtime
    assert times_run(binary) == 4


@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b"{}", b'{"key": 1}', b"\xff", b"[" * 100_000])
def test_a_corrupt_cache_is_no_cache(tmp_path: Path, raw: bytes):
    cache = tmp_path / "probe.json"
    cache.write_bytes(raw)

    assert cached_runtime(Path("/bin/sh"), cache) is None


def test_a_cache_that_cannot_be_written_costs_nothing_else(tmp_path: Path):
    assert ask(fork(tmp_path / "forked"), Path("/proc/nowhere/probe.json")).version == "1.2.3"


def test_the_id_of_a_runtime_tells_places_and_versions_apart(tmp_path: Path):
    here, there = fork(tmp_path / "here"), fork(tmp_path / "there")
    link = tmp_path / "link"
    link.symlink_to(here)
    newer = fork(tmp_path / "newer", version="1.3 (Forked)")

    assert ask(here).id == ask(here).id == ask(link).id
    assert len({ask(binary).id for binary in (here, there, newer)}) == 3
    assert ask(link).path == str(link)


def test_the_cached_answer_needs_no_event_loop(tmp_path: Path):
    code = "import sys, supervisor.claude.probe; print('asyncio' in sys.modules, 'psutil' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "False"]


def test_a_name_is_looked_up_on_the_path(tmp_path: Path):
    script(tmp_path / "my-claude", "true")

    assert find_binary("my-claude", path_var=f"/nowhere:{tmp_path}", base_dir=Path("/")) == tmp_path / "my-claude"


def test_a_path_is_taken_from_the_base_directory(tmp_path: Path):
    script(tmp_path / "claude", "true")

    assert find_binary("./claude", path_var="", base_dir=tmp_path) == tmp_path / "claude"
    assert find_binary(str(tmp_path / "claude"), path_var="", base_dir=Path("/")) == tmp_path / "claude"


def test_without_configuration_it_is_claude_on_the_path(tmp_path: Path):
    script(tmp_path / "claude", "true")

    assert find_binary(None, path_var=str(tmp_path), base_dir=Path("/")) == tmp_path / "claude"


def test_the_last_resort_is_the_cli_of_the_sdk(new_cli: Path):
    assert find_binary(None, path_var="/nowhere", base_dir=Path("/")) == new_cli
    assert "claude_agent_sdk" not in sys.modules


@pytest.mark.parametrize(
    ("configured", "problem"),
    [
        ("no-such-name", "no executable no-such-name on the PATH"),
        ("./missing", "does not exist"),
        ("./folder", "is a directory"),
        ("./plain", "is not executable"),
    ],
)
def test_what_cannot_be_run_is_refused_with_a_remedy(tmp_path: Path, configured: str, problem: str):
    (tmp_path / "folder").mkdir()
    (tmp_path / "plain").write_text("x")

    with pytest.raises(ClaudeNotUsable, match=problem) as refused:
        find_binary(configured, path_var="/nowhere", base_dir=tmp_path)

    assert refused.value.remedy
