"""How a run ended, as a table over what the real CLI was seen to print."""

import pytest
from make import a_result, a_transcript

from supervisor.decide.outcome import outcome
from supervisor.model.events import ApiRetry, Init, RateLimit
from supervisor.model.outcome import Ended, Failure
from supervisor.model.session import SessionStatus

INIT = Init(session_id="s", model="m", version="2.1.325", tools=(), cwd="/")
API_ERROR = {"is_error": True, "terminal_reason": "api_error"}
UNTOUCHED = {"messages": 0, "tools_executed": 0}


def retry(status: int | None) -> ApiRetry:
    return ApiRetry(attempt=1, max_retries=10, error_status=status, delay_seconds=1.0, error="said so")


def limit(status: str) -> RateLimit:
    return RateLimit(status=status, resets_at=1_800_000_000, kind="five_hour")


# name: (transcript, ended, exit code, stderr, resumed, last retry) -> (status, failure)
TABLE = {
    "success": (a_transcript(a_result()), Ended.BY_ITSELF, 0, "", False, None, SessionStatus.COMPLETED, None),
    "success_then_ended_by_us": (
        a_transcript(a_result()),
        Ended.AFTER_RESULT,
        None,
        "",
        False,
        None,
        SessionStatus.COMPLETED,
        None,
    ),
    "ctrl_c_after_the_result": (
        a_transcript(a_result()),
        Ended.INTERRUPTED,
        143,
        "",
        False,
        None,
        SessionStatus.COMPLETED,
        None,
    ),
    "interrupted_and_called_an_error_by_the_cli": (
        a_transcript(a_result(subtype="error_during_execution", is_error=True)),
        Ended.INTERRUPTED,
        0,
        "",
        True,
        None,
        SessionStatus.INTERRUPTED,
        Failure.INTERRUPTED,
    ),
    "work_done_but_the_report_never_fitted": (
        a_transcript(a_result(subtype="error_max_structured_output_retries", is_error=True)),
        Ended.BY_ITSELF,
        1,
        "",
        False,
        None,
        SessionStatus.COMPLETED,
        None,
    ),
    "turns": (
        a_transcript(a_result(subtype="error_max_turns", is_error=True)),
        Ended.BY_ITSELF,
        1,
        "",
        False,
        None,
        SessionStatus.INTERRUPTED,
        Failure.TURN_LIMIT,
    ),
    "turns_on_an_old_cli_that_exits_0": (
        a_transcript(a_result(subtype="error_max_turns", is_error=False)),
        Ended.BY_ITSELF,
        0,
        "",
        False,
        None,
        SessionStatus.INTERRUPTED,
        Failure.TURN_LIMIT,
    ),
    "budget": (
        a_transcript(a_result(subtype="error_max_budget_usd", is_error=True)),
        Ended.BY_ITSELF,
        1,
        "",
        False,
        None,
        SessionStatus.PAUSED,
        Failure.BUDGET,
    ),
    "unknown_session": (
        a_transcript(
            a_result(subtype="error_during_execution", is_error=True, num_turns=0, text=None, errors=("No conv",)),
            **UNTOUCHED,
        ),
        Ended.BY_ITSELF,
        1,
        "",
        True,
        None,
        SessionStatus.REJECTED,
        Failure.RESUME_REJECTED,
    ),
    "unknown_session_json_format": (
        a_transcript(**UNTOUCHED),
        Ended.BY_ITSELF,
        1,
        "No conversation found with session ID: x",
        True,
        None,
        SessionStatus.REJECTED,
        Failure.RESUME_REJECTED,
    ),
    "the_same_words_on_a_fresh_run": (
        a_transcript(**UNTOUCHED),
        Ended.BY_ITSELF,
        1,
        "No conversation found with session ID: x",
        False,
        None,
        SessionStatus.FAILED,
        Failure.NO_RESULT,
    ),
    "error_after_a_tool_is_no_rejection": (
        a_transcript(a_result(subtype="error_during_execution", is_error=True), tools_executed=1),
        Ended.BY_ITSELF,
        1,
        "",
        True,
        None,
        SessionStatus.FAILED,
        Failure.EXECUTION_ERROR,
    ),
    "id_in_use": (
        a_transcript(**UNTOUCHED),
        Ended.BY_ITSELF,
        1,
        "Error: Session ID x is already in use.",
        False,
        None,
        SessionStatus.FAILED,
        Failure.SESSION_ID_IN_USE,
    ),
    "bad_key_result": (
        a_transcript(a_result(api_error_status=401, **API_ERROR)),
        Ended.BY_ITSELF,
        1,
        "",
        False,
        None,
        SessionStatus.FAILED,
        Failure.BAD_CREDENTIALS,
    ),
    "bad_key_retries": (
        a_transcript(),
        Ended.ENDLESS_RETRY,
        None,
        "",
        False,
        retry(401),
        SessionStatus.FAILED,
        Failure.BAD_CREDENTIALS,
    ),
    "overloaded": (
        a_transcript(),
        Ended.ENDLESS_RETRY,
        None,
        "",
        False,
        retry(529),
        SessionStatus.FAILED,
        Failure.OVERLOADED,
    ),
    "server_error": (
        a_transcript(a_result(api_error_status=500, **API_ERROR)),
        Ended.BY_ITSELF,
        1,
        "",
        False,
        None,
        SessionStatus.FAILED,
        Failure.OVERLOADED,
    ),
    "no_network": (
        a_transcript(),
        Ended.ENDLESS_RETRY,
        None,
        "",
        False,
        retry(None),
        SessionStatus.FAILED,
        Failure.NETWORK,
    ),
    "no_network_until_the_cli_gave_up": (
        a_transcript(a_result(text="API Error: Unable to connect to API (ENOTFOUND)", **API_ERROR), **UNTOUCHED),
        Ended.BY_ITSELF,
        1,
        "",
        False,
        None,
        SessionStatus.FAILED,
        Failure.NETWORK,
    ),
    "no_network_is_no_refusal_to_resume": (
        a_transcript(a_result(text="API Error: Unable to connect to API (ENOTFOUND)", **API_ERROR), **UNTOUCHED),
        Ended.BY_ITSELF,
        1,
        "",
        True,
        None,
        SessionStatus.FAILED,
        Failure.NETWORK,
    ),
    "not_logged_in": (
        a_transcript(a_result(text="Not logged in · Please run /login", **API_ERROR), **UNTOUCHED),
        Ended.BY_ITSELF,
        1,
        "",
        False,
        None,
        SessionStatus.FAILED,
        Failure.BAD_CREDENTIALS,
    ),
    "not_logged_in_is_no_refusal_to_resume": (
        a_transcript(a_result(text="Not logged in · Please run /login", **API_ERROR), **UNTOUCHED),
        Ended.BY_ITSELF,
        1,
        "",
        True,
        None,
        SessionStatus.FAILED,
        Failure.BAD_CREDENTIALS,
    ),
    "too_fast": (
        a_transcript(a_result(api_error_status=429, **API_ERROR)),
        Ended.BY_ITSELF,
        1,
        "",
        False,
        None,
        SessionStatus.FAILED,
        Failure.RATE_LIMITED,
    ),
    "usage_limit": (
        a_transcript(a_result(api_error_status=429, **API_ERROR), rate_limit=limit("rejected")),
        Ended.BY_ITSELF,
        1,
        "",
        False,
        None,
        SessionStatus.PAUSED,
        Failure.USAGE_LIMIT,
    ),
    "usage_warning_is_not_a_limit": (
        a_transcript(a_result(), rate_limit=limit("allowed_warning")),
        Ended.BY_ITSELF,
        0,
        "",
        False,
        None,
        SessionStatus.COMPLETED,
        None,
    ),
    "context_exhausted": (
        a_transcript(a_result(api_error_status=400, is_error=True, terminal_reason="prompt_too_long")),
        Ended.BY_ITSELF,
        1,
        "",
        False,
        None,
        SessionStatus.FAILED,
        Failure.CONTEXT_EXHAUSTED,
    ),
    "context_exhausted_by_what_was_resumed": (
        a_transcript(a_result(api_error_status=400, is_error=True, terminal_reason="prompt_too_long"), **UNTOUCHED),
        Ended.BY_ITSELF,
        1,
        "",
        True,
        None,
        SessionStatus.REJECTED,
        Failure.CONTEXT_EXHAUSTED,
    ),
    "invalid_request": (
        a_transcript(a_result(api_error_status=400, **API_ERROR)),
        Ended.BY_ITSELF,
        1,
        "",
        False,
        None,
        SessionStatus.FAILED,
        Failure.INVALID_REQUEST,
    ),
    "other_api_error": (
        a_transcript(a_result(api_error_status=404, **API_ERROR)),
        Ended.BY_ITSELF,
        1,
        "",
        False,
        None,
        SessionStatus.FAILED,
        Failure.API_ERROR,
    ),
    "no_output": (
        a_transcript(**UNTOUCHED),
        Ended.NO_OUTPUT,
        None,
        "",
        False,
        None,
        SessionStatus.TIMED_OUT,
        Failure.NO_OUTPUT,
    ),
    "silence": (a_transcript(), Ended.SILENCE, None, "", False, None, SessionStatus.TIMED_OUT, Failure.SILENCE),
    "wall_clock": (
        a_transcript(),
        Ended.WALL_CLOCK,
        None,
        "",
        True,
        None,
        SessionStatus.TIMED_OUT,
        Failure.WALL_CLOCK,
    ),
    "ctrl_c": (
        a_transcript(),
        Ended.INTERRUPTED,
        143,
        "",
        False,
        None,
        SessionStatus.INTERRUPTED,
        Failure.INTERRUPTED,
    ),
    "store_gone": (
        a_transcript(),
        Ended.STORE_UNAVAILABLE,
        143,
        "",
        False,
        None,
        SessionStatus.INTERRUPTED,
        Failure.STORE_UNAVAILABLE,
    ),
    "killed_from_outside": (
        a_transcript(init=INIT),
        Ended.BY_ITSELF,
        137,
        "",
        True,
        None,
        SessionStatus.INTERRUPTED,
        Failure.KILLED,
    ),
    "interrupted_from_outside": (
        a_transcript(a_result(subtype="error_during_execution", is_error=True, terminal_reason="aborted_tools")),
        Ended.BY_ITSELF,
        0,
        "",
        True,
        None,
        SessionStatus.INTERRUPTED,
        Failure.KILLED,
    ),
    "garbage_only": (
        a_transcript(unreadable=3, **UNTOUCHED),
        Ended.BY_ITSELF,
        0,
        "",
        False,
        None,
        SessionStatus.FAILED,
        Failure.NOT_CLAUDE,
    ),
    "exit_without_a_result": (
        a_transcript(init=INIT),
        Ended.BY_ITSELF,
        0,
        "",
        False,
        None,
        SessionStatus.FAILED,
        Failure.NO_RESULT,
    ),
}


@pytest.mark.parametrize(
    ("transcript", "ended", "code", "stderr", "resumed", "last_retry", "status", "failure"),
    TABLE.values(),
    ids=TABLE.keys(),
)
def test_how_a_run_ended(transcript, ended, code, stderr, resumed, last_retry, status, failure):
    verdict = outcome(transcript, ended=ended, exit_code=code, stderr=stderr, resumed=resumed, last_retry=last_retry)

    assert (verdict.status, verdict.failure) == (status, failure)
    assert (verdict.detail is None) == (failure is None)


def test_who_is_told_of_an_overloaded_api_reads_what_to_do():
    transcript, ended, code, stderr, resumed, last_retry, *_ = TABLE["overloaded"]
    verdict = outcome(transcript, ended=ended, exit_code=code, stderr=stderr, resumed=resumed, last_retry=last_retry)

    assert "Nothing is wrong" not in verdict.detail
    assert "look at the services yourself, or let claude.overload_wait_seconds be more" in verdict.detail


def test_a_failure_quotes_what_was_said_in_one_bounded_line():
    verdict = outcome(
        a_transcript(a_result(api_error_status=400, text="line\nbreak " + "x" * 1000, **API_ERROR)),
        ended=Ended.BY_ITSELF,
        exit_code=1,
        stderr="",
        resumed=False,
        last_retry=None,
    )

    assert "line break" in verdict.detail
    assert "\n" not in verdict.detail
    assert len(verdict.detail) < 500
