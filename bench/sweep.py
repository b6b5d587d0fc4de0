"""How long a sweep holds up the writes of a running cycle, with a million session records. Run by ``__main__``.

On SQLite and PostgreSQL. Another process appends an event every few milliseconds, as a running cycle does, and measures
each time how long that took: first alone, then while a sweep expires, archives and prunes.
"""

import datetime as dt
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from bench.many_records import fill
from supervisor.climb.sweep import SweepSummary, sweep
from supervisor.model.cycle import EventKind, NewEvent
from supervisor.settings import Settings, load_settings
from supervisor.store import Store, open_store
from tests.postgres import running_postgres

_RECORDS = 1_000_000
_AIM_MS = 100
_ALONE_SECONDS = 5.0
# The first cycles of ``many_records``: as many are pruned, and as many again archived.
_CYCLES = 150
_BEGAN = dt.datetime(2025, 1, 1, tzinfo=dt.UTC)
_NOW = _BEGAN + dt.timedelta(days=30)
_EVERY = dt.timedelta(minutes=15)
_EVENTS, _LARGE = 60, 300_000

_WRITER = """
import json, sys, threading, time
from datetime import UTC, datetime
from supervisor.model.cycle import EventKind, NewEvent, Trigger
from supervisor.store import Owner, open_store
with open_store(sys.argv[1]) as store:
    now = datetime.now(UTC)
    owner = Owner(host="bench", pid=1, started=1.0)
    cycle = store.begin_cycle(schedule=sys.argv[2], trigger=Trigger.MANUAL, dry_run=False, owner=owner, now=now)
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    taken = []
    print("ready", flush=True)
    while not over.wait(0.005):
        began = time.perf_counter()
        store.append_events(cycle.id, [NewEvent(kind=EventKind.TEXT, at=now, text="word")])
        taken.append((time.perf_counter() - began) * 1000)
taken.sort()
print(json.dumps({"writes": len(taken), "median": taken[len(taken) // 2], "p99": taken[len(taken) * 99 // 100],
                  "worst": taken[-1]}))
"""


def run() -> None:
    for name, database in (("SQLite", _sqlite), ("PostgreSQL", _postgres)):
        with ExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="opsladder-bench-")))
            try:
                url = stack.enter_context(database(directory))
            except pytest.skip.Exception as missing:
                print(f"  {name} is left out: {missing}", flush=True)
                continue
            _measure(name, url, directory)


@contextmanager
def _sqlite(directory: Path) -> Iterator[str]:
    yield f"sqlite:///{directory}/many.db"


@contextmanager
def _postgres(_: Path) -> Iterator[str]:
    with running_postgres() as server:
        yield server.new_database()


def _go_on_numbering(url: str) -> None:
    """Let new rows be numbered after those that were copied. SQLite does so by itself."""
    if url.startswith("postgresql"):
        with psycopg.connect(url) as server:
            for table in ("cycles", "sessions"):
                server.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}")


def _measure(name: str, url: str, directory: Path) -> None:
    began = time.perf_counter()
    fill(url, sessions=_RECORDS)
    _go_on_numbering(url)
    with open_store(url) as store:
        _say_much(store)
        print(f"  {name}: {_RECORDS:,} sessions written in {time.perf_counter() - began:.0f} s", flush=True)
        settings = _settings(url, directory)
        alone = _while_another_writes(url, "alone", lambda: time.sleep(_ALONE_SECONDS))
        done: list[SweepSummary] = []
        began = time.perf_counter()
        held_up = _while_another_writes(url, "swept", lambda: done.append(sweep(settings, store, now=_NOW)))
        took = time.perf_counter() - began
    print(f"  {name}: {done[0].archived_cycles} cycles archived, {done[0].pruned_cycles} pruned in {took:.0f} s")
    for what, taken in (("alone", alone), ("during a sweep", held_up)):
        print(
            f"  {name}, a write {what}: worst {taken['worst']:.0f} ms (aim: at most {_AIM_MS}), "
            f"99 % within {taken['p99']:.1f} ms, median {taken['median']:.1f} ms of {taken['writes']:.0f}",
            flush=True,
        )


def _say_much(store: Store) -> None:
    """Give the cycles that will go messages, and every tenth of them a few large ones."""
    for cycle in range(2, 2 * _CYCLES + 2):
        text = "x" * _LARGE if cycle % 10 == 0 else "what a tool printed " * 20
        event = NewEvent(kind=EventKind.TOOL_RESULT, at=_BEGAN, text=text)
        store.append_events(cycle, [event] * (5 if cycle % 10 == 0 else _EVENTS))


def _settings(url: str, directory: Path) -> Settings:
    state = directory / "state"
    state.mkdir(mode=0o700)
    days = {"RECORDS_DAYS": _NOW - (_BEGAN + _CYCLES * _EVERY), "MESSAGES_DAYS": _NOW - (_BEGAN + 2 * _CYCLES * _EVERY)}
    environ = {
        "HOME": str(directory),
        "OPSLADDER_STATE__DIR": str(state),
        "OPSLADDER_STATE__DATABASE_URL": url,
        **{f"OPSLADDER_RETENTION__{name}": str(age / dt.timedelta(days=1)) for name, age in days.items()},
    }
    return load_settings(None, environ, cwd=directory)


def _while_another_writes(url: str, schedule: str, work: Callable[[], object]) -> dict[str, float]:
    command = [sys.executable, "-c", _WRITER, url, schedule]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        if writer.stdin is None or writer.stdout is None:
            raise RuntimeError("the writer has no pipes")
        writer.stdout.readline()
        work()
        writer.stdin.close()
        taken: dict[str, float] = json.loads(writer.stdout.readline())
        return taken
