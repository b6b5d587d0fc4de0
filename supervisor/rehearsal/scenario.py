"""What a scripted model says: a scenario, its scripts per tier, their turns. No I/O.

Made by ``rehearsal.scenario_file`` from an operator's file, played by ``rehearsal.api``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from supervisor.model.session import Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool the model asks for. Several in one turn are parallel calls."""

    name: str
    input: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An error the API answers with, ``times`` times before the turn's own answer; 0 is always.

    Status 0 closes the connection without an answer.
    """

    status: int
    type: str
    message: str
    times: int = 1
    retry_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLimit:
    """The account's window is used up until ``resets_in_seconds`` from the moment of asking.

    The CLI says so in a ``rate_limit_event`` only when it is signed in with ``CLAUDE_CODE_OAUTH_TOKEN``; with an API
    key it ends with a plain 429 (measured on 2.1.225 and 2.1.325). So a scenario with one is rehearsed signed in.
    """

    resets_in_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of the model: any of text and tool calls, or text and a report.

    ``usage`` is what the answer claims to have cost; ``None`` estimates it from the size of request and answer. A turn
    with ``repeat`` is answered for ever; so is one with ``usage_limit``, which has no answer of its own.
    """

    text: str | None = None
    tools: tuple[ToolCall, ...] = ()
    report: Mapping[str, object] | None = None
    delay_seconds: float = 0.0
    usage: Tokens | None = None
    error: Fault | None = None
    usage_limit: UsageLimit | None = None
    repeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The turns of one tier, from its ``attempt``-th session on."""

    tier: int
    turns: tuple[Turn, ...]
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A whole incident as the model will live it."""

    title: str
    scripts: tuple[Script, ...]

    @property
    def limits_usage(self) -> bool:
        return any(turn.usage_limit for script in self.scripts for turn in script.turns)

    def turns(self, tier: int, attempt: int) -> tuple[Turn, ...]:
        """What a tier's ``attempt``-th session plays; nothing when the scenario does not mention the tier."""
        fitting = [s for s in self.scripts if s.tier == tier and s.attempt <= attempt]
        return max(fitting, key=lambda s: s.attempt).turns if fitting else ()
