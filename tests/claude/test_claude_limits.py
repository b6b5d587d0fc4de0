"""When a run has to end, told on a clock of our own."""

from supervisor.claude.limits import Limits, Patience
from supervisor.model.events import Alive, ApiRetry, CallUsage, Init, Result, StreamEvent, Text, Unreadable
from supervisor.model.outcome import Ended
from supervisor.model.session import Tokens

LIMITS = Limits(
    first_output_seconds=10,
    silence_seconds=20,
    wall_clock_seconds=100,
    overload_wait_seconds=30,
    end_grace_seconds=1,
    after_result_seconds=5,
)
RESULT = Result(
    session_id=None,
    subtype="success",
    is_error=False,
    text=None,
    structured_output=None,
    stop_reason=None,
    terminal_reason=None,
    api_error_status=None,
    num_turns=None,
    total_cost_usd=None,
    usage=None,
    model_usage={},
    own_model_usage=None,
    permission_denials=0,
    errors=(),
)
CALL = CallUsage(message_id="m", model="m", tokens=Tokens(), final=False, main_loop=True)
NOISE = Unreadable(why="", raw="", size=0)
MADE_UP = Text(message_id="m", model="<synthetic>", text="API Error", parent_tool_use_id=None)


def retry(status: int | None, *, delay: float = 1.0, error: str = "unknown") -> ApiRetry:
    return ApiRetry(attempt=1, max_retries=10, error_status=status, delay_seconds=delay, error=error)


def after(*seen: tuple[float, StreamEvent]) -> Patience:
    patience = Patience(LIMITS, now=0)
    for now, event in seen:
        patience.heard(now)
        patience.saw(event, now)
    return patience


def test_the_first_output_is_waited_for_from_the_prompt_on():
    assert after().verdict(9.9) is None
    assert after().verdict(10) is Ended.NO_OUTPUT


def test_silence_counts_from_the_last_byte():
    patience = after((5, Alive()))

    assert patience.verdict(24.9) is None
    assert patience.verdict(25) is Ended.SILENCE


def test_the_wall_clock_outranks_a_lively_run():
    assert after((99, Alive())).verdict(100) is Ended.WALL_CLOCK


def test_after_its_result_a_run_has_a_short_time_to_leave():
    patience = after((95, RESULT), (99, NOISE), (99.5, Alive()))

    assert patience.verdict(99.9) is None
    assert patience.verdict(100) is Ended.AFTER_RESULT


def test_a_run_that_goes_on_after_a_result_is_under_its_limits_again():
    patience = after((1, RESULT), (2, CALL))

    assert patience.verdict(8) is None
    assert patience.verdict(22) is Ended.SILENCE


def test_a_refused_key_is_not_tried_a_third_time():
    assert after((1, retry(401))).verdict(1) is None
    assert after((1, retry(401)), (2, retry(401))).verdict(2) is Ended.ENDLESS_RETRY
    assert after((1, retry(403)), (2, retry(401))).verdict(2) is Ended.ENDLESS_RETRY
    named = retry(None, error="authentication_failed")
    assert after((1, named), (2, named)).verdict(2) is Ended.ENDLESS_RETRY


def test_a_key_that_works_after_one_refusal_is_fine():
    assert after((1, retry(401)), (2, CALL), (3, retry(401))).verdict(3) is None


def test_an_overloaded_api_is_waited_for_from_the_first_retry_on():
    for status in (529, 429, 500, None):
        patience = after((5, retry(status)), (20, retry(status)))
        assert patience.verdict(34.9) is None
        assert patience.verdict(35) is Ended.ENDLESS_RETRY
        assert patience.last_retry == retry(status)


def test_an_answer_ends_the_streak_but_what_the_cli_makes_up_is_no_answer():
    assert after((5, retry(529)), (20, CALL), (30, retry(529))).verdict(36) is None
    assert after((5, retry(529)), (20, MADE_UP), (30, retry(529))).verdict(36) is Ended.ENDLESS_RETRY
    assert after((5, retry(529)), (20, CALL)).last_retry is None


def test_a_retry_that_would_come_too_late_is_not_waited_for():
    assert after((5, retry(429, delay=3600))).verdict(5) is Ended.ENDLESS_RETRY


def test_the_pause_before_a_retry_is_no_silence():
    init = Init(session_id=None, model=None, version=None, tools=(), cwd=None)
    patience = after((1, init), (5, retry(529, delay=25)))

    assert patience.verdict(29) is None
