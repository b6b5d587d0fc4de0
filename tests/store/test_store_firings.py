"""How far schedules have been dealt with: one writer wins, and a skipped firing is claimed like one that runs."""

import pytest

from supervisor.errors import Conflict
from supervisor.model.cycle import CycleStatus, Trigger
from supervisor.store import Store
from tests.store.races import race_often
from tests.store.store_examples import NOON, begin, minutes

DEALER = """
import sys
from datetime import timedelta
from supervisor.store import open_store
from tests.store.store_examples import NOON

with open_store(sys.argv[1]) as store:
    print("ready", flush=True)
    for line in sys.stdin:
        at = NOON + timedelta(minutes=int(line))
        print(store.deal("web", at + timedelta(minutes=1), expected=at), flush=True)
"""


def skip(store: Store, key: str | None) -> None:
    reason = {"reason": "overlap", "detail": "The cycle before it was still running."}
    store.skip_cycle(schedule="web", trigger=Trigger.SCHEDULE, dry_run=False, now=NOON, fire_key=key, **reason)


def test_a_schedule_is_dealt_with_from_when_it_was_registered_first(store: Store) -> None:
    store.register(["web"], NOON)
    store.register(["db", "web"], NOON + minutes(5))
    store.register([], NOON)

    assert store.dealt_until(["db", "other", "web"]) == {"db": NOON + minutes(5), "web": NOON}
    assert store.dealt_until([]) == {}


def test_many_schedules_are_looked_up_at_once(store: Store) -> None:
    names = [f"s{number}" for number in range(1200)]
    store.register(names, NOON)

    assert store.dealt_until([*names, "other"]) == dict.fromkeys(names, NOON)


def test_who_expects_something_else_than_there_is_changes_nothing(store: Store) -> None:
    store.register(["web", "db"], NOON)

    assert store.deal("web", NOON + minutes(1), expected=NOON)
    assert not store.deal("web", NOON + minutes(2), expected=NOON)
    assert not store.deal("other", NOON + minutes(2), expected=NOON)
    assert store.dealt_until(["web", "db", "other"]) == {"web": NOON + minutes(1), "db": NOON}


def test_of_several_that_deal_with_the_same_one_wins(store: Store, url: str) -> None:
    store.register(["web"], NOON)

    answers = race_often(DEALER, url, [str(number) for number in range(20)], processes=3)

    assert answers == [["False", "False", "True"]] * 20
    assert store.dealt_until(["web"]) == {"web": NOON + minutes(20)}


def test_a_skipped_firing_is_claimed_like_one_that_runs(store: Store) -> None:
    skip(store, "12:00")
    with pytest.raises(Conflict, match="already claimed by cycle 1"):
        begin(store, "web", fire_key="12:00")
    begin(store, "web", fire_key="12:10")
    with pytest.raises(Conflict):
        skip(store, "12:10")

    assert [chain.cycle.status for chain in store.chains(9)] == [CycleStatus.RUNNING, CycleStatus.SKIPPED]


def test_what_is_skipped_without_a_key_claims_nothing(store: Store) -> None:
    skip(store, None)
    skip(store, None)

    assert len(store.chains(9)) == 2


def test_the_last_cycle_of_each_schedule_is_found(store: Store) -> None:
    first = begin(store, "web", now=NOON)
    store.finish_cycle(first.id, status=CycleStatus.HEALTHY, reason=None, detail=None, now=NOON)
    second = begin(store, "web", now=NOON + minutes(1))
    other = begin(store, "db", now=NOON)

    assert store.last_cycles(["web", "db", "none"]) == {"web": second, "db": other}


def test_missed_firings_add_up_by_schedule_and_count_only_for_who_dealt_with_them(store: Store) -> None:
    store.register(["web", "db"], NOON)

    assert store.deal("web", NOON + minutes(2), expected=NOON, missed=2)
    assert not store.deal("web", NOON + minutes(2), expected=NOON, missed=2)
    assert store.deal("web", NOON + minutes(5), expected=NOON + minutes(2), missed=3)
    assert store.deal("web", NOON + minutes(6), expected=NOON + minutes(5))
    assert store.deal("db", NOON + minutes(1), expected=NOON, missed=1)

    assert store.missed_fires() == {"web": 5, "db": 1}
