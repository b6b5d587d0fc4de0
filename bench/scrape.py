"""How much longer a scrape takes with a million session records than with a thousand. Run by ``__main__``.

On SQLite and PostgreSQL: everything is read and put into words, without the HTTP around it, which would hide the
difference. The few and the many are asked in turns, each at the time of its newest records.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from statistics import median

import pytest

from bench.many_records import fill
from supervisor.metrics import exposition
from supervisor.settings import load_settings
from supervisor.store import Store, open_store
from tests.postgres import running_postgres

_FEW = 1_000
_MANY = 1_000_000
_AIM = 2.0
_SCRAPES = 200


def run() -> None:
    for name, databases in (("SQLite", _sqlite), ("PostgreSQL", _postgres)):
        with ExitStack() as stack:
            try:
                few, many = stack.enter_context(databases())
            except pytest.skip.Exception as missing:
                print(f"  {name} is left out: {missing}", flush=True)
                continue
            _compare(name, few, many)


@contextmanager
def _sqlite() -> Iterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory(prefix="opsladder-bench-") as directory:
        yield f"sqlite:///{directory}/few.db", f"sqlite:///{directory}/many.db"


@contextmanager
def _postgres() -> Iterator[tuple[str, str]]:
    with running_postgres() as server:
        yield server.new_database(), server.new_database()


def _compare(name: str, few_url: str, many_url: str) -> None:
    fill(few_url, sessions=_FEW)
    fill(many_url, sessions=_MANY)
    with (
        open_store(few_url) as few,
        open_store(many_url) as many,
        tempfile.TemporaryDirectory(prefix="opsladder-bench-") as home,
    ):
        scrape = _scraper(Path(home))
        times = _newest(few), _newest(many)
        taken = [(_milliseconds(scrape, few, times[0]), _milliseconds(scrape, many, times[1])) for _ in range(_SCRAPES)]
    little, much = (median(column) for column in zip(*taken, strict=True))
    print(
        f"  {name}: {much / little:.2f} times as long (aim: at most {_AIM:.0f}), "
        f"{little:.2f} ms with {_FEW:,} sessions, {much:.2f} ms with {_MANY:,}",
        flush=True,
    )


def _scraper(home: Path) -> Callable[[Store, datetime], object]:
    settings = load_settings(None, {"HOME": str(home)}, cwd=home)
    return lambda store, now: exposition(store, settings, now=now, next_fires={}).encoded()


def _newest(store: Store) -> datetime:
    return store.chains(1)[0].cycle.started_at


def _milliseconds(scrape: Callable[[Store, datetime], object], store: Store, now: datetime) -> float:
    began = time.perf_counter()
    scrape(store, now)
    return (time.perf_counter() - began) * 1000
