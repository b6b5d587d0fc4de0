"""The verdict on a run that is over. No I/O. Made by ``decide.outcome``, recorded by ``climb.run``."""

from dataclasses import dataclass

from supervisor.model.outcome import Failure
from supervisor.model.session import CostBasis, SessionStatus, Tokens, UsageByModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The status a run ends with, what kept it from completing, and a sentence that says what to do."""

    status: SessionStatus
    failure: Failure | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """What one run used by itself, whatever its CLI adds from the runs before it.

    ``reported`` is the CLI's own, possibly cumulative account: the next run of the chain needs it to subtract.
    """

    tokens: Tokens | None
    cost_usd: float | None
    basis: CostBasis
    reported: UsageByModel
