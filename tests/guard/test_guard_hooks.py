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
    assert entry["matcher"] == ("*" if event == "PreToolUse" else "^(?!StructuredOutput$)")
    [hook] = entry["hooks"]
    return str(hook["command"])


def run(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", command], input="{}", capture_output=True, text=True, timeout=60, check=False)


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

    assert done.returncode == 0
    said = json.loads(done.stdout)["hookSpecificOutput"]
    assert (said["hookEventName"], said["permissionDecision"]) == ("PreToolUse", "deny")
    assert "the guard could not be asked" in said["permissionDecisionReason"]


CLIENTS = {
    "missing": None,
    "crashes": "raise SystemExit(1)",
    "says_nothing": "pass",
    "says_something_else": "print('allow')",
    "is_cut_short": """import os\nprint('{"hookSpecificOutput":{"x', end='', flush=True)\nos._exit(9)""",
    "allows_and_fails": """print('{"hookSpecificOutput":{"permissionDecision":"allow"}}')\nraise SystemExit(2)""",
}


@pytest.mark.parametrize("source", CLIENTS.values(), ids=CLIENTS.keys())
def test_a_client_that_does_not_answer_is_a_refusal(tmp_path: Path, source: str | None) -> None:
    client = tmp_path / "client.py"
    if source is not None:
        client.write_text(source)
    done = run(command_of("PreToolUse", Post(directory=tmp_path, secret="s"), client=client))

    said = json.loads(done.stdout)["hookSpecificOutput"]
    assert (done.returncode, said["permissionDecision"]) == (0, "deny")
    assert said["permissionDecisionReason"] == "This call is refused, because the guard gave no answer."


def test_a_refusal_that_cannot_be_printed_is_an_exit_code(tmp_path: Path) -> None:
    done = run(f"exec >&-; {command_of('PreToolUse', Post(directory=tmp_path, secret='s'))}")

    assert done.returncode == 2


@pytest.mark.parametrize("event", ["PostToolUse", "PostToolUseFailure"])
def test_the_hook_after_a_call_never_disturbs(tmp_path: Path, event: str) -> None:
    done = run(command_of(event, Post(directory=tmp_path, secret="s")))

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
