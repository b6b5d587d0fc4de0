"""What was asked of the scripted API and what it said that cost. No I/O. Kept by ``rehearsal.api``."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from supervisor.model.session import Tokens

# Bounds for a server that is left running; far above what any rehearsal needs.
_CALLS_KEPT = 10_000
_CALLS_KEPT_WITH_BODIES = 500
_SESSIONS_KEPT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request for a message.

    ``status`` is 0 when the connection ended without an answer. ``fixed_bytes`` is what the request weighs without its
    conversation: tools, system prompt, settings. ``side`` calls are the CLI's own small questions.
    """

    session_id: str | None
    tier: int | None
    attempt: int | None
    model: str
    request_bytes: int
    fixed_bytes: int
    status: int
    side: bool
    tokens: Tokens = field(default_factory=Tokens)
    body: Mapping[str, object] | None = None


class Account:
    """The newest calls, and the sum of tokens by session and model."""

    def __init__(self, *, with_bodies: bool) -> None:
        self._calls: deque[Call] = deque(maxlen=_CALLS_KEPT_WITH_BODIES if with_bodies else _CALLS_KEPT)
        self._spent: dict[str | None, dict[str, Tokens]] = {}

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(self._calls)

    def spent(self, session_id: str | None) -> Mapping[str, Tokens]:
        return dict(self._spent.get(session_id, {}))

    def add(self, call: Call) -> None:
        self._calls.append(call)
        if not call.tokens.total:
            return
        by_model = self._spent.setdefault(call.session_id, {})
        by_model[call.model] = by_model.get(call.model, Tokens()) + call.tokens
        while len(self._spent) > _SESSIONS_KEPT:
            del self._spent[next(iter(self._spent))]
