"""What `opsladder run` itself costs when much happens at once, and with very many schedules. Run by ``__main__``.

First 500 schedules fire in the same second, with a stand-in CLI that waits until all 500 of its runs are there. Then a
service has 10,000 schedules, and one more fires among them. All of it is measured from outside, on the service's own
process and without what it starts; what its records say afterwards is checked.
"""

import datetime as dt
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from statistics import median

from bench.course import BenchmarkFailed
from bench.service_daemon import Gate, Place
from supervisor.model.cycle import Chain
from supervisor.store import Store, open_store

_AT_ONCE = 500
_REGISTERED = 10_000
_IDLE_SECONDS = 10.0
# How far ahead a firing is planned, so that the service is up and quiet by then.
_AHEAD_SECONDS = 15
_ONE = "the-one"
_ROOM = f"[service]\nmax_running = {_AT_ONCE}\n"
_HOUR = 3600
_MIB = 2**20


def run() -> None:
    for measure in (_at_once, _registered):
        with tempfile.TemporaryDirectory(prefix="opsladder-bench-") as directory:
            place = Place(Path(directory))
            place.configure(_ROOM)
            place.upgrade()
            with closing(Gate(place.work_dir)) as gate, open_store(place.database_url, create=False) as store:
                measure(place, gate, store)
            for line in place.complaints()[:5]:
                print(f"  it said: {line[:200]}", flush=True)


def _at_once(place: Place, gate: Gate, store: Store) -> None:
    rhythm, due = _rhythm(int(time.time()) + _AHEAD_SECONDS)
    place.configure(_ROOM + "".join(_interval(f"every-{number}", rhythm) for number in range(_AT_ONCE)))
    with place.daemon() as daemon:
        daemon.until_ready()
        daemon.until(lambda: time.time() > due - 1, "the firings are due")
        before = daemon.usage()
        daemon.until(lambda: gate.waiting() == _AT_ONCE, f"{_AT_ONCE} runs at once")
        reached, started = time.time() - due, daemon.usage()
        daemon.rest(_IDLE_SECONDS)
        waited = daemon.usage()
        gate.open()
        ended = daemon.until(lambda: not store.running_cycles(), "all have ended")
        after, silence = daemon.usage(), daemon.longest_silence()
        daemon.end()
    late = _lateness(_chains(store, _AT_ONCE, place), due)
    waiting = waited.cpu_seconds - started.cpu_seconds
    cpu = after.cpu_seconds - before.cpu_seconds - waiting
    what = f"  {_AT_ONCE} chains at once"
    print(
        f"{what}: {cpu / _AT_ONCE * 1000:.1f} ms of the service's own CPU for each; "
        f"{(waited.rss - before.rss) / _AT_ONCE / 1024:.0f} KiB of memory for each beside {before.rss / _MIB:.0f} MiB "
        f"without any ({(waited.uss - before.uss) / _AT_ONCE / 1024:.0f} KiB that it shares with nobody)"
    )
    print(
        f"{what}: a firing was {median(late):.1f} s late at the median, {late[len(late) * 99 // 100]:.1f} s at the "
        f"99th percentile, {late[-1]:.1f} s at worst; all CLIs ran after {reached:.1f} s, and all chains were over "
        f"{ended:.1f} s after the last of them could end"
    )
    print(
        f"{what}, of which none says anything: {waiting / _IDLE_SECONDS * 100:.0f} % of a core, {waited.threads} "
        f"threads, {waited.descriptors} open files; at most {silence:.1f} s without a sign of life",
        flush=True,
    )


def _registered(place: Place, gate: Gate, store: Store) -> None:
    gate.open()
    spread = _spread()
    place.configure(_ROOM + "".join(spread.values()))
    with place.daemon() as daemon:
        ready = daemon.until_ready()
        registered = daemon.until(lambda: len(store.dealt_until(spread)) == _REGISTERED, "all are registered")
        daemon.rest(_IDLE_SECONDS)
        before = daemon.usage()
        daemon.rest(_IDLE_SECONDS)
        after = daemon.usage()
        scrape, size = daemon.scrape()
        rhythm, due = _rhythm(int(time.time()) + 2 * _AHEAD_SECONDS)
        place.configure(_ROOM + "".join(spread.values()) + _interval(_ONE, rhythm))
        reload = daemon.reload()
        spare = due - time.time()
        daemon.until(lambda: gate.waiting() == 1 and not store.running_cycles(), "the one among them has run")
        silence = daemon.longest_silence()
        daemon.end()
    [late] = _lateness(_chains(store, 1, place), due)
    what = f"  {_REGISTERED:,} schedules"
    print(
        f"{what}: ready after {ready:.1f} s, all registered {registered:.1f} s later; {after.rss / _MIB:.0f} MiB of "
        f"memory, {(after.cpu_seconds - before.cpu_seconds) / _IDLE_SECONDS * 100:.1f} % of a core with nothing due; "
        f"a scrape of {size / _MIB:.1f} MiB in {scrape:.1f} s"
    )
    print(
        f"{what}: read anew in {reload:.1f} s; one that came with it, due {spare:.0f} s later, fired {late:.2f} s "
        f"late; at most {silence:.1f} s without a sign of life",
        flush=True,
    )


def _rhythm(earliest: int) -> tuple[int, int]:
    """An interval of hours and its first due time from a moment on: intervals are counted from the epoch."""
    for due in range(earliest, earliest + 100):
        for seconds in range(2 * _HOUR, 24 * _HOUR):
            if due % seconds == 0:
                return seconds, due
    raise BenchmarkFailed("There is no such interval.")


def _interval(name: str, seconds: int) -> str:
    return f'[[schedules]]\nname = "{name}"\nevery = "{seconds}s"\n'


def _spread() -> dict[str, str]:
    """Schedules of both kinds by their names, none of them due within an hour."""
    now = dt.datetime.now(dt.UTC)
    tables: dict[str, str] = {}
    seconds = 2 * _HOUR
    for number in range(0, _REGISTERED, 2):
        name, hour = f"cron-{number}", (now.hour + 2 + number % 20) % 24
        tables[name] = f'[[schedules]]\nname = "{name}"\ncron = "{number % 60} {hour} * * *"\n'
        seconds += 1
        while -now.timestamp() % seconds < _HOUR:
            seconds += 1
        tables[f"every-{number}"] = _interval(f"every-{number}", seconds)
    return tables


def _chains(store: Store, expected: int, place: Place) -> list[Chain]:
    """Every chain of the service: each has to have come to its end, none is missing and none was begun twice."""
    chains = store.chains(2 * expected + 1)
    ends = Counter((chain.cycle.status.value, len(chain.sessions)) for chain in chains)
    if ends != {("healthy", 1): expected} or len({chain.cycle.schedule for chain in chains}) != expected:
        raise BenchmarkFailed(f"{expected} chains should have ended well, each on its own: {ends}.\n{place.log()}")
    return chains


def _lateness(chains: list[Chain], due: int) -> list[float]:
    return sorted(chain.cycle.started_at.timestamp() - due for chain in chains)
