"""What an agent says at the end of its run. No I/O. Parsed by ``decide.report``."""

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """The state of a service as the agent found it."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DOWN = "down"
    UNREACHABLE = "unreachable"


class Level(StrEnum):
    """How much an event matters."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceState:
    name: str
    status: Health
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    service: str
    kind: str
    command: str
    succeeded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedEvent:
    level: Level
    message: str
    service: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A valid report; ``escalation_reason`` is never empty when ``escalation_needed``."""

    summary: str
    escalation_needed: bool
    escalation_reason: str = ""
    services: tuple[ServiceState, ...] = ()
    actions: tuple[Action, ...] = ()
    events: tuple[ReportedEvent, ...] = ()

    @property
    def affected(self) -> tuple[str, ...]:
        """The services that are not healthy, by name."""
        return tuple(s.name for s in self.services if s.status is not Health.HEALTHY)

    @property
    def broken(self) -> tuple[str, ...]:
        """The services that do not serve at all."""
        return tuple(s.name for s in self.services if s.status in (Health.DOWN, Health.UNREACHABLE))


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidReport:
    """Why what the agent ended with is not a report."""

    problems: tuple[str, ...]
