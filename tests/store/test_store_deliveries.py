"""Messages are made of notices, once each, and are taken by one process at a time."""

import datetime as dt
from pathlib import Path

import pytest

from supervisor.model.cycle import CycleStatus, Event, EventKind, NewEvent
from supervisor.model.delivery import Delivery, DeliveryStatus
from supervisor.model.report import Level
from supervisor.store import Store, open_store
from supervisor.store.deliveries import LOOK_BACK, Collected
from tests.store.explain import statements, whole_tables_read
from tests.store.races import race
from tests.store.store_examples import NOON, begin, minutes, text_event

HOUR = dt.timedelta(hours=1)
GROUP = dt.timedelta(seconds=30)
GRAVE = frozenset({Level.WARNING, Level.CRITICAL})


def notice(reason: str = "top_tier", *, at: dt.datetime = NOON, level: Level = Level.CRITICAL) -> NewEvent:
    data = {"status": "unresolved", "reason": reason, "services": ["web"]}
    return NewEvent(kind=EventKind.NOTICE, at=at, level=level, text=f"It is {reason}.", data=data)


def collect(store: Store, now: dt.datetime = NOON, levels: frozenset[Level] = GRAVE) -> Collected:
    return store.collect_notices(now, levels=levels, repeat=HOUR, group=GROUP)


def collected(store: Store, *events: NewEvent) -> list[Delivery]:
    cycle = begin(store)
    store.append_events(cycle.id, events)
    collect(store)
    return list(reversed(store.deliveries(100)))


def test_a_notice_becomes_a_message_and_nothing_else_does(store: Store) -> None:
    [delivery] = collected(store, text_event("said"), notice(), notice("info_only", level=Level.INFO))

    assert delivery.title == "default: unresolved (top_tier), web"
    assert (delivery.schedule, delivery.cycle_id, delivery.level) == ("default", 1, Level.CRITICAL)
    assert (delivery.status, delivery.attempts, delivery.error) == (DeliveryStatus.WAITING, 0, None)
    assert (delivery.created_at, delivery.next_try_at, delivery.sent_at) == (NOON, NOON + GROUP, None)
    assert store.waiting_deliveries(NOON) == [delivery]


def test_a_notice_becomes_a_message_once(store: Store) -> None:
    collected(store, notice())
    assert collect(store) == Collected()
    assert collect(store, NOON + minutes(5)) == Collected()
    assert len(store.deliveries(100)) == 1


def test_what_was_settled_long_ago_is_forgotten_and_not_told_again(store: Store) -> None:
    sent, failed, waits = collected(store, notice(), notice("no_report"), notice("budget"))
    for delivery, status in ((sent, DeliveryStatus.SENT), (failed, DeliveryStatus.FAILED)):
        [claimed] = store.claim_deliveries([delivery], until=NOON + HOUR)
        assert store.settle_delivery(claimed, status=status, next_try_at=NOON)

    assert store.prune_deliveries(over_since=NOON) == 0
    assert store.prune_deliveries(over_since=NOON + minutes(10)) == 2
    assert store.deliveries(100) == [waits]
    assert collect(store, NOON + minutes(15)) == Collected()


@pytest.mark.parametrize("others", [0, LOOK_BACK + 1], ids=["few", "many"])
def test_a_notice_is_told_although_it_has_the_number_of_one_that_was_archived(store: Store, others: int) -> None:
    """SQLite gives the number of the newest event that was deleted to the next one."""
    cycle = begin(store)
    store.append_events(cycle.id, [notice(), *[text_event("said")] * others])
    collect(store)
    store.finish_cycle(cycle.id, status=CycleStatus.UNRESOLVED, reason=None, detail=None, now=NOON)
    while not store.delete_messages(cycle.id, up_to={"events": 10**9}, now=NOON):
        pass
    later = NOON + dt.timedelta(days=8)
    store.append_events(begin(store, now=later).id, [notice("no_report", at=later)])

    assert collect(store, later + HOUR / 2) == Collected(to_tell=1)
    assert collect(store, later + HOUR / 2) == Collected()


def test_before_there_is_anything_there_is_nothing_to_tell(store: Store) -> None:
    assert collect(store) == Collected()
    assert store.waiting_deliveries(NOON) == store.deliveries(5) == []


def test_at_first_use_what_is_older_than_an_hour_is_not_told_then_or_later(store: Store) -> None:
    cycle = begin(store, now=NOON - 2 * HOUR)
    store.append_events(cycle.id, [notice("old", at=NOON - minutes(61)), notice("new", at=NOON - minutes(59))])

    assert collect(store) == Collected(to_tell=1)
    assert collect(store, NOON + minutes(1)) == Collected()
    assert [d.topic for d in store.deliveries(5)] == ["default new web"]


def test_after_a_long_silence_everything_of_a_day_is_told(store: Store) -> None:
    [first] = collected(store, notice("first"))
    at = NOON + dt.timedelta(days=3)
    ages = {"days_ago": dt.timedelta(days=2), "this_night": dt.timedelta(hours=8)}
    store.append_events(first.cycle_id or 0, [notice(name, at=at - age) for name, age in ages.items()])

    assert collect(store, at) == Collected(to_tell=1, held_back=1)
    assert [d.status.value for d in store.deliveries(2)] == ["waiting", "held_back"]


def test_the_same_is_held_back_and_the_next_message_says_how_often(store: Store) -> None:
    cycle = begin(store)
    for late in (0, 20, 40, 65):
        store.append_events(cycle.id, [notice(at=NOON + minutes(late))])
        collect(store, NOON + minutes(late))

    *earlier, last = reversed(store.deliveries(10))
    assert [d.status.value for d in earlier] == ["waiting", "held_back", "held_back"]
    assert last.status is DeliveryStatus.WAITING
    assert last.body.endswith("Held back since the last message about this: 2.")


def test_what_failed_for_good_does_not_hold_the_next_one_back(store: Store) -> None:
    [delivery] = collected(store, notice())
    [claimed] = store.claim_deliveries([delivery], until=NOON + minutes(2))
    store.settle_delivery(claimed, status=DeliveryStatus.FAILED, next_try_at=NOON, error="x")
    store.append_events(1, [notice(at=NOON + minutes(5))])
    assert collect(store, NOON + minutes(5)) == Collected(to_tell=1)


def test_many_notices_are_collected_in_one_call_and_many_events_between_them_cost_nothing(store: Store) -> None:
    cycle = begin(store)
    store.append_events(cycle.id, [notice(f"reason_{number}") for number in range(450)])
    store.append_events(cycle.id, [text_event("said")] * LOOK_BACK)
    assert collect(store) == Collected(to_tell=450)
    store.append_events(cycle.id, [text_event("said")] * LOOK_BACK)
    assert collect(store) == Collected()
    store.append_events(cycle.id, [notice("late")])
    assert collect(store) == Collected(to_tell=1)


def test_a_notice_that_becomes_visible_late_is_still_told(store: Store) -> None:
    cycle = begin(store)
    with store._database.writing() as connection:
        connection.exec_driver_sql(
            "INSERT INTO events (id, cycle_id, kind, level, at, text, data) "
            f"VALUES (1000, {cycle.id}, 'text', 'info', '2026-03-01 12:00:00+00:00', '', '{{}}')"
        )
    collect(store)
    with store._database.writing() as connection:
        # Its id was given before that of the event which was looked through already.
        connection.exec_driver_sql(
            "INSERT INTO events (id, cycle_id, kind, level, at, text, data) "
            f"VALUES (900, {cycle.id}, 'notice', 'critical', '2026-03-01 12:00:00+00:00', 'late', '{{}}')"
        )
    assert collect(store, NOON + minutes(1)) == Collected(to_tell=1)


def test_a_claim_is_given_once_and_counts_an_attempt(store: Store) -> None:
    deliveries = collected(store, notice("one"), notice("two"))
    until = NOON + minutes(2)

    first = store.claim_deliveries(deliveries, until=until)
    assert [(d.attempts, d.next_try_at) for d in first] == [(1, until), (1, until)]
    assert store.claim_deliveries(deliveries, until=until) == []


def test_an_outcome_that_comes_after_another_took_over_changes_nothing(store: Store) -> None:
    [delivery] = collected(store, notice())
    [slow] = store.claim_deliveries([delivery], until=NOON)
    [next_one] = store.claim_deliveries([slow], until=NOON + minutes(2))

    assert not store.settle_delivery(slow, status=DeliveryStatus.FAILED, next_try_at=NOON)
    assert store.settle_delivery(next_one, status=DeliveryStatus.SENT, next_try_at=NOON, sent_at=NOON)
    assert store.waiting_deliveries(NOON) == []
    assert [(d.status, d.sent_at, d.attempts) for d in store.deliveries(5)] == [(DeliveryStatus.SENT, NOON, 2)]


def test_messages_that_went_as_one_count_as_one(store: Store) -> None:
    deliveries = collected(store, notice("one"), notice("two"), notice("three", level=Level.WARNING))
    for claimed in store.claim_deliveries(deliveries, until=NOON):
        store.settle_delivery(claimed, status=DeliveryStatus.SENT, next_try_at=NOON, sent_at=NOON)

    assert store.told_since(NOON - HOUR) == {(Level.CRITICAL, NOON), (Level.WARNING, NOON)}
    assert store.told_since(NOON) == set()


COLLECTS = """
import sys, datetime as dt
from supervisor.model.report import Level
from supervisor.store import open_store
store = open_store(sys.argv[1])
now = dt.datetime.fromisoformat({now!r})
print("ready", flush=True)
sys.stdin.readline()
done = store.collect_notices(now, levels=frozenset(Level), repeat=dt.timedelta(hours=1), group=dt.timedelta())
untried = [delivery for delivery in store.waiting_deliveries(now) if not delivery.attempts]
claimed = store.claim_deliveries(untried, until=now + dt.timedelta(minutes=2))
print(done.to_tell, done.held_back, len(claimed))
"""


def test_of_processes_that_collect_and_claim_at_once_each_message_has_one(store: Store, url: str) -> None:
    cycle = begin(store)
    store.append_events(cycle.id, [notice(f"reason_{number}") for number in range(20)] + [notice("reason_0")] * 5)

    answers = race(COLLECTS.format(now=NOON.isoformat()), url)

    told, held, claimed = (sum(column) for column in zip(*(map(int, a.split()) for a in answers), strict=True))
    assert (told, held) == (20, 5)
    assert claimed == 20
    assert len({d.event_id for d in store.deliveries(100)}) == 25


@pytest.mark.parametrize("text", ["\x00 \ud800 \x1b[31m", "x" * 100_000, ""], ids=["hostile", "long", "empty"])
def test_whatever_a_notice_says_it_becomes_a_message(store: Store, text: str) -> None:
    event = NewEvent(kind=EventKind.NOTICE, at=NOON, level=Level.WARNING, text=text)
    [delivery] = collected(store, event)
    assert isinstance(store.events(cycle_id=1)[0], Event)
    assert delivery.level is Level.WARNING


def test_nothing_that_is_asked_every_few_seconds_reads_a_whole_table(tmp_path: Path) -> None:
    file = tmp_path / "opsladder.db"
    with open_store(f"sqlite:///{file}") as store:
        [delivery] = collected(store, notice())
        store.append_events(1, [notice(at=NOON + minutes(1))])
        with statements() as sent:
            collect(store, NOON + minutes(1))
            store.waiting_deliveries(NOON)
            store.told_since(NOON - HOUR)
            [claimed] = store.claim_deliveries([delivery], until=NOON + minutes(2))
            store.settle_delivery(claimed, status=DeliveryStatus.SENT, next_try_at=NOON, sent_at=NOON)
            store.prune_deliveries(over_since=NOON)
        assert whole_tables_read(sent, file) == []
