"""A firing hears of a cycle that could not begin, and nobody is left untold, with a real scheduler and store."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from receiver import receiving

from supervisor.climb.ladder import CycleRequest
from supervisor.errors import StoreError
from supervisor.model.cycle import CycleStatus, Trigger
from supervisor.model.report import Level
from supervisor.service.account import Account
from supervisor.service.scheduler import Firing
from supervisor.store import Store, open_store
from tests.service.scheduled import MINUTE, NOON, Clock, Service, schedules
from tests.store.store_examples import begin

TEN = 10 * MINUTE
WHY = "There is no CLI."


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/state/opsladder.db") as opened:
        yield opened


@pytest.fixture
def service(tmp_path: Path, store: Store) -> Iterator[Service]:
    with asyncio.Runner() as runner:
        started = Service(runner, store, schedules(tmp_path), Clock())
        started.step()
        yield started


def asked_for(firing: Firing | None = None) -> CycleRequest:
    """The cycle of a firing, or one that waited and goes on."""
    key = None if firing is None else firing.fire_key
    return CycleRequest(schedule="web", trigger=Trigger.SCHEDULE, dry_run=False, max_tier=3, fire_key=key)


def refuse(service: Service, tmp_path: Path, firing: Firing) -> None:
    """The cycle of this firing cannot begin."""
    account = Account(service.scheduler, service.store, lambda: schedules(tmp_path))
    account.open(firing)
    service.run(account.refuse(asked_for(firing), WHY))


def test_a_refusal_is_on_record_and_does_not_stand_in_the_way_of_the_next_firing(
    service: Service, store: Store, tmp_path: Path
) -> None:
    (firing,) = service.offers(NOON + TEN)
    refuse(service, tmp_path, firing)

    (chain,) = store.chains(10, CycleStatus.SKIPPED)
    (event,) = store.events(cycle_id=chain.cycle.id)
    assert (chain.cycle.reason, chain.cycle.detail) == ("not_started", WHY)
    assert (event.level, event.text) == (Level.CRITICAL, WHY)
    assert [later.due for later in service.offers(NOON + 2 * TEN)] == [NOON + 2 * TEN]


def test_a_refusal_that_cannot_be_put_on_record_is_tried_again(service: Service, store: Store, tmp_path: Path) -> None:
    (firing,) = service.offers(NOON + TEN)
    file = tmp_path / "state" / "opsladder.db"
    away = file.with_name("away.db")
    store.close()
    file.rename(away)
    refuse(service, tmp_path, firing)
    away.rename(file)

    assert store.chains(10, CycleStatus.SKIPPED) == []
    assert service.offers(NOON + TEN + MINUTE) == [firing]


@pytest.mark.parametrize(
    "problem",
    [StoreError("The database refused the record."), RuntimeError("can't start new thread")],
    ids=["the store refuses it", "nobody thought of it"],
)
def test_a_refusal_that_fails_takes_nothing_with_it_and_is_tried_again(
    service: Service, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    (firing,) = service.offers(NOON + TEN)

    def fails(**_: object) -> None:
        raise problem

    with monkeypatch.context() as broken:
        broken.setattr(store, "skip_cycle", fails)
        refuse(service, tmp_path, firing)

    assert service.offers(NOON + TEN + MINUTE) == [firing]


@pytest.mark.parametrize(
    ("now", "firing_starts", "waiting_goes_on"),
    [
        pytest.param('name = "web"\nevery = "20m"', True, True, id="it is another one"),
        pytest.param('name = "web"', False, True, id="it starts by hand"),
        pytest.param('name = "web"\nblackout = ["00:00-12:00", "12:00-00:00"]', False, False, id="it is blacked out"),
        pytest.param('name = "other"\nevery = "10m"', False, False, id="it is gone"),
    ],
)
def test_what_waits_for_room_while_its_schedule_is_changed(
    service: Service, tmp_path: Path, now: str, firing_starts: bool, waiting_goes_on: bool
) -> None:
    (firing,) = service.offers(NOON + TEN)
    settings = schedules(tmp_path, now)
    account = Account(service.scheduler, service.store, lambda: settings)
    account.open(firing)
    service.scheduler.reload(settings)

    assert account.wanted(asked_for(firing)) is firing_starts
    assert account.wanted(asked_for()) is waiting_goes_on


def test_dead_mans_switches_that_hang_keep_nobody_from_the_store(
    service: Service, store: Store, tmp_path: Path
) -> None:
    cycle = begin(store, "web")
    store.finish_cycle(cycle.id, status=CycleStatus.HEALTHY, reason=None, detail=None, now=NOON)
    chain = store.chain(cycle.id)

    async def asked_meanwhile(account: Account) -> bool:
        # More than there are threads for everything.
        pings = [asyncio.create_task(account.done(asked_for(), chain)) for _ in range(40)]
        await asyncio.to_thread(receiver.arrived.wait, 60)
        asking = asyncio.create_task(asyncio.to_thread(store.switch))
        done, _ = await asyncio.wait([asking, *pings], return_when=asyncio.FIRST_COMPLETED)
        hangs.set()
        await asyncio.gather(*pings)
        return asking in done

    hangs = threading.Event()
    with receiving() as receiver:
        receiver.hangs = hangs
        settings = schedules(tmp_path, f'name = "web"\nevery = "10m"\nping_url = "{receiver.http()}"')
        answered = service.run(asked_meanwhile(Account(service.scheduler, store, lambda: settings)))
    assert answered


@pytest.mark.parametrize(("overlap", "starts"), [("skip", False), ("queue", True)])
def test_what_is_due_while_a_cycle_goes_on_that_was_not_fired(
    tmp_path: Path, store: Store, overlap: str, starts: bool
) -> None:
    with asyncio.Runner() as runner:
        settings = schedules(tmp_path, f'name = "web"\nevery = "10m"\noverlap = "{overlap}"')
        service = Service(runner, store, settings, Clock())
        service.step()
        account = Account(service.scheduler, store, lambda: settings)
        assert account.wanted(asked_for())
        (firing,) = service.offers(NOON + TEN)
        assert account.open(firing) is starts
        service.step()
        assert [chain.cycle.reason for chain in store.chains(10)] == ([] if starts else ["overlap"])

        service.run(account.done(asked_for(), None))
        if starts:
            service.run(account.done(asked_for(firing), None))
        (after,) = service.offers(NOON + 2 * TEN)
        assert account.open(after)
