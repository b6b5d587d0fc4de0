"""What is being spent while a run goes on. Reads the store. Used by climb.warden, made by climb.run."""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

from supervisor.decide.budget import Budget, OverBudget, over_budget
from supervisor.store import Store


def day_of(now: dt.datetime) -> dt.datetime:
    """When the day began that a budget per day is counted in: days are UTC's."""
    return now.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """A run's own cost so far on top of what was spent ``before`` it began, on the day that began at ``day``."""

    store: Store
    clock: Callable[[], dt.datetime]
    limits: Budget
    before: Budget
    day: dt.datetime

    @property
    def limited(self) -> bool:
        return self.limits != Budget()

    def over(self, run_usd: float | None) -> OverBudget | None:
        """The limit that is reached by what is known without asking the store."""
        run = run_usd or 0.0
        # Another day has begun meanwhile: a run counts on the day it ends, and what was spent before does not any more.
        day = (self.before.day_usd or 0.0) if day_of(self.clock()) == self.day else 0.0
        return over_budget(
            Budget(run_usd=run, cycle_usd=(self.before.cycle_usd or 0.0) + run, day_usd=day + run), self.limits
        )

    def over_by_now(self, run_usd: float | None) -> OverBudget | None:
        """The same with what other cycles have spent today meanwhile."""
        if self.limits.day_usd is not None:
            recorded = self.store.spent_since(day_of(self.clock()))
            # Live figures are on record a moment later; whichever is more counts.
            over = over_budget(Budget(day_usd=recorded), self.limits)
            if over is not None:
                return over
        return self.over(run_usd)
