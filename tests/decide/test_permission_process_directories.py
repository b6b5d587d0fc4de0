"""A directory that is named through a process is the one it stands for, also as the place where names start."""

from dataclasses import replace

import pytest
from permission_corpus import OFF_LIMITS, shipped_rules

from supervisor.decide.rules.permission import permission
from supervisor.model.permission import Decision, ToolCall, Verdict
from supervisor.shell import read_shell

LIMITS = replace(OFF_LIMITS, paths=("/srv/ops/state",))


def decide(text: str, *, cwd: str = "/srv/ops") -> Decision:
    call = ToolCall(tool_use_id="t", tool="Bash", input={"command": text}, cwd=cwd)
    return permission(call, read_shell(text), shipped_rules(3), LIMITS, dry_run=False)


@pytest.mark.parametrize(
    "place", ["/proc/self/cwd", "/proc/self/cwd/logs/..", "/proc/1/root/srv/ops", "//proc/self/cwd"]
)
def test_the_supervisors_files_are_found_from_a_directory_of_a_process(place: str) -> None:
    assert decide(f"env -C {place} cat state/ladder.db").rule == "off_limits"


@pytest.mark.parametrize(
    "text", ["nice -n 3 cat /proc/self/cwd/x notes", "sudo -D /proc/self/cwd/a/b cat notes", "git -C /proc/1/cwd log"]
)
def test_other_files_stay_readable_from_a_directory_of_a_process(text: str) -> None:
    assert decide(text).verdict is Verdict.ALLOW


def test_a_call_that_stands_in_a_directory_of_a_process_stands_in_the_agents_own() -> None:
    assert decide("cat notes", cwd="/proc/self/cwd").verdict is Verdict.ALLOW
    assert decide("cat state/ladder.db", cwd="/proc/self/cwd").rule == "off_limits"
