"""How long the start takes that finds the sessions of a dead supervisor. Run by ``__main__``.

A thousand cycles of one owner that is gone, each with a session that was under way, are taken over and settled, on
SQLite and PostgreSQL: once with nothing left of them but their records, once each with a stream to catch up with. The
aim is a time, so the machine's load is printed with it.
"""

import asyncio
import datetime as dt
import json
import logging
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from supervisor.climb.files import stream_path
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
_STREAM = "".join(
    json.dumps(line) + "\n"
    for line in (
        {"type": "assistant", "message": {"id": "m1", "content": [{"type": "text", "text": "I look. " * 20}]}},
        {"type": "assistant", "message": {"id": "m2", "content": [{"type": "text", "text": "It is down. " * 20}]}},
    )
)


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
                for spoke in (False, True):
                    told = "that had spoken" if spoke else "without a trace"
                    took = _timed(url, directory / told.replace(" ", "-"), spoke=spoke)
                    print(f"  {name}: {_STALE:,} stale sessions {told} settled in {took:.1f} s", flush=True)
        print(f"  aim: {_AIM_SECONDS:g} s")
    finally:
        logging.disable(logging.NOTSET)


def _timed(url: str, directory: Path, *, spoke: bool) -> float:
    upgrade(url)
    work = directory / "work"
    work.mkdir(parents=True)
    settings = demo_settings(work_dir=work, directory=directory)
    (settings.state.dir / "streams").mkdir(mode=0o700, parents=True)
    able = Abilities(**dict.fromkeys(Abilities.__slots__, True))
    runtime = Runtime(id="bench", host="bench", path="/bin/true", version="2.1.325", abilities=able)
    with open_store(url) as store:
        dead = Owner(host=this_process().host, pid=_NO_PID, started=1.0)
        now = dt.datetime.now(dt.UTC)
        for number in range(_STALE):
            cycle = store.begin_cycle(
                schedule=f"schedule-{spoke}-{number}",
                trigger=Trigger.SCHEDULE,
                dry_run=False,
                owner=dead,
                now=now,
                max_tier=3,
            )
            session = store.create_session(
                NewSession(
                    cycle_id=cycle.id,
                    tier=1,
                    model="haiku",
                    session_id=f"session-{spoke}-{number}",
                    parent_session_id=None,
                    continuity=ContinuityKind.FRESH,
                    reason=Reason.FIRST_TIER,
                    work_dir=str(work),
                    runtime_id=runtime.id,
                    created_at=now,
                )
            )
            store.activate_session(session.id, pid=_NO_PID, pid_started=1.0, now=now)
            if spoke:
                stream_path(settings.state.dir, session.id).write_text(_STREAM, encoding="utf-8")
        ladder = Ladder(settings=settings, store=store, runtime=runtime, prompts=Prompts(settings.prompt_dirs))
        began = time.perf_counter()
        asyncio.run(recover(ladder))
        took = time.perf_counter() - began
        waiting = store.chains(_STALE, CycleStatus.PAUSED)
        assert len(waiting) == _STALE
        assert all(bool(chain.sessions[0].messages) is spoke for chain in waiting)
    return took
