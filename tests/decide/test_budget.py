"""Which budget is used up, and what a person's approval adds."""

import pytest

from supervisor.decide.budget import Budget, at_least, extended, over_budget

LIMITS = Budget(run_usd=1.0, cycle_usd=2.0, day_usd=3.0)
CASES = {
    "nothing": (Budget(run_usd=0.99, cycle_usd=1.99, day_usd=2.99), None),
    "run": (Budget(run_usd=1.0, cycle_usd=2.0, day_usd=3.0), "this run"),
    "cycle": (Budget(run_usd=0.5, cycle_usd=2.0, day_usd=3.0), "this cycle"),
    "day": (Budget(run_usd=0.5, cycle_usd=0.5, day_usd=3.5), "today"),
    "unknown": (Budget(), None),
}


@pytest.mark.parametrize(("spent", "what"), CASES.values(), ids=CASES.keys())
def test_the_narrowest_limit_that_is_reached_is_named(spent, what):
    over = over_budget(spent, LIMITS)

    assert (over.what if over else None) == what


def test_without_limits_any_amount_may_be_spent():
    assert over_budget(Budget(run_usd=1e6, cycle_usd=1e6, day_usd=1e6), Budget()) is None


def test_the_sentence_names_both_amounts():
    assert over_budget(Budget(day_usd=3.456), LIMITS).sentence == "$3.4560 of the $3.0000 allowed for today is spent."


def test_small_amounts_can_be_told_apart():
    over = over_budget(Budget(run_usd=0.0034), Budget(run_usd=0.001))

    assert over.sentence == "$0.0034 of the $0.0010 allowed for this run is spent."


def test_approval_allows_as_much_again_and_no_more():
    more = extended(LIMITS, Budget(cycle_usd=2.5, day_usd=4.0))

    assert more == Budget(run_usd=1.0, cycle_usd=4.5, day_usd=7.0)
    assert over_budget(Budget(cycle_usd=4.5), more) is not None


def test_approval_makes_no_limit_where_there_was_none():
    assert extended(Budget(), Budget(cycle_usd=9.0)) == Budget()


APPROVED = {
    "nothing": (Budget(), LIMITS),
    "more": (Budget(cycle_usd=5.0, day_usd=7.0), Budget(run_usd=1.0, cycle_usd=5.0, day_usd=7.0)),
    "less_than_is_allowed_by_now": (Budget(cycle_usd=1.0, day_usd=1.0), LIMITS),
    "only_for_the_cycle": (Budget(cycle_usd=5.0), Budget(run_usd=1.0, cycle_usd=5.0, day_usd=3.0)),
}


@pytest.mark.parametrize(("approved", "limits"), APPROVED.values(), ids=APPROVED.keys())
def test_what_was_approved_holds_where_it_is_more(approved, limits):
    assert at_least(LIMITS, approved) == limits
    assert at_least(Budget(), approved) == Budget()
