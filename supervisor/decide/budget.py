"""Decide whether too much is spent. Pure. Called from decide.next_step before a run, and from climb during one."""

from dataclasses import dataclass, replace

from supervisor.model.money import dollars


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What may be spent, or what is: in one run, one cycle, one day. As a limit, ``None`` is no limit."""

    run_usd: float | None = None
    cycle_usd: float | None = None
    day_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverBudget:
    """A limit that is reached."""

    spent_usd: float
    limit_usd: float
    what: str

    @property
    def sentence(self) -> str:
        return f"{dollars(self.spent_usd)} of the {dollars(self.limit_usd)} allowed for {self.what} is spent."


def over_budget(spent: Budget, limits: Budget) -> OverBudget | None:
    """The first limit that is reached, the narrowest first. What is not known counts as nothing."""
    for used, limit, what in (
        (spent.run_usd, limits.run_usd, "this run"),
        (spent.cycle_usd, limits.cycle_usd, "this cycle"),
        (spent.day_usd, limits.day_usd, "today"),
    ):
        if limit is not None and used is not None and used >= limit:
            return OverBudget(spent_usd=used, limit_usd=limit, what=what)
    return None


def extended(limits: Budget, spent: Budget) -> Budget:
    """The limits after a person has approved more: as much again as there was, on top of what is spent."""
    return Budget(
        run_usd=limits.run_usd,
        cycle_usd=_more(limits.cycle_usd, spent.cycle_usd),
        day_usd=_more(limits.day_usd, spent.day_usd),
    )


def at_least(limits: Budget, approved: Budget) -> Budget:
    """The limits, or what a person has approved where that is more. Where nothing is limited nothing is approved."""
    return replace(
        limits,
        cycle_usd=_higher(limits.cycle_usd, approved.cycle_usd),
        day_usd=_higher(limits.day_usd, approved.day_usd),
    )


def _higher(limit: float | None, approved: float | None) -> float | None:
    return limit if limit is None or approved is None else max(limit, approved)


def _more(limit: float | None, spent: float | None) -> float | None:
    return None if limit is None else limit + (spent or 0.0)
