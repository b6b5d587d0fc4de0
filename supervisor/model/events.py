"""What a CLI prints while it runs, typed. No I/O. Made by ``claude.stream``."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from supervisor.model.session import Tokens, UsageByModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Init:
    """The first event: the session exists."""

    session_id: str | None
    model: str | None
    version: str | None
    tools: tuple[str, ...]
    cwd: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text block of the assistant."""

    message_id: str | None
    model: str | None
    text: str
    parent_tool_use_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A tool call the model asked for."""

    message_id: str | None
    model: str | None
    tool_use_id: str
    name: str
    input: Mapping[str, object]
    parent_tool_use_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool call gave back. ``text`` is cut to a bounded length; ``size`` is the whole length."""

    tool_use_id: str
    text: str
    size: int
    is_error: bool
    parent_tool_use_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallUsage:
    """Tokens of one API call so far. ``final`` once the API has said how many it put out."""

    message_id: str
    model: str | None
    tokens: Tokens
    final: bool
    main_loop: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRetry:
    """The CLI is going to ask the API again."""

    attempt: int | None
    max_retries: int | None
    error_status: int | None
    delay_seconds: float | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """The account's usage window: ``rejected`` means nothing goes through before ``resets_at``, except on credits."""

    status: str | None
    resets_at: int | None
    kind: str | None
    on_credits: bool = False

    @property
    def reached(self) -> bool:
        """Whether nothing goes through any more."""
        return self.status == "rejected" and not self.on_credits


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The last word of a run. ``deferred_call`` is the id of a tool call it stopped at, for others to decide on."""

    session_id: str | None
    subtype: str | None
    is_error: bool
    text: str | None
    structured_output: Mapping[str, object] | None
    stop_reason: str | None
    terminal_reason: str | None
    api_error_status: int | None
    num_turns: int | None
    total_cost_usd: float | None
    usage: Tokens | None
    model_usage: UsageByModel
    own_model_usage: UsageByModel | None
    permission_denials: int
    errors: tuple[str, ...]
    duration_ms: int | None = None
    deferred_call: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alive:
    """A well-formed event that says nothing to record: it proves that the run is not silent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A line that is not a JSON object, or an event of an unknown kind: kept raw (cut short) and counted."""

    why: str
    raw: str
    size: int


StreamEvent = Init | Text | ToolUse | ToolResult | CallUsage | ApiRetry | RateLimit | Result | Alive | Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """Everything of one run that decisions need, gathered from its events."""

    init: Init | None = None
    results: tuple[Result, ...] = ()
    calls: tuple[CallUsage, ...] = ()
    tools_asked: tuple[ToolUse, ...] = ()
    tools_executed: int = 0
    tools_refused: int = 0
    last_text: str | None = None
    last_structured: Mapping[str, object] | None = None
    retries: tuple[ApiRetry, ...] = ()
    rate_limit: RateLimit | None = None
    messages: int = 0
    unreadable: int = 0
    session_ids: tuple[str, ...] = field(default=())

    @property
    def result(self) -> Result | None:
        return self.results[-1] if self.results else None

    @property
    def session_id(self) -> str | None:
        """The CLI's own word on its id, the newest first."""
        return self.session_ids[-1] if self.session_ids else None
