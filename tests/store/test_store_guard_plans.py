"""That nothing the guard asks or changes makes the database read a whole table."""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from supervisor.decide.health import Found
from supervisor.errors import StoreError
from supervisor.model.guarding import NewApproval
from supervisor.model.permission import Decision, ToolCall, Verdict
from supervisor.model.report import Health
from supervisor.store import Store, open_store
from supervisor.store.approvals import Approvals
from supervisor.store.calls import Calls
from supervisor.store.cooldowns import Cooldowns
from supervisor.store.services import Services
from supervisor.store.switch import Switch
from tests.store.explain import statements, whole_tables_read
from tests.store.ledger import LIMITS, restart
from tests.store.store_examples import NOON, add_session, begin

CALL = ToolCall(tool_use_id="toolu_1", tool="Bash", input={})
FOUND = {
    "web": Found(status=Health.HEALTHY, well_throughout=True),
    "db": Found(status=Health.DOWN, well_throughout=False),
}
ALLOWED = Decision(verdict=Verdict.ALLOW, rule="r", sentence="s")
QUESTION = NewApproval(
    session_id=1,
    cycle_id=1,
    tier=1,
    tool_use_id="toolu_1",
    tool="Bash",
    input={},
    input_hash="h",
    text="",
    rule="r",
    sentence="s",
    created_at=NOON,
    expires_at=NOON,
)

ALL: dict[str, Callable[[Store], object]] = {
    "record_call": lambda store: store.record_call(session=1, cycle=1, call=CALL, text="", decision=ALLOWED, now=NOON),
    "end_call": lambda store: store.end_call(session=1, tool_use_id="toolu_1", failed=False, now=NOON),
    "calls": lambda store: store.calls(1),
    "calls_of_sessions": lambda store: store.calls_of_sessions([1, 2]),
    "call_counts": lambda store: store.call_counts(1),
    "allowed": lambda store: store.allowed(1, "toolu_1"),
    "take_slot": lambda store: store.take_slot(
        actions=restart("web", "db"), limits=LIMITS, session=1, tool_use_id="toolu_1"
    ),
    "cooldowns": lambda store: store.cooldowns(LIMITS),
    "record_health": lambda store: store.record_health(1, FOUND, NOON),
    "services": lambda store: store.services(LIMITS),
    "request_approval": lambda store: [store.request_approval(QUESTION) for _ in range(2)],
    "approval": lambda store: store.approval(1),
    "pending_approvals": lambda store: store.pending_approvals(NOON),
    "approval_of_call": lambda store: store.approval_of_call(1, "toolu_1"),
    "approval_of_session": lambda store: store.approval_of_session(1),
    "decide_approval": lambda store: store.decide_approval(1, approved=True, by="ada", reason=None, now=NOON),
    "expire_approvals": lambda store: store.expire_approvals(NOON),
    "use_approval": lambda store: store.use_approval(session=1, tool_use_id="toolu_1", input_hash="h", now=NOON),
    "pause": lambda store: store.pause(by="ada", reason=None, now=NOON),
    "unpause": lambda store: store.unpause(by="ada", now=NOON),
    "switch": lambda store: store.switch(),
}

# Where every row is the answer, or the first one read is.
WALKS_BY_KEY = {"services": r"SCAN services USING INDEX \w+", "switch": r"SCAN switch"}


@pytest.mark.parametrize("name", ALL)
def test_nothing_reads_a_whole_table(name: str, sqlite_url: str, tmp_path: Path) -> None:
    with open_store(sqlite_url) as store:
        add_session(store, begin(store))
        with statements() as sent, suppress(StoreError):
            ALL[name](store)
    scans = whole_tables_read(sent, tmp_path / "state" / "opsladder.db")
    allowed = WALKS_BY_KEY.get(name, "nothing")
    assert [step for step in scans if not re.fullmatch(allowed, step)] == []


def test_every_call_is_among_those_explained() -> None:
    parts = (Calls, Cooldowns, Services, Approvals, Switch)
    assert {name for part in parts for name in vars(part) if not name.startswith("_")} == set(ALL)
