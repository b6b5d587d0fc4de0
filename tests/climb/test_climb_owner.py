"""Whether the owner of a cycle lives, as far as that can be seen from here."""

import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

import supervisor
from supervisor.climb.owner import LEASE, is_gone, this_process
from supervisor.store import Owner

IN_A_CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc")
LOOK = """
import sys
from datetime import timedelta
from supervisor.climb.owner import is_gone
from supervisor.store import Owner
host, pid, started, silent = sys.argv[1:]
print(is_gone(Owner(host=host, pid=int(pid), started=float(started), silent_for=timedelta(seconds=float(silent)))))
"""


def test_an_owner_that_lives_or_has_died_here_is_known_at_once() -> None:
    assert not is_gone(this_process())
    assert is_gone(replace(this_process(), started=1.0))


def seen_from_a_container(owner: Owner, silent_for: timedelta) -> bool:
    told = (owner.host, str(owner.pid), str(owner.started), str(silent_for.total_seconds()))
    done = subprocess.run(
        [*IN_A_CONTAINER, sys.executable, "-c", LOOK, *told],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(supervisor.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode and "unshare" in done.stderr:
        pytest.skip("this user may make no container")
    return {"True\n": True, "False\n": False}[done.stdout]


def test_an_owner_whose_processes_cannot_be_seen_lives_as_long_as_its_heart_beats() -> None:
    """Containers can have the name of their host, and each has numbers of its own for processes."""
    assert not seen_from_a_container(this_process(), timedelta(seconds=1))
    assert seen_from_a_container(this_process(), LEASE + timedelta(seconds=1))


def test_no_owner_outlives_a_reboot() -> None:
    name = this_process().host.partition(" ")[0]
    assert is_gone(replace(this_process(), host=f"{name} another-boot"))
    assert is_gone(replace(this_process(), host=f"{name} another-boot pid:[7]"))
