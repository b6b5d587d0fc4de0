"""What travels to the next tier when a session cannot be resumed. No I/O.

Built from recorded messages by ``supervisor.handoff``, never by the agent.
"""

from dataclasses import dataclass
from datetime import datetime

from supervisor.model.report import Action, ServiceState

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One command or look that the earlier tiers took, with what it showed (shortened)."""

    tier: int
    tool: str
    command: str
    output: str
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """The context of a chain in a form that a fresh session can read."""

    schema_version: int
    cycle_id: int
    from_session: int
    from_tier: int
    recommended_tier: int
    created_at: datetime
    why_not_resumed: str
    escalation_reason: str
    services_affected: tuple[str, ...]
    check_results: tuple[ServiceState, ...]
    commands_run: tuple[Check, ...]
    investigation_findings: tuple[str, ...]
    remediation_attempted: tuple[Action, ...]
    cooldown_state: dict[str, object]
    left_out: tuple[str, ...] = ()
