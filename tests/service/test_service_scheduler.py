"""The scheduler on a real store: what it offers, what it writes down, and what outlives it."""

import asyncio
import datetime as dt
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier

import pytest
from sqlalchemy import Connection

from supervisor.errors import Conflict, StoreUnavailable
from supervisor.model.cycle import CycleStatus
from supervisor.service.scheduler import LONGEST_REST_SECONDS, Firing, Scheduler
from supervisor.store import Store, open_store
from supervisor.store.engine import Database
from supervisor.store.tallies import TallyName
from tests.service.scheduled import DAY, HOUR, MINUTE, NOON, Clock, Service, schedules

TEN = 10 * MINUTE
QUEUEING = 'name = "web"\nevery = "10m"\noverlap = "queue"'

Serve = Callable[..., Service]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/state/opsladder.db") as opened:
        yield opened


@pytest.fixture
def serve(tmp_path: Path, store: Store) -> Iterator[Serve]:
    """``serve(*tables)``: a service that has just started, at noon unless another clock is given."""
    with asyncio.Runner() as runner:

        def start(*tables: str, clock: Clock | None = None) -> Service:
            return Service(runner, store, schedules(tmp_path, *tables), clock or Clock())

        yield start


def missed(store: Store) -> float:
    return sum(tally.value for tally in store.tallies() if tally.name is TallyName.MISSED_FIRES)


def skipped(store: Store) -> list[tuple[str | None, dt.datetime]]:
    chains = store.chains(100, CycleStatus.SKIPPED)
    return [(chain.cycle.reason, chain.cycle.started_at) for chain in reversed(chains)]


def test_a_schedule_that_was_not_known_begins_from_now(serve: Serve, store: Store) -> None:
    service = serve()

    assert service.offers() == []
    assert store.dealt_until(["web"]) == {"web": NOON}
    assert service.scheduler.next_fires() == {"web": NOON + TEN}
    assert service.offers(NOON + TEN) == [Firing(schedule="web", due=NOON + TEN)]
    assert missed(store) == 0


def test_a_schedule_for_people_is_left_to_them(serve: Serve) -> None:
    service = serve('name = "by-hand"')

    assert service.offers(NOON + DAY) == []
    assert service.scheduler.next_fires() == {}


def test_a_firing_is_dealt_with_from_its_start_on(serve: Serve, store: Store) -> None:
    service = serve()
    service.step()
    (firing,) = service.offers(NOON + TEN)
    service.step()
    assert store.dealt_until(["web"])["web"] < firing.due

    service.begin(firing)
    service.step()

    assert store.dealt_until(["web"]) == {"web": firing.due}


def test_a_firing_that_never_started_is_offered_by_the_next_service(serve: Serve, store: Store) -> None:
    first = serve()
    first.step()
    (lost,) = first.offers(NOON + TEN)

    soon, late = serve(clock=Clock(NOON + TEN)), serve(clock=Clock(NOON + 2 * HOUR + MINUTE))

    assert soon.offers() == [lost]
    assert late.offers() == [Firing(schedule="web", due=NOON + 2 * HOUR)]
    assert missed(store) == 11


@pytest.mark.parametrize(
    ("table", "offered", "recorded"),
    [
        pytest.param('misfire = "once"', [NOON + 50 * MINUTE], [], id="made up once"),
        pytest.param('misfire = "skip"', [], ["missed"], id="skipped"),
    ],
)
def test_what_was_missed_while_nobody_was_there_is_counted_once(
    serve: Serve, store: Store, table: str, offered: list[dt.datetime], recorded: list[str]
) -> None:
    table = f'name = "web"\nevery = "10m"\n{table}'
    serve(table).step()

    again = serve(table, clock=Clock(NOON + 55 * MINUTE))
    made_up = again.offers()
    for firing in made_up:
        again.begin(firing)
    again.step()
    serve(table, clock=Clock(NOON + 56 * MINUTE)).step()

    assert [firing.due for firing in made_up] == offered
    assert all(firing.made_up for firing in made_up)
    assert missed(store) == 5
    assert [reason for reason, _ in skipped(store)] == recorded


def test_what_two_services_find_missed_at_the_same_moment_is_counted_once(
    serve: Serve, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = [serve(), serve()]
    for service in services:
        service.step()
    look, both = store.dealt_until, Barrier(2)

    def looked_at_together(names: Collection[str]) -> dict[str, dt.datetime]:
        both.wait(timeout=60)
        return look(names)

    async def at_once() -> None:
        await asyncio.gather(*(service.scheduler.step() for service in services))

    monkeypatch.setattr(store, "dealt_until", looked_at_together)
    for service in services:
        service.clock.now = NOON + 55 * MINUTE
    services[0].run(at_once())

    assert missed(store) == 5


def test_missed_firings_are_counted_once_although_the_answer_of_the_store_is_lost(
    serve: Serve, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serve()
    service.step()
    writing = Database.writing

    @contextmanager
    def without_an_answer(database: Database) -> Iterator[Connection]:
        with writing(database) as connection:
            yield connection
        monkeypatch.undo()
        raise StoreUnavailable("The line was cut.")

    monkeypatch.setattr(Database, "writing", without_an_answer)
    service.step(NOON + 55 * MINUTE)
    assert service.scheduler.problem
    service.run(service.scheduler.close())

    assert missed(store) == 5


def test_a_firing_while_another_runs_is_skipped_and_claimed(serve: Serve, store: Store) -> None:
    service = serve()
    service.step()
    (first,) = service.offers(NOON + TEN)
    service.begin(first)

    assert service.offers(NOON + 2 * TEN) == []
    assert skipped(store) == [("overlap", NOON + 2 * TEN)]
    service.finish(first)
    with pytest.raises(Conflict, match="already claimed"):
        service.begin(Firing(schedule="web", due=NOON + 2 * TEN))
    assert service.offers(NOON + 3 * TEN) == [Firing(schedule="web", due=NOON + 3 * TEN)]


def test_one_firing_is_queued_and_stands_for_those_after_it(serve: Serve, store: Store) -> None:
    service = serve(QUEUEING)
    service.step()
    (first,) = service.offers(NOON + TEN)
    service.begin(first)

    assert [service.offers(NOON + count * TEN) for count in (2, 3, 4)] == [[], [], []]
    service.finish(first)
    assert service.offers() == [Firing(schedule="web", due=NOON + 2 * TEN)]
    assert skipped(store) == []


def test_a_queued_firing_is_not_lost_with_the_service(serve: Serve) -> None:
    service = serve(QUEUEING)
    service.step()
    (first,) = service.offers(NOON + TEN)
    service.begin(first)
    service.step(NOON + 2 * TEN)

    again = serve(QUEUEING, clock=Clock(NOON + 2 * TEN + MINUTE / 2))

    assert again.offers() == [Firing(schedule="web", due=NOON + 2 * TEN)]


def test_nothing_starts_in_a_blackout_not_even_what_was_queued(serve: Serve, store: Store) -> None:
    service = serve(QUEUEING + '\nblackout = ["13:25-13:55"]\ntimezone = "Europe/Berlin"')
    service.step()
    (first,) = service.offers(NOON + TEN)
    service.begin(first)
    service.step(NOON + 2 * TEN)
    service.step(NOON + 3 * TEN)
    service.finish(first)

    offered = [service.offers(NOON + count * TEN) for count in (3, 4, 5, 6)]

    assert offered == [[], [], [], [Firing(schedule="web", due=NOON + 6 * TEN)]]
    assert [reason for reason, _ in skipped(store)] == ["blackout"] * 3


def test_a_firing_that_waits_for_room_into_a_blackout_is_skipped(serve: Serve, store: Store) -> None:
    service = serve(QUEUEING + '\nblackout = ["13:15-13:35"]\ntimezone = "Europe/Berlin"')
    service.step()
    (waits,) = service.offers(NOON + TEN)
    assert service.scheduler.may_start(waits)
    service.clock.now = NOON + TEN + 6 * MINUTE

    assert not service.scheduler.may_start(waits)

    offered = [service.offers(NOON + count * TEN) for count in (2, 3, 4)]
    assert offered == [[], [], [Firing(schedule="web", due=NOON + 4 * TEN)]]
    assert [reason for reason, _ in skipped(store)] == ["blackout"] * 3


def test_of_two_services_one_runs_a_firing_and_both_go_on(serve: Serve, store: Store) -> None:
    one, other = serve(), serve()
    for service in (one, other):
        service.step()
    (mine,), (same,) = one.offers(NOON + TEN), other.offers(NOON + TEN)
    one.begin(mine)
    with pytest.raises(Conflict):
        other.begin(same)
    other.scheduler.ended(same)
    one.finish(mine)
    for service in (one, other):
        service.step()

    assert mine == same
    assert store.dealt_until(["web"]) == {"web": NOON + TEN}
    assert one.offers(NOON + 2 * TEN) == [Firing(schedule="web", due=NOON + 2 * TEN)]


def test_what_another_service_has_dealt_with_is_not_offered(serve: Serve) -> None:
    one, other = serve(), serve()
    for service in (one, other):
        service.step()
    (mine,) = one.offers(NOON + TEN)
    one.begin(mine)
    one.step()

    assert other.offers(NOON + TEN) == []
    assert other.scheduler.next_fires() == {"web": NOON + 2 * TEN}


def test_a_clock_that_was_put_back_a_little_is_waited_for(serve: Serve) -> None:
    service = serve()
    service.step()
    (first,) = service.offers(NOON + TEN)
    service.begin(first)
    service.finish(first)
    service.step()

    assert [service.offers(NOON + count * MINUTE) for count in (-20, 0, 10, 19)] == [[], [], [], []]
    assert [firing.due for firing in service.offers(NOON + 2 * TEN)] == [NOON + 2 * TEN]


@pytest.mark.parametrize("restarted", [False, True], ids=["the same service", "another service"])
def test_a_clock_that_was_a_year_ahead_for_a_moment_silences_nothing(serve: Serve, restarted: bool) -> None:
    service = serve()
    service.step()
    (wrong,) = service.offers(NOON + 365 * DAY)
    service.begin(wrong)
    service.finish(wrong)
    service.step()
    service.clock.now = NOON + MINUTE
    if restarted:
        service = serve(clock=service.clock)
    service.step()

    assert [firing.due for firing in service.offers(NOON + TEN)] == [NOON + TEN]


def test_a_firing_that_is_put_off_is_offered_again(serve: Serve) -> None:
    service = serve()
    service.step()
    (firing,) = service.offers(NOON + TEN)
    service.scheduler.put_off(firing)

    assert service.offers(NOON + TEN + MINUTE / 3) == []
    assert service.offers(NOON + TEN + MINUTE / 2) == [firing]
    assert service.offers(NOON + TEN + 2 * MINUTE) == []


def test_a_firing_that_is_put_off_is_offered_again_although_the_clock_is_put_back(serve: Serve) -> None:
    service = serve(clock=Clock(NOON + DAY))
    service.step()
    (firing,) = service.offers(NOON + DAY + TEN)
    service.scheduler.put_off(firing)
    assert service.offers(NOON) == []

    assert service.offers(NOON + MINUTE / 2) == [firing]


def test_a_cycle_that_broke_off_after_its_start_does_not_stand_in_the_way_of_the_next(serve: Serve) -> None:
    service = serve()
    service.step()
    (firing,) = service.offers(NOON + TEN)
    service.begin(firing)
    service.scheduler.put_off(firing)

    assert service.offers(NOON + TEN + MINUTE) == []
    assert service.offers(NOON + 2 * TEN) == [Firing(schedule="web", due=NOON + 2 * TEN)]


def test_a_store_that_is_away_loses_no_firing(serve: Serve, store: Store, tmp_path: Path) -> None:
    service = serve()
    service.step()
    file = tmp_path / "state" / "opsladder.db"
    away = file.with_name("away.db")
    store.close()
    file.rename(away)

    rest = service.step(NOON + TEN)
    assert service.scheduler.firings.empty()
    # Everybody who can reach the port may read it.
    assert service.scheduler.problem == "The scheduler waits for the records."
    assert 0 < rest < LONGEST_REST_SECONDS
    away.rename(file)

    assert [firing.due for firing in service.offers(NOON + TEN + MINUTE / 2)] == [NOON + TEN]
    assert service.scheduler.problem is None


def test_a_reload_leaves_what_is_under_way_alone_and_begins_what_is_new_from_now(
    serve: Serve, store: Store, tmp_path: Path
) -> None:
    daily, gone = 'name = "daily"\ncron = "5 13 * * *"', 'name = "gone"\nevery = "10m"'
    service = serve(QUEUEING, daily, gone)
    service.step()
    _, web = sorted(service.offers(NOON + TEN), key=lambda firing: firing.schedule)
    service.begin(web)
    service.step()

    changed = 'name = "daily"\ncron = "7 12 * * *"'
    service.scheduler.reload(schedules(tmp_path, QUEUEING, changed, 'name = "new"\nevery = "10m"'))
    service.step()

    assert service.offers(NOON + 2 * TEN) == [Firing(schedule="new", due=NOON + 2 * TEN)]
    assert set(service.scheduler.next_fires()) == {"web", "daily", "new"}
    assert service.scheduler.next_fires()["daily"] == NOON + DAY + 7 * MINUTE
    service.finish(web)
    assert service.offers() == [Firing(schedule="web", due=NOON + 2 * TEN)]
    assert missed(store) == 0


@pytest.mark.parametrize(
    ("now", "rest"),
    [
        pytest.param(NOON, LONGEST_REST_SECONDS, id="far from the next firing"),
        pytest.param(NOON + TEN - dt.timedelta(seconds=4), 4.0, id="near it"),
    ],
)
def test_it_rests_until_the_next_firing_but_never_long(serve: Serve, now: dt.datetime, rest: float) -> None:
    service = serve()
    service.step()
    assert service.step(now) == rest


def test_it_runs_by_itself_and_wakes_up_for_what_has_changed(store: Store, tmp_path: Path) -> None:
    clock = Clock()

    async def serve() -> list[Firing]:
        rests: list[float] = []

        async def rest(woken: asyncio.Event, seconds: float) -> None:
            rests.append(seconds)
            clock.now += dt.timedelta(seconds=seconds)
            await asyncio.sleep(0)

        scheduler = Scheduler(schedules(tmp_path), store, clock=clock, rest=rest)
        running = asyncio.create_task(scheduler.run())
        found = []
        for _ in range(3):
            firing = await asyncio.wait_for(scheduler.firings.get(), 60)
            scheduler.started(firing)
            scheduler.ended(firing)
            found.append(firing)
        running.cancel()
        await scheduler.close()
        assert max(rests) <= LONGEST_REST_SECONDS
        return found

    found = asyncio.run(serve())

    assert [firing.due for firing in found] == [NOON + count * TEN for count in (1, 2, 3)]
    assert store.dealt_until(["web"]) == {"web": NOON + 3 * TEN}


def test_ten_thousand_schedules_cost_nothing_while_none_is_due(serve: Serve) -> None:
    service = serve(*(f'name = "s{n}"\ncron = "{n % 60} {n // 60 % 24} * * *"' for n in range(10_000)))
    service.step()
    assert len(service.scheduler.next_fires()) == 10_000

    began = time.process_time()
    for second in range(100):
        service.step(NOON + dt.timedelta(seconds=1 + second / 10))
    idle = time.process_time() - began
    due = service.offers(NOON + MINUTE)

    assert idle < 1.0
    assert {firing.due for firing in due} == {NOON + MINUTE}
    assert len(due) == 7
