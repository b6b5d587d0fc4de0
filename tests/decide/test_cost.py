"""A run's own cost, whatever its CLI adds up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from make import a_call, a_result, a_transcript, usage

from supervisor.decide.cost import restores, spend
from supervisor.model.session import CostBasis, ModelUsage, Tokens

OLD, RESTORING, NEWEST = "2.1.225", "2.1.300", "2.1.325"


def price(model: str, tokens: Tokens) -> float | None:
    return None if model == "unpriced" else (tokens.input + 5 * tokens.output) / 1_000_000


def account(transcript, inherited, version):
    return spend(transcript, inherited=inherited, version=version, price=price)


def test_a_fresh_run_costs_what_it_reports():
    own = {"haiku": usage(0.0017, input=1000, output=50)}

    spent = account(a_transcript(a_result(total_cost_usd=0.0017, model_usage=own)), {}, RESTORING)

    assert (spent.cost_usd, spent.basis, spent.tokens) == (0.0017, CostBasis.REPORTED, Tokens(input=1000, output=50))


def test_the_measured_chain_is_billed_once_where_totals_are_restored():
    """haiku 0.0017, then sonnet reports 0.0351, then opus 0.0691: together 0.0691, not 0.106."""
    haiku = {"haiku": usage(0.0017, input=1000, output=50)}
    sonnet = {**haiku, "sonnet": usage(0.0334, input=2000, output=60)}
    opus = {**sonnet, "opus": usage(0.0340, input=3000, output=70)}
    runs = [
        (haiku, 0.0017, Tokens(input=1000, output=50), {}),
        (sonnet, 0.0351, Tokens(input=2000, output=60), haiku),
        (opus, 0.0691, Tokens(input=3000, output=70), sonnet),
    ]

    spent = [
        account(a_transcript(a_result(total_cost_usd=total, usage=loop, model_usage=reported)), before, RESTORING)
        for reported, total, loop, before in runs
    ]

    assert sum(s.cost_usd for s in spent) == pytest.approx(0.0691)
    assert [s.tokens for s in spent] == [loop for _, _, loop, _ in runs]
    assert {s.basis for s in spent} == {CostBasis.REPORTED}


def test_one_model_on_every_tier_is_subtracted_too():
    before = {"m": usage(0.001, input=1000, output=100)}
    result = a_result(
        total_cost_usd=0.003,
        usage=Tokens(input=2000, output=200),
        model_usage={"m": usage(0.003, input=3000, output=300)},
    )

    spent = account(a_transcript(result), before, RESTORING)

    assert spent.cost_usd == pytest.approx(0.002)
    assert spent.tokens == Tokens(input=2000, output=200)


def test_the_cli_s_own_word_on_this_process_is_taken_where_it_gives_one():
    result = a_result(
        total_cost_usd=0.00025,
        usage=Tokens(input=1000, output=50),
        model_usage={"m": usage(0.00025, input=2000, output=100)},
        own_model_usage={"m": usage(0.000125, input=1000, output=50)},
    )

    spent = account(a_transcript(result), None, NEWEST)

    assert (spent.cost_usd, spent.tokens, spent.basis) == (0.000125, Tokens(input=1000, output=50), CostBasis.REPORTED)
    assert spent.reported == result.model_usage


def test_several_results_of_one_process_are_added_up():
    first = a_result(own_model_usage={"m": usage(0.001, input=10)}, model_usage={"m": usage(0.001, input=10)})
    second = a_result(own_model_usage={"m": usage(0.002, input=20)}, model_usage={"m": usage(0.003, input=30)})
    transcript = a_transcript(second)

    spent = account(type(transcript)(results=(first, second), messages=2), {}, NEWEST)

    assert spent.cost_usd == pytest.approx(0.003)
    assert spent.tokens == Tokens(input=30)


def test_an_old_cli_that_uses_the_parent_s_model_for_side_calls_is_not_taken_for_restoring():
    before = {"haiku": usage(0.001, input=100, output=10)}
    result = a_result(
        total_cost_usd=0.05,
        usage=Tokens(input=2000, output=60),
        model_usage={"sonnet": usage(0.04, input=2000, output=60), "haiku": usage(0.01, input=900, output=90)},
    )

    spent = account(a_transcript(result), before, OLD)

    assert spent.cost_usd == 0.05


def test_a_killed_run_is_estimated_from_its_calls_and_says_so():
    spent = account(a_transcript(calls=(a_call("a", input=1000, output=1), a_call("b", input=2000, output=9))), {}, OLD)

    assert (spent.cost_usd, spent.basis) == (pytest.approx(0.00305), CostBasis.ESTIMATED)
    assert spent.tokens == Tokens(input=3000, output=10)


def test_an_account_that_leaves_out_the_call_it_was_interrupted_in_is_not_believed():
    result = a_result(
        total_cost_usd=0.0, usage=Tokens(), model_usage={}, own_model_usage={}, subtype="error_during_execution"
    )

    spent = account(a_transcript(result, calls=(a_call("a", input=4000, output=32),)), {}, NEWEST)

    assert (spent.cost_usd, spent.basis) == (pytest.approx(0.00416), CostBasis.ESTIMATED)


def test_a_killed_run_of_a_model_without_a_price_has_tokens_but_no_cost():
    spent = account(a_transcript(calls=(a_call("a", model="unpriced", input=1000),)), {}, OLD)

    assert (spent.cost_usd, spent.basis, spent.tokens) == (None, CostBasis.UNKNOWN, Tokens(input=1000))


def test_a_run_that_was_killed_before_any_call_cost_nobody_knows_what():
    spent = account(a_transcript(), {}, OLD)

    assert (spent.cost_usd, spent.basis, spent.tokens) == (None, CostBasis.UNKNOWN, None)


@pytest.mark.parametrize(("version", "basis"), [(RESTORING, CostBasis.ESTIMATED), (OLD, CostBasis.REPORTED)])
def test_a_parent_that_never_gave_its_account_can_only_be_subtracted_where_nothing_is_carried_over(version, basis):
    result = a_result(total_cost_usd=0.5, usage=Tokens(input=10), model_usage={"m": usage(0.5, input=10)})

    spent = account(a_transcript(result, calls=(a_call("a", input=10),)), None, version)

    assert spent.basis is basis


def test_a_result_without_a_cost_is_unknown_not_free():
    spent = account(a_transcript(a_result(total_cost_usd=None)), {}, OLD)

    assert (spent.cost_usd, spent.basis) == (None, CostBasis.UNKNOWN)


counts = st.integers(min_value=1, max_value=10**6)
some_tokens = st.builds(Tokens, input=counts, output=counts, cache_read=counts, cache_write=counts)


@given(
    parent=some_tokens,
    own=some_tokens,
    side=some_tokens,
    same_model=st.booleans(),
    version=st.sampled_from([RESTORING, "fork", None]),
)
def test_subtracting_gives_back_exactly_what_the_run_used(parent, own, side, same_model, version):
    model = "a" if same_model else "b"
    inherited = {"a": ModelUsage(tokens=parent, cost_usd=parent.total / 1e6)}
    reported = {
        "a": ModelUsage(tokens=parent + side, cost_usd=(parent.total + side.total) / 1e6),
        "b": ModelUsage(tokens=Tokens(), cost_usd=0.0),
    }
    reported[model] = ModelUsage(
        tokens=reported[model].tokens + own, cost_usd=(reported[model].cost_usd or 0.0) + own.total / 1e6
    )

    spent = account(a_transcript(a_result(usage=own, model_usage=reported)), inherited, version)

    assert spent.tokens == own + side
    assert spent.cost_usd == pytest.approx((own.total + side.total) / 1e6)


@given(parent=some_tokens, own=some_tokens)
def test_an_account_that_starts_at_zero_is_never_reduced(parent, own):
    inherited = {"a": ModelUsage(tokens=parent, cost_usd=1.0)}
    reported = {"a": ModelUsage(tokens=own, cost_usd=2.0)}

    for version in (OLD, RESTORING, NEWEST, None):
        assert not restores(reported, inherited, main_loop=own, version=version)
