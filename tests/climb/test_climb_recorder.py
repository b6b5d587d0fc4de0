"""The recorder and the owner on their own, where a whole cycle would not hit the instant."""

import asyncio
import dataclasses
import datetime as dt
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import psutil
from cycles import until

from supervisor.climb.owner import is_gone, this_process
from supervisor.climb.recorder import Recorder
from supervisor.decide.masking import Masker
from supervisor.model.cycle import Trigger
from supervisor.model.events import Text
from supervisor.model.session import ContinuityKind, Reason, SessionStatus
from supervisor.store import NewSession, SessionEnd, open_store

NOW = dt.datetime(2026, 11, 16, 3, 0, tzinfo=dt.UTC)
WORDS = [f"word {number}" for number in range(500)]


def inside(function: str) -> int:
    """How many threads are in a function right now."""
    found = 0
    for top in sys._current_frames().values():
        frame = top
        while frame is not None:
            found += frame.f_code.co_name == function
            frame = frame.f_back
    return found


async def until_inside(function: str, threads: int) -> None:
    await asyncio.to_thread(until, lambda: inside(function) >= threads, what=f"{threads} threads in {function}")


def test_a_batch_that_is_under_way_when_the_run_ends_is_neither_repeated_nor_taken_for_written(tmp_path):
    url = f"sqlite:///{tmp_path}/ops.db"
    with open_store(url) as store, closing(sqlite3.connect(tmp_path / "ops.db", isolation_level=None)) as other:
        cycle = store.begin_cycle(
            schedule="default", trigger=Trigger.MANUAL, dry_run=False, owner=this_process(), now=NOW
        )
        session = store.create_session(
            NewSession(
                cycle_id=cycle.id,
                tier=1,
                model="haiku",
                session_id="s",
                parent_session_id=None,
                continuity=ContinuityKind.FRESH,
                reason=Reason.FIRST_TIER,
                work_dir="/",
                runtime_id="r",
                created_at=NOW,
            )
        )
        store.activate_session(session.id, pid=1, pid_started=1.0, now=NOW)
        recorder = Recorder(
            store,
            session,
            price=lambda _, __: None,
            masker=Masker(),
            watch=lambda _: None,
            clock=lambda: NOW,
            patience_seconds=30,
        )

        def say(words: list[str]) -> None:
            for word in words:
                recorder.on_event(Text(message_id=word, model="m", text=word, parent_tool_use_id=None))

        async def run() -> None:
            other.execute("BEGIN IMMEDIATE")
            say(WORDS[:300])
            writing = asyncio.create_task(recorder.keep_writing())
            await until_inside("append_events", 1)
            say(WORDS[300:])
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            end = SessionEnd(status=SessionStatus.COMPLETED, ended_at=NOW)
            finishing = asyncio.create_task(recorder.finish(end))
            await until_inside("_write_batch", 2)
            other.execute("ROLLBACK")
            await finishing

        asyncio.run(run())
        assert [e.text for e in store.events(session_id=session.id)] == WORDS


def test_this_process_lives():
    assert not is_gone(this_process())


def test_a_process_that_is_dead_and_not_yet_asked_for_its_exit_code_is_gone():
    child = subprocess.Popen([sys.executable, "-S", "-c", ""])
    until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE, what="it is a zombie")
    try:
        assert is_gone(dataclasses.replace(this_process(), pid=child.pid))
    finally:
        child.wait()


def test_a_later_process_with_the_same_pid_is_another_one():
    mine = this_process()
    assert is_gone(dataclasses.replace(mine, started=mine.started - 1))


def test_before_the_last_boot_nobody_lives():
    mine = this_process()
    name, _, boot = mine.host.partition(" ")
    assert len(boot) == len("01234567-0123-0123-0123-012345678901")
    assert is_gone(dataclasses.replace(mine, host=f"{name} {'0' * len(boot)}"))


def test_who_runs_elsewhere_cannot_be_judged():
    mine = this_process()
    assert not is_gone(dataclasses.replace(mine, host=f"else{mine.host}", pid=os.getpid() + 1))
