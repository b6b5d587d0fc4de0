"""The settings of a run: that they name every tool, and that their commands survive a shell."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from supervisor.guard.bounds import Bounds
from supervisor.guard.hooks import hook_settings
from supervisor.guard.post import Post

POST = Post(directory=Path("/run/guard"), secret="s")
_31_BITS = 2**31


def command_of(event: str, post: Post = POST, bounds: Bounds | None = None, **options: object) -> str:
    values = {"python": sys.executable, **options}
    [entry] = json.loads(hook_settings(post, bounds or Bounds(), **values))["hooks"][event]  # type: ignore[arg-type]
    assert entry["matcher"] == "*"
    [hook] = entry["hooks"]
    return str(hook["command"])


def run(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", command], input="{}", capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("seconds", [0.1, 20, 3600, 86_400])
def test_every_bound_outlasts_the_one_inside_it(seconds: float) -> None:
    bounds = Bounds(answer_seconds=seconds)

    assert seconds < bounds.client_seconds < bounds.watchdog_seconds < bounds.hook_seconds
    assert bounds.hook_seconds * 1000 < _31_BITS


@pytest.mark.parametrize("seconds", [0, -1, 10_000_000, float("nan")])
def test_a_bound_that_cannot_hold_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="cannot be given"):
        Bounds(answer_seconds=seconds)


def test_the_secret_is_in_no_command_line() -> None:
    assert "hunter2" not in hook_settings(Post(directory=Path("/run/guard"), secret="hunter2"), Bounds(), python="p")


@pytest.mark.parametrize("name", ["a b", "it's", '"', "$(touch made)", "`touch made`", "a;touch made", "é\n", "-x"])
def test_paths_are_words_to_the_shell_whatever_is_in_them(tmp_path: Path, name: str) -> None:
    odd = tmp_path / name
    odd.mkdir()
    client = odd / "client.py"
    client.write_text("""import sys\nsys.stdout.write('{"hookSpecificOutput":' + repr(sys.argv[1:]))""")
    post = Post(directory=odd, secret="s")

    done = run(f"cd {str(tmp_path)!r} && {command_of('PreToolUse', post, client=client)}")

    assert done.returncode == 0
    printed = done.stdout.removeprefix('{"hookSpecificOutput":').rstrip("\n")
    assert printed == repr([str(post.socket), str(post.secret_file), str(Bounds().client_seconds)])
    assert not (tmp_path / "made").exists()


def test_the_hook_before_a_call_refuses_when_there_is_nobody_to_ask(tmp_path: Path) -> None:
    done = run(command_of("PreToolUse", Post(directory=tmp_path, secret="s")))

    assert (done.returncode, done.stdout) == (2, "")
    assert "the guard could not be asked" in done.stderr


@pytest.mark.parametrize("event", ["PostToolUse", "PostToolUseFailure"])
def test_the_hook_after_a_call_never_disturbs(tmp_path: Path, event: str) -> None:
    done = run(command_of(event, Post(directory=tmp_path, secret="s")))

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
