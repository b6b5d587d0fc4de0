"""What a run may still spend, while it goes on and days change."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.climb.spending import Spending, day_of
from supervisor.decide.budget import Budget
from supervisor.store import Store, open_store

EVENING = dt.datetime(2026, 1, 1, 23, 50, tzinfo=dt.UTC)
MIDNIGHT = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/opsladder.db") as store:
        yield store


def spending(store: Store, now: dt.datetime, *, spent: float = 9.5) -> Spending:
    """Of a run that began in the evening, when so much of ten was spent."""
    limits, before = Budget(day_usd=10.0), Budget(day_usd=spent)
    return Spending(store=store, clock=lambda: now, limits=limits, before=before, day=day_of(EVENING))


def test_what_was_spent_today_before_the_run_counts(store: Store) -> None:
    tonight = spending(store, EVENING)

    assert tonight.over(0.4) is None
    assert tonight.over(0.5) is not None
    assert tonight.over_by_now(0.5) is not None


def test_what_was_spent_on_the_day_before_does_not_stop_a_run_that_goes_on_past_midnight(store: Store) -> None:
    tomorrow = spending(store, MIDNIGHT)

    assert tomorrow.over(0.5) is None
    assert tomorrow.over_by_now(0.5) is None
    assert tomorrow.over(10.0) is not None
