"""What the service takes for lost of its own, and how many files it may have open."""

import asyncio
import datetime as dt
import resource
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from supervisor.climb.owner import this_process
from supervisor.model.cycle import Cycle, Trigger
from supervisor.service.lost import left_behind
from supervisor.store import Owner, Store, open_store

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
ANOTHER = Owner(host="elsewhere", pid=1, started=1.0)
ROOM = """
import resource, sys
from supervisor.service.descriptors import make_room
soft, hard, cycles = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
make_room(cycles)
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def begin(store: Store, schedule: str, owner: Owner) -> Cycle:
    return store.begin_cycle(schedule=schedule, trigger=Trigger.SCHEDULE, dry_run=False, owner=owner, now=NOW)


def test_a_cycle_of_ours_that_nobody_has_under_way_is_lost_and_no_other(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/opsladder.db") as store:
        left, under_way = begin(store, "left", this_process()), begin(store, "under way", this_process())
        begin(store, "elsewhere", ANOTHER)

        assert asyncio.run(left_behind(store, lambda: {"under way"})) == [left.id]
        assert asyncio.run(left_behind(store, lambda: {"left"})) == [under_way.id]


def test_a_cycle_that_begins_during_the_look_is_not_lost(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/opsladder.db") as store:
        begun: list[Cycle] = []

        def schedules() -> Collection[str]:
            begun.append(begin(store, "new", this_process()))
            return ()

        assert asyncio.run(left_behind(store, schedules)) == []
        assert asyncio.run(left_behind(store, lambda: ())) == [begun[0].id]


@pytest.mark.parametrize(
    ("soft", "hard", "cycles", "expected", "warned"),
    [
        pytest.param(1024, 4096, 4, "1024 4096", False, id="enough-already"),
        pytest.param(1024, 8192, 500, "4256 8192", False, id="as-many-as-needed"),
        pytest.param(1024, 2048, 500, "2048 2048", True, id="as-many-as-allowed"),
    ],
)
def test_as_many_files_may_be_open_as_the_cycles_need(
    soft: int, hard: int, cycles: int, expected: str, *, warned: bool
) -> None:
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if resource.RLIM_INFINITY != allowed < hard:
        pytest.skip(f"this machine allows {allowed} open files")
    given = [sys.executable, "-c", ROOM, str(soft), str(hard), str(cycles)]
    done = subprocess.run(given, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == expected.split()
    assert ("Too few files" in done.stderr) is warned
