"""A supervisor that runs a cycle says so now and then, and looks more often whether it still should."""

import asyncio
import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from make import RUNTIME

from supervisor.climb.heartbeat import beating
from supervisor.climb.ladder import Ladder
from supervisor.climb.owner import this_process
from supervisor.climb.stop import StopRequest
from supervisor.errors import StoreUnavailable
from supervisor.model.cycle import Cycle, Trigger
from supervisor.model.outcome import Ended
from supervisor.prompts import Prompts
from supervisor.settings import load_settings
from supervisor.store import Owner, open_store

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
OTHER = Owner(host="elsewhere", pid=7, started=1.0)
DEADLINE_SECONDS = 60.0
NEVER = 3600.0


@pytest.fixture
def ladder(tmp_path: Path) -> Iterator[Ladder]:
    settings = load_settings(None, {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}, cwd=tmp_path)
    settings.state.dir.mkdir()
    with open_store(settings.database_url()) as store:
        yield Ladder(settings=settings, store=store, runtime=RUNTIME, prompts=Prompts(settings.prompt_dirs))


@pytest.fixture
def cycle(ladder: Ladder) -> Cycle:
    return ladder.store.begin_cycle(
        schedule="default", trigger=Trigger.MANUAL, dry_run=False, owner=this_process(), now=NOW
    )


async def beat_until(ladder: Ladder, cycle: Cycle, stop: StopRequest, reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS), beating(ladder, cycle, stop):
        while not reached():  # noqa: ASYNC110 - what happens in a thread sets no event
            await asyncio.sleep(0.01)


def every(monkeypatch: pytest.MonkeyPatch, *, look: float, beat: float) -> None:
    monkeypatch.setattr("supervisor.climb.heartbeat._LOOK_SECONDS", look)
    monkeypatch.setattr("supervisor.climb.heartbeat._BEAT_SECONDS", beat)


def test_a_beat_is_written_when_it_is_due(ladder: Ladder, cycle: Cycle, monkeypatch: pytest.MonkeyPatch) -> None:
    every(monkeypatch, look=0.01, beat=0.02)
    beats = []
    write = ladder.store.beat
    monkeypatch.setattr(ladder.store, "beat", lambda *a, **k: (beats.append(1), write(*a, **k))[1])

    asyncio.run(beat_until(ladder, cycle, StopRequest(), lambda: len(beats) > 1))

    [owner] = ladder.store.owners()
    assert owner == this_process()


def test_between_two_beats_it_is_heard_that_the_cycle_is_to_stop(
    ladder: Ladder, cycle: Cycle, monkeypatch: pytest.MonkeyPatch
) -> None:
    every(monkeypatch, look=0.01, beat=NEVER)
    stop = StopRequest()
    ladder.store.ask_to_stop(cycle.id, by="ada")

    asyncio.run(beat_until(ladder, cycle, stop, stop.event.is_set))

    assert stop.ended is Ended.STOPPED


@pytest.mark.parametrize("beat", [0.0, NEVER], ids=["at-a-beat", "between-two-beats"])
def test_who_has_lost_its_cycle_stops(
    ladder: Ladder, cycle: Cycle, monkeypatch: pytest.MonkeyPatch, beat: float
) -> None:
    every(monkeypatch, look=0.01, beat=beat)
    stop = StopRequest()
    assert ladder.store.take_over(gone=this_process(), owner=OTHER) != []

    asyncio.run(beat_until(ladder, cycle, stop, stop.event.is_set))

    assert stop.ended is Ended.DISOWNED
    assert ladder.store.owners() == [OTHER]


def test_who_could_not_say_for_long_that_it_lives_stops_before_another_takes_over(
    ladder: Ladder, cycle: Cycle, monkeypatch: pytest.MonkeyPatch
) -> None:
    every(monkeypatch, look=0.01, beat=0.02)
    monkeypatch.setattr("supervisor.climb.heartbeat._LONGEST_SILENCE_SECONDS", 0.1)

    def gone(*_: object, **__: object) -> Cycle:
        raise StoreUnavailable("The server does not answer.")

    monkeypatch.setattr(ladder.store, "beat", gone)
    stop = StopRequest()

    asyncio.run(beat_until(ladder, cycle, stop, stop.event.is_set))

    assert stop.ended is Ended.STORE_UNAVAILABLE
