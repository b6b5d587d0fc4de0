"""Sum up what a run has said so far. Pure. Used by climb.recorder, live and when it catches up after a crash."""

from collections.abc import Mapping

from supervisor.claude.stream import SYNTHETIC
from supervisor.model.events import (
    Alive,
    ApiRetry,
    CallUsage,
    Init,
    RateLimit,
    Result,
    StreamEvent,
    Text,
    ToolResult,
    ToolUse,
    Transcript,
    Unreadable,
)
from supervisor.model.session import Tokens

STRUCTURED_OUTPUT = "StructuredOutput"

# How the CLI words the result of a call that it did not let through (2.1.225 and 2.1.325).
_REFUSALS = ("Permission to use ", "Claude requested permissions ", "PreToolUse:")
_FAULTY_CALL = "<tool_use_error>"
_CANCELLED = "<tool_use_error>Cancelled"


class Gatherer:
    """Takes events one by one; ``transcript`` may be asked for at any time.

    ``results`` says of each tool call that was answered whether it failed.
    """

    def __init__(self) -> None:
        self._init: Init | None = None
        self._results: list[Result] = []
        self._calls: dict[str, CallUsage] = {}
        self._tools_asked: list[ToolUse] = []
        self._structured_calls: set[str] = set()
        self._answered = 0
        self._faulty = 0
        self._refused = 0
        self._last_text: str | None = None
        self._last_structured: Mapping[str, object] | None = None
        self._retries: list[ApiRetry] = []
        self._rate_limit: RateLimit | None = None
        self._message_ids: set[str] = set()
        self._nameless_messages = 0
        self._unreadable = 0
        self._session_ids: dict[str, None] = {}
        self._tokens = Tokens()
        self.results: dict[str, bool] = {}

    @property
    def tokens_so_far(self) -> Tokens:
        """What all API calls together have used, as far as it is known."""
        return self._tokens

    @property
    def messages(self) -> int:
        """How many messages the model has sent."""
        return len(self._message_ids) + self._nameless_messages

    def add(self, event: StreamEvent) -> None:
        match event:
            case Init():
                self._init = self._init or event
                self._learn_id(event.session_id)
            case Text():
                self._add_text(event)
            case ToolUse():
                self._add_tool_use(event)
            case ToolResult():
                self._add_tool_result(event)
            case CallUsage():
                self._add_usage(event)
            case ApiRetry():
                self._retries.append(event)
            case RateLimit():
                self._rate_limit = event
            case Result():
                self._results.append(event)
                self._learn_id(event.session_id)
            case Unreadable():
                self._unreadable += 1
            case Alive():
                pass

    def transcript(self) -> Transcript:
        """Everything so far, as one value."""
        # The CLI's own count is exact; without a result, the wording of the answers has to do.
        refused = self._results[-1].permission_denials if self._results else self._refused
        return Transcript(
            init=self._init,
            results=tuple(self._results),
            calls=tuple(self._calls.values()),
            tools_asked=tuple(self._tools_asked),
            tools_executed=max(0, self._answered - self._faulty - refused),
            tools_refused=refused,
            last_text=self._last_text,
            last_structured=self._last_structured,
            retries=tuple(self._retries),
            rate_limit=self._rate_limit,
            messages=self.messages,
            unreadable=self._unreadable,
            session_ids=tuple(self._session_ids),
        )

    def _learn_id(self, session_id: str | None) -> None:
        if session_id is not None:
            # The newest word comes last, also when it repeats an older one.
            self._session_ids.pop(session_id, None)
            self._session_ids[session_id] = None

    def _add_text(self, event: Text) -> None:
        if event.model == SYNTHETIC:
            return
        self._count_message(event.message_id)
        if event.parent_tool_use_id is None:
            self._last_text = event.text

    def _add_tool_use(self, event: ToolUse) -> None:
        self._count_message(event.message_id)
        if event.name == STRUCTURED_OUTPUT:
            self._structured_calls.add(event.tool_use_id)
            self._last_structured = event.input
        else:
            self._tools_asked.append(event)

    def _add_tool_result(self, event: ToolResult) -> None:
        if event.tool_use_id in self._structured_calls:
            return
        self._answered += 1
        self.results[event.tool_use_id] = event.is_error
        if not event.is_error:
            return
        if event.text.startswith(_REFUSALS):
            self._refused += 1
        elif event.text.startswith(_FAULTY_CALL) and not event.text.startswith(_CANCELLED):
            # A cancelled call may have begun; a faulty one never does.
            self._faulty += 1

    def _add_usage(self, event: CallUsage) -> None:
        known = self._calls.get(event.message_id)
        if known is not None and known.final and not event.final:
            return
        self._calls[event.message_id] = event
        self._tokens = self._tokens + event.tokens - (known.tokens if known else Tokens())

    def _count_message(self, message_id: str | None) -> None:
        if message_id is None:
            self._nameless_messages += 1
        else:
            self._message_ids.add(message_id)
