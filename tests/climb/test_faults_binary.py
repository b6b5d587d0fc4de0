"""A CLI that is not there, or is none: nothing starts, and one sentence says what to do."""

from pathlib import Path

import pytest
from cycles import Place


def program(tmp_path: Path, script: str, *, mode: int = 0o755) -> Path:
    path = tmp_path / "claude"
    path.write_text(script)
    path.chmod(mode)
    return path


BINARIES = {
    "missing": (None, "does not exist", "Install the Claude CLI"),
    "not_executable": ("#!/bin/sh\n", "is not executable", "chmod +x"),
    "prints_garbage": ("#!/bin/sh\necho 'usage: frob [-x]'\n", "is not a Claude CLI", "set claude.bin"),
    "says_nothing": ("#!/bin/sh\nexec /bin/true\n", "is not a Claude CLI", "set claude.bin"),
    "no_interpreter": ("#!/no/such/program\n", "could not be started", "opsladder doctor"),
    "hangs": ("#!/bin/sh\nexec sleep 600\n", "did not answer within 1 seconds", "set claude.bin"),
    "prints_without_end": ("#!/bin/sh\nexec yes\n", "prints without end", "set claude.bin"),
}


@pytest.mark.parametrize(("script", "problem", "remedy"), BINARIES.values(), ids=BINARIES)
def test_without_a_cli_nothing_starts_and_the_operator_is_told_what_to_do(tmp_path, script, problem, remedy):
    path = tmp_path / "claude"
    if script is not None:
        program(tmp_path, script, mode=0o644 if problem == "is not executable" else 0o755)
    place = Place(tmp_path, path)

    done = place.cycle("--json", patience=1)

    assert (done.exit_code, done.out) == (1, "")
    assert problem in done.err
    assert remedy in done.err
    assert "Traceback" not in done.err
    assert place.chains() == []
    place.assert_nothing_left()


def test_a_cli_that_vanishes_after_it_was_found_is_a_recorded_failure(tmp_path, standin):
    """The first look found it, and the second, for the next tier, does not."""
    place = Place(tmp_path, standin, ways="takes_itself_away")

    done = place.cycle("--json")

    assert done.exit_code == 1, done.err
    one, two = done.document["sessions"]
    assert (one["status"], two["status"], two["failure"]) == ("completed", "failed", "spawn_failed")
    assert "opsladder doctor" in two["detail"]
    assert (done.document["cycle"]["status"], done.document["cycle"]["reason"]) == ("failed", "spawn_failed")
    place.assert_nothing_left()
