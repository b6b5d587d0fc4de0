"""How full a conversation is."""

import pytest
from make import a_call, a_result, a_transcript, usage

from supervisor.decide.context import context_left_behind, first_call, over, window
from supervisor.model.events import Init
from supervisor.model.session import Tokens


def test_the_context_left_behind_is_the_last_main_loop_call_not_the_sum():
    calls = tuple(a_call(f"m{n}", input=10, cache_read=30_000 + n, cache_write=5, output=100) for n in range(20))
    side = a_call("sub", main_loop=False, input=90_000)

    assert context_left_behind(a_transcript(a_result(), calls=(*calls, side))) == 10 + 30_019 + 5 + 100


def test_the_result_tells_the_output_of_a_single_call_that_never_said_it():
    transcript = a_transcript(
        a_result(usage=Tokens(input=1000, output=50)), calls=(a_call("a", final=False, input=1000, output=1),)
    )

    assert context_left_behind(transcript) == 1050


def test_without_a_call_the_context_is_unknown():
    assert context_left_behind(a_transcript(a_result(usage=Tokens(input=9)))) is None


def test_the_first_call_counts_all_that_was_read():
    calls = (
        a_call("s", main_loop=False, input=7),
        a_call("a", input=5, cache_read=100, cache_write=20),
        a_call("b", input=1),
    )

    assert first_call(a_transcript(calls=calls)) == 125


ON_FILE = {"alias": 200_000, "own": 500_000}
REPORTED = a_result(model_usage={"own": usage(0.1, window=1_000_000, input=1), "side": usage(0.1, input=1)})


def ran(model: str | None) -> Init:
    return Init(session_id="s", model=model, version=None, tools=(), cwd=None)


@pytest.mark.parametrize(
    ("transcript", "asked", "expected"),
    [
        pytest.param(a_transcript(REPORTED, init=ran("own")), "alias", 1_000_000, id="the CLI says it"),
        pytest.param(a_transcript(init=ran("own")), "alias", 500_000, id="no result: the model that ran"),
        pytest.param(a_transcript(REPORTED, init=ran("other")), "alias", 200_000, id="not on file: what was asked for"),
        pytest.param(a_transcript(init=ran(None)), "alias", 200_000, id="the CLI named no model"),
        pytest.param(a_transcript(), "alias", 200_000, id="it said nothing at all"),
        pytest.param(a_transcript(init=ran("other")), "another", None, id="nobody knows"),
    ],
)
def test_the_window_is_that_of_the_run_s_own_model_as_far_as_anybody_knows(transcript, asked, expected):
    assert window(transcript, asked, ON_FILE.get) == expected


@pytest.mark.parametrize(
    ("tokens", "limit", "threshold", "expected"),
    [
        (15_000, 200_000, 0.8, False),
        (170_000, 200_000, 0.8, True),
        (170_000, 1_000_000, 0.8, False),
        (150_000, 200_000, 0.7, True),
        (None, 200_000, 0.8, True),
        (1, None, 0.8, True),
        (1, 0, 0.8, True),
    ],
)
def test_too_large_is_strictly_above_the_threshold_and_unknown_is_too_large(tokens, limit, threshold, expected):
    assert over(tokens, limit, threshold) is expected
