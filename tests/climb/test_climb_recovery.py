"""Many cycles of one dead supervisor are settled in few transactions, and each as if it were alone."""

import asyncio
import datetime as dt
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from make import RUNTIME

from supervisor.climb.files import stream_path
from supervisor.climb.ladder import Ladder
from supervisor.climb.owner import this_process
from supervisor.climb.recovery import recover
from supervisor.errors import StoreError, StoreUnavailable
from supervisor.model.cycle import Chain, CycleStatus, Trigger
from supervisor.model.session import ContinuityKind, Reason, Session, SessionStatus
from supervisor.prompts import Prompts
from supervisor.service.lost import left_behind
from supervisor.settings import load_settings
from supervisor.store import NewSession, Owner, Store, open_store

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
# Above what Linux gives to any process.
NO_PID = (1 << 22) + 1
# More than fit into two transactions.
MANY = 60
DEADLINE_SECONDS = 60.0
WORDS = '{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"I look."}]}}\n'


@pytest.fixture
def ladder(tmp_path: Path) -> Iterator[Ladder]:
    settings = load_settings(None, {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}, cwd=tmp_path)
    (settings.state.dir / "streams").mkdir(parents=True)
    with open_store(settings.database_url()) as store:
        yield Ladder(settings=settings, store=store, runtime=RUNTIME, prompts=Prompts(settings.prompt_dirs))


def lose(store: Store, count: int = MANY) -> list[Session]:
    """So many cycles that a supervisor left when it died, each with a run that was under way."""
    dead = Owner(host=this_process().host, pid=NO_PID, started=1.0)
    lost = []
    for number in range(count):
        cycle = store.begin_cycle(
            schedule=f"s{number}", trigger=Trigger.SCHEDULE, dry_run=False, owner=dead, now=NOW, max_tier=3
        )
        new = NewSession(
            cycle_id=cycle.id,
            tier=1,
            model="haiku",
            session_id=f"session-{number}",
            parent_session_id=None,
            continuity=ContinuityKind.FRESH,
            reason=Reason.FIRST_TIER,
            work_dir="/",
            runtime_id=RUNTIME.id,
            created_at=NOW,
        )
        lost.append(store.activate_session(store.create_session(new).id, pid=NO_PID, pid_started=1.0, now=NOW))
    return lost


def settled(store: Store) -> list[Chain]:
    return sorted(store.chains(2 * MANY), key=lambda chain: chain.cycle.id)


def said(store: Store, session: Session) -> list[str]:
    return [event.text for event in store.events(cycle_id=session.cycle_id)]


def test_all_that_a_dead_supervisor_left_is_settled(ladder: Ladder) -> None:
    lost = lose(ladder.store)
    spoke, unwanted = lost[30], lost[40]
    stream_path(ladder.settings.state.dir, spoke.id).write_text(WORDS, encoding="utf-8")
    ladder.store.ask_to_stop(unwanted.cycle_id, by="ada")

    asyncio.run(recover(ladder))

    chains = settled(ladder.store)
    assert {chain.sessions[0].status for chain in chains} == {SessionStatus.INTERRUPTED}
    ends = {chain.cycle.id: (chain.cycle.status, chain.cycle.reason) for chain in chains}
    assert ends.pop(unwanted.cycle_id) == (CycleStatus.STOPPED, "stopped")
    assert set(ends.values()) == {(CycleStatus.PAUSED, "interrupted")}
    assert said(ladder.store, spoke)[0] == "I look."
    assert all(len(said(ladder.store, session)) == 1 for session in lost if session is not spoke)
    assert list((ladder.settings.state.dir / "streams").iterdir()) == []


def test_one_that_cannot_be_recorded_with_the_others_does_not_hold_them_up(
    ladder: Ladder, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = lose(ladder.store)
    finish, refused = ladder.store.finish_sessions, []

    def refuse_once(ends):
        if lost[30].id in ends and not refused:
            refused.append(ends)
            raise StoreError("The database refused the record.")
        return finish(ends)

    monkeypatch.setattr(ladder.store, "finish_sessions", refuse_once)
    asyncio.run(recover(ladder))

    assert refused
    assert {chain.cycle.status for chain in settled(ladder.store)} == {CycleStatus.PAUSED}
    assert all(len(said(ladder.store, session)) == 1 for session in lost)


def test_one_whose_stream_cannot_be_read_holds_up_neither_the_others_nor_the_next_cycle(ladder: Ladder) -> None:
    lost = lose(ladder.store, 3)
    stream_path(ladder.settings.state.dir, lost[1].id).mkdir()

    asyncio.run(recover(ladder))

    chains = settled(ladder.store)
    assert {chain.cycle.status for chain in chains} == {CycleStatus.PAUSED}
    assert {chain.sessions[0].status for chain in chains} == {SessionStatus.INTERRUPTED}
    assert "cannot be kept: IsADirectoryError" in (chains[1].sessions[0].detail or "")


def test_one_whose_figures_no_database_holds_holds_up_neither_the_others_nor_the_next_cycle(ladder: Ladder) -> None:
    lost = lose(ladder.store, 3)
    content, usage = [{"type": "text", "text": "I look."}], {"input_tokens": 2**63 - 1}
    messages = ({"id": f"m{n}", "model": "haiku", "usage": usage, "content": content} for n in range(2))
    said_twice = "".join(json.dumps({"type": "assistant", "message": message}) + "\n" for message in messages)
    stream_path(ladder.settings.state.dir, lost[1].id).write_text(said_twice, encoding="utf-8")

    asyncio.run(recover(ladder))

    chains = settled(ladder.store)
    assert {chain.cycle.status for chain in chains} == {CycleStatus.PAUSED}
    assert {chain.sessions[0].status for chain in chains} == {SessionStatus.INTERRUPTED}
    assert said(ladder.store, lost[1])[:2] == ["I look.", "I look."]


def test_those_that_said_very_much_are_settled_one_after_the_other(
    ladder: Ladder, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = lose(ladder.store, 3)
    for session in lost:
        stream_path(ladder.settings.state.dir, session.id).write_text(WORDS, encoding="utf-8")
    monkeypatch.setattr("supervisor.climb.recovery._MOST_BYTES", 2 * len(WORDS))
    finish, at_once = ladder.store.finish_sessions, []

    def counted(ends):
        at_once.append(len(ends))
        return finish(ends)

    monkeypatch.setattr(ladder.store, "finish_sessions", counted)
    asyncio.run(recover(ladder))

    assert at_once == [1, 1, 1]
    assert {chain.cycle.status for chain in settled(ladder.store)} == {CycleStatus.PAUSED}
    assert [said(ladder.store, session)[0] for session in lost] == ["I look."] * 3


@pytest.mark.parametrize("write", ["append_to_all", "finish_sessions", "finish_cycles"])
def test_a_commit_whose_answer_was_lost_is_not_made_again(
    ladder: Ladder, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    lost = lose(ladder.store)
    for session in lost:
        stream_path(ladder.settings.state.dir, session.id).write_text(WORDS, encoding="utf-8")
    commit, answers_lost = getattr(ladder.store, write), []

    def lose_an_answer(given):
        made = commit(given)
        if not answers_lost:
            answers_lost.append(write)
            raise StoreUnavailable("The connection is gone.")
        return made

    monkeypatch.setattr(ladder.store, write, lose_an_answer)
    asyncio.run(recover(ladder))

    assert answers_lost
    assert {chain.cycle.status for chain in settled(ladder.store)} == {CycleStatus.PAUSED}
    assert all(len(said(ladder.store, session)) == 2 for session in lost)
    assert all(len(ladder.store.history(session_id=session.id)) == 3 for session in lost)


def test_what_is_being_settled_is_not_settled_a_second_time_by_the_same_process(
    ladder: Ladder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service settles at the beginning of each cycle and now and then, when it looks for what it left itself."""
    [lost] = lose(ladder.store, 1)
    stream_path(ladder.settings.state.dir, lost.id).write_text(WORDS, encoding="utf-8")
    append = ladder.store.append_to_all
    at_it, go_on = threading.Event(), threading.Event()

    def hold_up_the_first(events):
        if not at_it.is_set():
            at_it.set()
            assert go_on.wait(DEADLINE_SECONDS)
        append(events)

    monkeypatch.setattr(ladder.store, "append_to_all", hold_up_the_first)

    async def settle_twice() -> None:
        first = asyncio.create_task(recover(ladder))
        await asyncio.to_thread(at_it.wait, DEADLINE_SECONDS)
        left = await left_behind(ladder.store, tuple)
        await recover(ladder, left=left)
        go_on.set()
        await first

    asyncio.run(settle_twice())

    assert said(ladder.store, lost).count("I look.") == 1
    assert [chain.cycle.status for chain in settled(ladder.store)] == [CycleStatus.PAUSED]
