"""A call that waits for a person gets that person's answer, also when the store goes away meanwhile."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from make import RUNTIME

from supervisor.climb.ladder import Ladder, utc_now
from supervisor.climb.recorder import Recorder
from supervisor.climb.spending import Spending, day_of
from supervisor.climb.stop import StopRequest
from supervisor.climb.warden import Regime, Warden
from supervisor.decide.budget import Budget
from supervisor.errors import StoreUnavailable
from supervisor.model.guarding import Approval, ApprovalStatus
from supervisor.model.permission import Decision, ToolCall, Verdict
from supervisor.prompts import Prompts
from supervisor.settings import load_settings
from supervisor.store import open_store
from tests.store.store_examples import add_session, begin

CONFIG = """
[[tiers]]
name = "observe"
model = "haiku"
prompt = "tier1.md"
approve = ["touch ..."]
"""
CALL = ToolCall(tool_use_id="toolu_1", tool="Bash", input={"command": "touch it"})
DEADLINE_SECONDS = 60.0


@pytest.fixture
def ladder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ladder]:
    monkeypatch.setattr("supervisor.climb.warden._ANSWER_POLL_SECONDS", 0.01)
    file = tmp_path / "opsladder.toml"
    file.write_text(CONFIG)
    settings = load_settings(file, {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}, cwd=tmp_path)
    settings.state.dir.mkdir()
    with open_store(settings.database_url()) as store:
        yield Ladder(settings=settings, store=store, runtime=RUNTIME, prompts=Prompts(settings.prompt_dirs))


def warden(ladder: Ladder, *, waits: bool) -> Warden:
    """The guard of a session that runs."""
    store, cycle = ladder.store, begin(ladder.store)
    session = add_session(store, cycle)
    recorder = Recorder(
        store,
        session,
        price=lambda *_: None,
        masker=ladder.settings.masker(),
        watch=lambda _: None,
        clock=utc_now,
        patience_seconds=1.0,
    )
    regime = Regime(
        own_paths=(), own_pids=frozenset(), dry_run=False, waits=waits, approval_limit=timedelta(minutes=10)
    )
    spending = Spending(store=store, clock=utc_now, limits=Budget(), before=Budget(), day=day_of(utc_now()))
    return Warden(ladder, session, regime, recorder=recorder, spending=spending, stop=StopRequest())


def approve(ladder: Ladder) -> Approval:
    [waiting] = ladder.store.pending_approvals(utc_now())
    return ladder.store.decide_approval(waiting.id, approved=True, by="ada", reason=None, now=utc_now())


def unavailable_once(
    ladder: Ladder, monkeypatch: pytest.MonkeyPatch, name: str, before: Callable[[], Any] = lambda: None, *, made: bool
) -> None:
    """Let the store go away once, with the change made or not: a server that dies does not say which."""
    do, failed = getattr(ladder.store, name), []

    def fail_once(*args: Any, **kwargs: Any) -> Any:
        if failed:
            return do(*args, **kwargs)
        failed.append(name)
        before()
        if made:
            do(*args, **kwargs)
        raise StoreUnavailable("The server is being restarted.")

    monkeypatch.setattr(ladder.store, name, fail_once)


def ask(guard: Warden) -> Decision:
    async def answer() -> Decision:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await guard.answer(CALL)

    return asyncio.run(answer())


def test_a_store_that_is_away_for_a_moment_is_not_taken_for_a_refusal(
    ladder: Ladder, monkeypatch: pytest.MonkeyPatch
) -> None:
    unavailable_once(ladder, monkeypatch, "approval", before=lambda: approve(ladder), made=False)

    decision = ask(warden(ladder, waits=True))

    assert (decision.verdict, decision.rule) == (Verdict.ALLOW, "approved")


@pytest.mark.parametrize(
    ("name", "made"),
    [("use_approval", False), ("use_approval", True), ("record_call", False), ("record_call", True)],
    ids=["before_it_is_used", "as_it_is_used", "before_the_answer_is_recorded", "as_the_answer_is_recorded"],
)
def test_an_approval_outlasts_a_store_that_goes_away_while_it_is_used(
    ladder: Ladder, monkeypatch: pytest.MonkeyPatch, name: str, made: bool
) -> None:
    guard = warden(ladder, waits=False)
    assert ask(guard).verdict is Verdict.DEFER
    asked = approve(ladder)
    unavailable_once(ladder, monkeypatch, name, made=made)

    decision = ask(guard)

    assert (decision.verdict, decision.rule) == (Verdict.ALLOW, "approved")
    assert ladder.store.approval(asked.id).status is ApprovalStatus.USED
    assert ask(guard).verdict is Verdict.DENY
