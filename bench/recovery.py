"""How long the start takes that finds the sessions of a dead supervisor. Run by ``__main__``.

A thousand cycles of one owner that is gone, each with a session that was under way and left nothing but its record, are
taken over and settled, on SQLite and PostgreSQL. The aim is a time, so the machine's load is printed with it.
"""

import asyncio
import datetime as dt
import logging
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from supervisor.climb.ladder import Ladder
from supervisor.climb.owner import this_process
from supervisor.climb.recovery import recover
from supervisor.model.cycle import CycleStatus, Trigger
from supervisor.model.runtime import Abilities, Runtime
from supervisor.model.session import ContinuityKind, Reason
from supervisor.prompts import Prompts
from supervisor.settings import demo_settings
from supervisor.store import NewSession, Owner, open_store, upgrade
from tests.postgres import running_postgres

_STALE = 1_000
_AIM_SECONDS = 5.0
# Above what Linux gives to any process.
_NO_PID = (1 << 22) + 1


def run() -> None:
    logging.disable(logging.CRITICAL)
    try:
        for name in ("SQLite", "PostgreSQL"):
            with ExitStack() as stack:
                directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="opsladder-bench-")))
                url = f"sqlite:///{directory}/records.db"
                if name == "PostgreSQL":
                    try:
                        url = stack.enter_context(running_postgres()).new_database()
                    except pytest.skip.Exception as missing:
                        print(f"  {name} is left out: {missing}", flush=True)
                        continue
                print(f"  {name}: {_STALE:,} stale sessions settled in {_timed(url, directory):.1f} s", flush=True)
        print(f"  aim: {_AIM_SECONDS:g} s")
    finally:
        logging.disable(logging.NOTSET)


def _timed(url: str, directory: Path) -> float:
    upgrade(url)
    work = directory / "work"
    work.mkdir()
    settings = demo_settings(work_dir=work, directory=directory)
    settings.state.dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    able = Abilities(**dict.fromkeys(Abilities.__slots__, True))
    runtime = Runtime(id="bench", host="bench", path="/bin/true", version="2.1.325", abilities=able)
    with open_store(url) as store:
        dead = Owner(host=this_process().host, pid=_NO_PID, started=1.0)
        now = dt.datetime.now(dt.UTC)
        for number in range(_STALE):
            cycle = store.begin_cycle(
                schedule=f"schedule-{number}", trigger=Trigger.SCHEDULE, dry_run=False, owner=dead, now=now, max_tier=3
            )
            session = store.create_session(
                NewSession(
                    cycle_id=cycle.id,
                    tier=1,
                    model="haiku",
                    session_id=f"session-{number}",
                    parent_session_id=None,
                    continuity=ContinuityKind.FRESH,
                    reason=Reason.FIRST_TIER,
                    work_dir=str(work),
                    runtime_id=runtime.id,
                    created_at=now,
                )
            )
            store.activate_session(session.id, pid=_NO_PID, pid_started=1.0, now=now)
        ladder = Ladder(settings=settings, store=store, runtime=runtime, prompts=Prompts(settings.prompt_dirs))
        began = time.perf_counter()
        asyncio.run(recover(ladder))
        took = time.perf_counter() - began
        assert len(store.chains(2 * _STALE, CycleStatus.PAUSED)) == _STALE
    return took
