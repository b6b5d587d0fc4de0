"""A tool call and what was decided about it. No I/O. Asked by ``guard``, answered by ``decide.rules.permission``."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What happens to a tool call: it runs, it is refused, or it waits for a person."""

    ALLOW = "allow"
    DENY = "deny"
    DEFER = "defer"


class ActionKind(StrEnum):
    """The changes that are counted: how often one service may see them is limited."""

    RESTART = "restart"
    REDEPLOY = "redeploy"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call as the CLI's hook describes it. ``session_id`` is the CLI's."""

    tool_use_id: str
    tool: str
    input: Mapping[str, object]
    session_id: str | None = None
    cwd: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAction:
    """A restart or redeployment that a call amounts to. ``service`` is the name its cooldown is kept under."""

    kind: ActionKind
    service: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedies:
    """What the commands of a text amount to. ``uncounted`` has a sentence for each that names no service."""

    actions: tuple[ServiceAction, ...] = ()
    uncounted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer to a call: the rule it rests on, and a sentence that the model reads."""

    verdict: Verdict
    rule: str
    sentence: str
    actions: tuple[ServiceAction, ...] = ()
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnd:
    """How a call that was let through ended, as the hook after it says."""

    tool_use_id: str
    failed: bool
