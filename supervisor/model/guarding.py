"""What the guard leaves on record: calls, cooldowns, services, approvals, the switch. No I/O. Kept by ``store``."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256

from supervisor.model.permission import ActionKind, Verdict
from supervisor.model.report import Health


class CallOutcome(StrEnum):
    """How a tool call that was let through ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One answer of the guard. ``session_id`` is the record's.

    ``ask`` counts how often this session asked about the same call; the newest answer is the one that counts.
    """

    id: int
    session_id: int
    cycle_id: int
    tool_use_id: str
    ask: int
    tool: str
    input: Mapping[str, object]
    text: str
    verdict: Verdict
    rule: str
    sentence: str
    at: datetime
    outcome: CallOutcome | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CooldownLimit:
    """At most ``max`` actions of one kind on one service in any ``window``."""

    max: int
    window: timedelta

    def free_from(self, taken: Sequence[datetime], *, wanted: int = 1) -> datetime | None:
        """From when ``wanted`` more fit beside those ``taken`` (oldest first, none older than the window).

        Only for when they do not fit now; ``None`` when they never will, because the limit itself is smaller.
        """
        if wanted > self.max:
            return None
        return taken[len(taken) + wanted - self.max - 1] + self.window


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """Every action of the call has its slot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """No action of the call has a slot: this one stands in the way longest.

    ``next_at`` is when the whole call would fit; ``None`` when it never will.
    """

    service: str
    kind: ActionKind
    limit: CooldownLimit
    next_at: datetime | None


Slot = Granted | Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class CooldownUse:
    """How much of a limit is used up now. ``next_at`` is set when nothing is left and something will be again."""

    service: str
    kind: ActionKind
    used: int
    limit: CooldownLimit
    next_at: datetime | None

    @property
    def left(self) -> int:
        return max(0, self.limit.max - self.used)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRecord:
    """A service as the reports and the guard know it.

    ``status`` is ``None`` for one that was acted on and never reported. ``since`` is when the status became what it is.
    ``last_cycle`` is the newest cycle that reported or touched it.
    """

    name: str
    status: Health | None
    healthy_streak: int
    since: datetime | None
    last_cycle: int | None
    cooldowns: tuple[CooldownUse, ...] = ()


class ApprovalStatus(StrEnum):
    """Where the question about a tool call stands."""

    WAITING = "waiting"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    USED = "used"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewApproval:
    """A tool call put before a person. ``input`` is what they see, ``input_hash`` what they approve: ``hash_of_input``
    of the call as the CLI sent it, before anything was masked."""

    session_id: int
    cycle_id: int
    tier: int
    tool_use_id: str
    tool: str
    input: Mapping[str, object]
    input_hash: str
    text: str
    rule: str
    sentence: str
    created_at: datetime
    expires_at: datetime
    services: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(NewApproval):
    """The question and its answer. ``used_by`` is the session record in which the approved call was let through."""

    id: int
    status: ApprovalStatus
    decided_at: datetime | None = None
    decided_by: str | None = None
    reason: str | None = None
    used_at: datetime | None = None
    used_by: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchState:
    """Whether anything may run, and who said so last; nobody has when ``at`` is ``None``."""

    paused: bool
    at: datetime | None = None
    by: str | None = None
    reason: str | None = None


def hash_of_input(call_input: Mapping[str, object]) -> str:
    """What tells one tool input from every other, whatever the order of its keys."""
    return sha256(json.dumps(call_input, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
