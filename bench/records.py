"""How much longer a look at the records takes with a million of them than with a thousand. Run by ``__main__``.

On SQLite and PostgreSQL, through the same calls as `opsladder chain ID` and `opsladder chains`, without the start of
the program, which would hide the difference. The few and the many are asked in turns.
"""

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from statistics import median

import pytest

from bench.many_records import fill
from supervisor.store import Store, open_store
from tests.postgres import running_postgres

_FEW = 1_000
_MANY = 1_000_000
_NEWEST = 50
_AIM = 3.0
_QUESTIONS = 300

# What is asked of the store, given the number of some session.
_ASKED: dict[str, Callable[[Store, int], object]] = {
    "chain ID": lambda store, record: store.chain_of(record),
    f"newest {_NEWEST} chains": lambda store, _record: store.chains(_NEWEST),
}


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
    for url, sessions in ((few_url, _FEW), (many_url, _MANY)):
        began = time.perf_counter()
        fill(url, sessions=sessions)
        print(f"  {name}: {sessions:,} sessions written in {time.perf_counter() - began:.0f} s", flush=True)
    with open_store(few_url) as few, open_store(many_url) as many:
        for what, ask in _ASKED.items():
            taken: list[tuple[float, float]] = []
            # Always the same records, and others each time: what was just read must help neither.
            choose = random.Random(4)
            for _ in range(_QUESTIONS):
                in_few = _milliseconds(ask, few, choose.randint(1, _FEW))
                taken.append((in_few, _milliseconds(ask, many, choose.randint(1, _MANY))))
            little, much = (median(column) for column in zip(*taken, strict=True))
            print(
                f"  {name}, {what}: {much / little:.2f} times as long (aim: at most {_AIM:.0f}), "
                f"{little:.2f} ms with {_FEW:,}, {much:.2f} ms with {_MANY:,}",
                flush=True,
            )


def _milliseconds(ask: Callable[[Store, int], object], store: Store, record: int) -> float:
    began = time.perf_counter()
    ask(store, record)
    return (time.perf_counter() - began) * 1000
