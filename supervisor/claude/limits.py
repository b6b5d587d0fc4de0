"""When a run has gone on for too long. Pure: the time is an argument. Called from claude.process."""

from dataclasses import dataclass

from supervisor.claude.stream import SYNTHETIC
from supervisor.model.events import ApiRetry, CallUsage, Init, Result, StreamEvent, Text, ToolResult, ToolUse
from supervisor.model.outcome import Ended

_CREDENTIAL_STATUSES = frozenset({401, 403})
_CREDENTIAL_ERRORS = frozenset({"authentication_failed", "cloud_credential_error"})
# The first refusal can be a token that the CLI then renews by itself; the second is the operator's to solve.
_REFUSALS_BORNE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a run may do what. All in seconds."""

    first_output_seconds: float
    silence_seconds: float
    wall_clock_seconds: float
    overload_wait_seconds: float
    end_grace_seconds: float
    after_result_seconds: float = 5.0


class Patience:
    """Follows one run from its prompt on and says when it has to end.

    A result outranks every limit: from then on the run only has to leave. Retries count as output, and the pause that
    a retry announces is no silence. Any answer of the API ends a streak of retries.
    """

    def __init__(self, limits: Limits, *, now: float) -> None:
        self._limits = limits
        self._prompted_at = now
        self._heard_at: float | None = None
        self._result_at: float | None = None
        self._retrying_since: float | None = None
        self._next_try_at = now
        self._refusals = 0
        self._last_retry: ApiRetry | None = None

    @property
    def last_retry(self) -> ApiRetry | None:
        """The newest retry, unless the API has answered since."""
        return self._last_retry

    def heard(self, now: float) -> None:
        """Bytes have arrived."""
        self._heard_at = now

    def saw(self, event: StreamEvent, now: float) -> None:
        match event:
            case ApiRetry():
                self._retry(event, now)
            case Result():
                self._result_at = now
                self._answered()
            case Text(model=model) if model == SYNTHETIC:
                pass
            case CallUsage() | Text() | ToolUse():
                # The run goes on after its result, e.g. to look at a background command that has ended.
                self._result_at = None
                self._answered()
            case Init() | ToolResult():
                self._result_at = None
            case _:
                pass

    def verdict(self, now: float) -> Ended | None:
        """Why the run has to end now, if it has to."""
        limits = self._limits
        if self._result_at is not None:
            return Ended.AFTER_RESULT if now - self._result_at >= limits.after_result_seconds else None
        if self._is_endless(now):
            return Ended.ENDLESS_RETRY
        if now - self._prompted_at >= limits.wall_clock_seconds:
            return Ended.WALL_CLOCK
        if self._heard_at is None:
            return Ended.NO_OUTPUT if now - self._prompted_at >= limits.first_output_seconds else None
        quiet_since = max(self._heard_at, self._next_try_at)
        return Ended.SILENCE if now - quiet_since >= limits.silence_seconds else None

    def _is_endless(self, now: float) -> bool:
        if self._refusals >= _REFUSALS_BORNE:
            return True
        if self._retrying_since is None:
            return False
        gives_up_at = self._retrying_since + self._limits.overload_wait_seconds
        # A retry that would come after the end of our patience is not worth waiting for.
        return now >= gives_up_at or self._next_try_at > gives_up_at

    def _retry(self, event: ApiRetry, now: float) -> None:
        self._last_retry = event
        self._next_try_at = now + (event.delay_seconds or 0.0)
        refused = event.error_status in _CREDENTIAL_STATUSES or event.error in _CREDENTIAL_ERRORS
        self._refusals = self._refusals + 1 if refused else 0
        if self._retrying_since is None:
            self._retrying_since = now

    def _answered(self) -> None:
        self._retrying_since = None
        self._last_retry = None
        self._refusals = 0
