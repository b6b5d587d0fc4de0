"""The table of statuses, held against what it has to say: written here a second time, in its own words."""

import pytest

from supervisor.decide.lifecycle import CYCLE_MOVES, CYCLE_STARTS, SESSION_MOVES, SESSION_STARTS, before
from supervisor.model.cycle import CycleStatus
from supervisor.model.session import SessionStatus

SESSIONS = {
    "created": "active failed interrupted stopped",
    "active": "completed failed interrupted paused rejected stopped timed_out",
    "paused": "completed expired stopped",
    "timed_out": "expired",
    "interrupted": "expired",
    "completed": "",
    "failed": "",
    "stopped": "",
    "rejected": "",
    "expired": "",
}
CYCLES = {
    "running": "blocked failed healthy paused resolved stopped unresolved",
    "paused": "failed running stopped",
    "healthy": "",
    "resolved": "",
    "unresolved": "",
    "blocked": "",
    "failed": "",
    "stopped": "",
    "skipped": "",
}


@pytest.mark.parametrize("status", SessionStatus)
def test_what_a_session_may_become(status: SessionStatus) -> None:
    assert sorted(SESSION_MOVES[status]) == SESSIONS[status].split()


@pytest.mark.parametrize("status", CycleStatus)
def test_what_a_cycle_may_become(status: CycleStatus) -> None:
    assert sorted(CYCLE_MOVES[status]) == CYCLES[status].split()


def test_where_records_begin() -> None:
    assert sorted(SESSION_STARTS) == ["created"]
    assert sorted(CYCLE_STARTS) == ["running", "skipped"]


def test_a_session_that_has_run_never_runs_again() -> None:
    assert before(SessionStatus.ACTIVE) == {SessionStatus.CREATED}
    assert before(SessionStatus.CREATED) == frozenset()
