"""Say how a run ended. Pure. Called from climb.run when the process is gone, and by recovery.

A completed result outranks everything else: who ended the process afterwards does not matter. Next comes our own reason
for ending it, because a CLI that is interrupted may still print a result that calls this an error. ``subtype`` alone
says nothing (an API error arrives as ``success`` with ``is_error``), so the order of the questions below matters.
"""

import datetime as dt

from supervisor.model.ending import Outcome
from supervisor.model.events import ApiRetry, Result, Transcript
from supervisor.model.outcome import Ended, Failure
from supervisor.model.session import SessionStatus

_REJECTIONS = ("no conversation found", "--resume requires a valid session id", "session not found")
_ID_IN_USE = "already in use"
_NO_VALID_REPORT = "error_max_structured_output_retries"
_API_ERROR = "api_error"
# Whether in a tool call or in an answer: what comes before the underscore is common to them.
_ABORTED = "aborted_"
_LOG_IN = "/login"
_SIGNAL_BASE = 128

_BYPASSED = (
    "A tool call ran that the guard had not let through, so the run was ended. Do not use this CLI before its hooks "
    "work: `opsladder doctor` tells which one it is."
)
_WAITS = "A tool call waits for a person: `opsladder approvals` shows it."

_API_FAILURES: dict[Failure, str] = {
    Failure.BAD_CREDENTIALS: (
        "The API refused the credentials. Check ANTHROPIC_API_KEY or log in again, then run `opsladder doctor`."
    ),
    Failure.OVERLOADED: (
        "The API stayed overloaded, so the work is left where it was. The next cycle begins again; if that is too "
        "late, look at the services yourself, or let claude.overload_wait_seconds be more."
    ),
    Failure.RATE_LIMITED: "The API kept answering that requests come too fast. Space the schedules out.",
    Failure.NETWORK: "The API could not be reached. Check the network, the proxy and ANTHROPIC_BASE_URL.",
    Failure.INVALID_REQUEST: "The API called the request invalid. This session will not be resumed again.",
    Failure.CONTEXT_EXHAUSTED: "The conversation no longer fits the model's context. It will not be resumed again.",
    Failure.API_ERROR: "The API answered with an error.",
}

_STOPPED_BY_US: dict[Ended, tuple[SessionStatus, Failure, str]] = {
    Ended.INTERRUPTED: (
        SessionStatus.INTERRUPTED,
        Failure.INTERRUPTED,
        "The run was interrupted. Its session is kept and can be resumed.",
    ),
    Ended.DISOWNED: (
        SessionStatus.INTERRUPTED,
        Failure.INTERRUPTED,
        "The run was ended because another supervisor had taken its cycle over.",
    ),
    Ended.STOPPED: (SessionStatus.STOPPED, Failure.STOPPED, "The run was stopped by an operator."),
    Ended.STORE_UNAVAILABLE: (
        SessionStatus.INTERRUPTED,
        Failure.STORE_UNAVAILABLE,
        "The run was stopped because its records could no longer be written. Its session is kept.",
    ),
    Ended.BUDGET: (
        SessionStatus.PAUSED,
        Failure.BUDGET,
        "The run was stopped because a budget is used up.",
    ),
    Ended.NO_OUTPUT: (
        SessionStatus.TIMED_OUT,
        Failure.NO_OUTPUT,
        "The CLI printed nothing within claude.first_output_seconds. Try it by hand with `opsladder doctor`.",
    ),
    Ended.SILENCE: (
        SessionStatus.TIMED_OUT,
        Failure.SILENCE,
        "The CLI went silent for longer than claude.silence_seconds. Look at its last tool call.",
    ),
    Ended.WALL_CLOCK: (
        SessionStatus.TIMED_OUT,
        Failure.WALL_CLOCK,
        "The run passed its tier's timeout_minutes.",
    ),
}


def outcome(
    transcript: Transcript,
    *,
    ended: Ended,
    exit_code: int | None,
    stderr: str,
    resumed: bool,
    last_retry: ApiRetry | None,
) -> Outcome:
    """The verdict on one run."""
    if ended is Ended.GUARD_BYPASSED:
        # Whatever else the run says: what it did was not decided on, so it is not believed.
        return Outcome(status=SessionStatus.FAILED, failure=Failure.GUARD_BYPASSED, detail=_BYPASSED)
    untouched = transcript.tools_executed == 0 and transcript.messages == 0
    result = transcript.result
    if result is not None and result.deferred_call is not None:
        return Outcome(status=SessionStatus.PAUSED, failure=Failure.APPROVAL, detail=_WAITS)
    if result is not None and _is_complete(result):
        return Outcome(status=SessionStatus.COMPLETED)
    if ended is Ended.USAGE_LIMIT:
        return _usage_limit(transcript)
    if ended is Ended.ENDLESS_RETRY:
        return _api_failure(_retry_failure(last_retry), last_retry.error if last_retry else None)
    if ended in _STOPPED_BY_US:
        status, failure, detail = _STOPPED_BY_US[ended]
        return Outcome(status=status, failure=failure, detail=detail)
    if result is not None:
        return _by_result(result, transcript, refusable=resumed and untouched)
    return _without_result(transcript, exit_code, stderr.strip(), refusable=resumed and untouched)


def _is_complete(result: Result) -> bool:
    # A run that could not put its report into the schema has done its work; the report is judged by itself.
    return (result.subtype == "success" and not result.is_error) or result.subtype == _NO_VALID_REPORT


def _by_result(result: Result, transcript: Transcript, *, refusable: bool) -> Outcome:
    if result.subtype == "error_max_turns":
        return Outcome(
            status=SessionStatus.INTERRUPTED,
            failure=Failure.TURN_LIMIT,
            detail="The run used up its tier's max_turns before it reported.",
        )
    if result.subtype == "error_max_budget_usd":
        return Outcome(
            status=SessionStatus.PAUSED,
            failure=Failure.BUDGET,
            detail="The run reached its tier's max_budget_usd before it reported.",
        )
    said = result.text or "; ".join(result.errors) or None
    if result.terminal_reason == "prompt_too_long":
        return _api_failure(Failure.CONTEXT_EXHAUSTED, said, refusable=refusable)
    if result.api_error_status is not None:
        failure = _status_failure(result.api_error_status)
        if failure is Failure.RATE_LIMITED and _limit_reached(transcript):
            return _usage_limit(transcript)
        return _api_failure(failure, said, refusable=refusable)
    if result.terminal_reason == _API_ERROR:
        # Without a status it never answered, or was not asked because the CLI has no credentials for it.
        return _api_failure(Failure.BAD_CREDENTIALS if _LOG_IN in (said or "") else Failure.NETWORK, said)
    if refusable:
        return _rejected(said)
    if (result.terminal_reason or "").startswith(_ABORTED):
        return Outcome(
            status=SessionStatus.INTERRUPTED,
            failure=Failure.KILLED,
            detail="The CLI was interrupted from outside. Its session is kept.",
        )
    return Outcome(
        status=SessionStatus.FAILED,
        failure=Failure.EXECUTION_ERROR,
        detail=f"The CLI ended with {result.subtype or 'an error'}{_quoted(said)}.",
    )


def _without_result(transcript: Transcript, exit_code: int | None, stderr: str, *, refusable: bool) -> Outcome:
    if _limit_reached(transcript):
        return _usage_limit(transcript)
    if exit_code is not None and exit_code > _SIGNAL_BASE:
        return Outcome(
            status=SessionStatus.INTERRUPTED,
            failure=Failure.KILLED,
            detail=f"The CLI was killed by signal {exit_code - _SIGNAL_BASE} from outside. Its session is kept.",
        )
    if _ID_IN_USE in stderr.lower():
        return Outcome(
            status=SessionStatus.FAILED,
            failure=Failure.SESSION_ID_IN_USE,
            detail="The CLI says that the new session's id is in use already.",
        )
    if refusable and (exit_code or any(text in stderr.lower() for text in _REJECTIONS)):
        return _rejected(stderr or None)
    if transcript.init is None and transcript.unreadable:
        return Outcome(
            status=SessionStatus.FAILED,
            failure=Failure.NOT_CLAUDE,
            detail="What the program printed is not the output of a Claude CLI. Check claude.bin.",
        )
    return Outcome(
        status=SessionStatus.FAILED,
        failure=Failure.NO_RESULT,
        detail=f"The CLI exited with {exit_code} and without a result{_quoted(stderr or None)}.",
    )


def _rejected(said: str | None, failure: Failure = Failure.RESUME_REJECTED) -> Outcome:
    return Outcome(
        status=SessionStatus.REJECTED,
        failure=failure,
        detail=f"The CLI did not resume the session{_quoted(said)}.",
    )


def _api_failure(failure: Failure, said: str | None, *, refusable: bool = False) -> Outcome:
    if refusable and failure in (Failure.CONTEXT_EXHAUSTED, Failure.INVALID_REQUEST):
        # The conversation itself is the trouble: the same work, told anew, may well fit.
        return _rejected(said, failure)
    detail = _API_FAILURES[failure]
    return Outcome(
        status=SessionStatus.FAILED, failure=failure, detail=f"{detail} It said{_quoted(said)}." if said else detail
    )


def _limit_reached(transcript: Transcript) -> bool:
    return transcript.rate_limit is not None and transcript.rate_limit.reached


def _usage_limit(transcript: Transcript) -> Outcome:
    resets = transcript.rate_limit.resets_at if transcript.rate_limit else None
    until = "" if resets is None else f" It resets at {dt.datetime.fromtimestamp(resets, dt.UTC):%Y-%m-%dT%H:%M:%SZ}."
    return Outcome(
        status=SessionStatus.PAUSED,
        failure=Failure.USAGE_LIMIT,
        detail=f"The account's usage limit is reached.{until}",
    )


def _retry_failure(retry: ApiRetry | None) -> Failure:
    if retry is None or retry.error_status is None:
        return Failure.NETWORK
    return _status_failure(retry.error_status)


def _status_failure(status: int) -> Failure:
    match status:
        case 401 | 403:
            return Failure.BAD_CREDENTIALS
        case 429:
            return Failure.RATE_LIMITED
        case 400 | 413 | 422:
            return Failure.INVALID_REQUEST
        case 529:
            return Failure.OVERLOADED
        case _ if status >= 500:
            return Failure.OVERLOADED
        case _:
            return Failure.API_ERROR


def _quoted(said: str | None) -> str:
    if not said:
        return ""
    line = " ".join(said.split())
    return f": “{line[:300]}{'…' if len(line) > 300 else ''}”"
