"""Work out what one run cost by itself. Pure. Called from climb.run and by recovery.

CLIs differ: up to 2.1.225 a resumed run's totals start at zero; from 2.1.277 they start at the parent's totals, so
adding a chain's reports up would bill the first tier three times. Newer ones also say what this process used alone
(``model_usage_since_last_result``); where that is missing, the parent's account is subtracted when, and only when,
the figures show that it was carried over.
"""

import re
from collections.abc import Callable, Iterable

from supervisor.model.ending import Spend
from supervisor.model.events import CallUsage, Result, Transcript
from supervisor.model.session import CostBasis, ModelUsage, Tokens, UsageByModel

PriceOf = Callable[[str, Tokens], float | None]

_RESTORES_FROM = (2, 1, 277)


def spend(
    transcript: Transcript,
    *,
    inherited: UsageByModel | None,
    version: str | None,
    price: PriceOf,
) -> Spend:
    """A run's own tokens and cost.

    ``inherited`` is the account the resumed session ended with: empty for a fresh run, ``None`` when it is not known
    (the parent was killed before it could say).
    """
    result = transcript.result
    if result is None:
        return _estimated(transcript.calls, reported={}, price=price)
    used = _by_account(result, transcript, inherited=inherited, version=version, price=price)
    seen = sum((call.tokens for call in transcript.calls), start=Tokens())
    if used.tokens is not None and not used.tokens.covers(seen):
        # An interrupted CLI leaves the call it was in out of its account; the API does not.
        return _estimated(transcript.calls, reported=result.model_usage, price=price)
    return used


def _by_account(
    result: Result, transcript: Transcript, *, inherited: UsageByModel | None, version: str | None, price: PriceOf
) -> Spend:
    own = _since_start(transcript.results)
    if own is not None:
        return _reported(own, result.model_usage)
    if not inherited:
        if inherited is None and _is_restoring(version):
            return _estimated(transcript.calls, reported=result.model_usage, price=price)
        return _whole(result)
    if not restores(result.model_usage, inherited, main_loop=result.usage, version=version):
        return _whole(result)
    own = {model: _minus(usage, inherited.get(model)) for model, usage in result.model_usage.items()}
    return _reported(own, result.model_usage)


def restores(reported: UsageByModel, inherited: UsageByModel, *, main_loop: Tokens | None, version: str | None) -> bool:
    """Whether a run's account includes its parent's.

    The parent's model in the child's account proves nothing (old CLIs use the small model for side calls), so the
    figures have to cover the parent's in every count, and what is left has to cover this run's own main loop.
    """
    for model, usage in inherited.items():
        mine = reported.get(model)
        if mine is None or not mine.tokens.covers(usage.tokens):
            return False
    rest = total(reported) - total(inherited)
    if main_loop is not None and not rest.covers(main_loop):
        return False
    known = _parsed(version)
    return known is None or known >= _RESTORES_FROM


def total(usage: UsageByModel) -> Tokens:
    """All models together."""
    return sum((u.tokens for u in usage.values()), start=Tokens())


def live_cost(calls: Iterable[CallUsage], price: PriceOf) -> float | None:
    """What the calls so far cost by the price table; ``None`` as soon as one of them has no price."""
    cost = 0.0
    for call in calls:
        part = price(call.model, call.tokens) if call.model else None
        if part is None:
            return None
        cost += part
    return cost


def _since_start(results: tuple[Result, ...]) -> UsageByModel | None:
    """The sum of what each result of this process says it used since the one before."""
    own: dict[str, ModelUsage] = {}
    for result in results:
        if result.own_model_usage is None:
            return None
        for model, usage in result.own_model_usage.items():
            before = own.get(model)
            own[model] = usage if before is None else _plus(before, usage)
    return own


def _reported(own: UsageByModel, reported: UsageByModel) -> Spend:
    costs = [u.cost_usd for u in own.values()]
    known = [c for c in costs if c is not None]
    complete = len(known) == len(costs)
    return Spend(
        tokens=total(own),
        cost_usd=max(0.0, sum(known)) if complete else None,
        basis=CostBasis.REPORTED if complete else CostBasis.UNKNOWN,
        reported=reported,
    )


def _whole(result: Result) -> Spend:
    tokens = total(result.model_usage) if result.model_usage else result.usage
    return Spend(
        tokens=tokens,
        cost_usd=result.total_cost_usd,
        basis=CostBasis.UNKNOWN if result.total_cost_usd is None else CostBasis.REPORTED,
        reported=result.model_usage,
    )


def _estimated(calls: tuple[CallUsage, ...], *, reported: UsageByModel, price: PriceOf) -> Spend:
    if not calls:
        # A request may have been under way: nothing is known, and that is not the same as nothing spent.
        return Spend(tokens=None, cost_usd=None, basis=CostBasis.UNKNOWN, reported=reported)
    cost = live_cost(calls, price)
    return Spend(
        tokens=sum((c.tokens for c in calls), start=Tokens()),
        cost_usd=cost,
        basis=CostBasis.UNKNOWN if cost is None else CostBasis.ESTIMATED,
        reported=reported,
    )


def _plus(a: ModelUsage, b: ModelUsage) -> ModelUsage:
    known = a.cost_usd is not None and b.cost_usd is not None
    return ModelUsage(
        tokens=a.tokens + b.tokens,
        cost_usd=(a.cost_usd or 0.0) + (b.cost_usd or 0.0) if known else None,
        context_window=b.context_window or a.context_window,
    )


def _minus(usage: ModelUsage, before: ModelUsage | None) -> ModelUsage:
    if before is None:
        return usage
    known = usage.cost_usd is not None and before.cost_usd is not None
    return ModelUsage(
        tokens=usage.tokens - before.tokens,
        cost_usd=(usage.cost_usd or 0.0) - (before.cost_usd or 0.0) if known else None,
        context_window=usage.context_window,
    )


def _is_restoring(version: str | None) -> bool:
    known = _parsed(version)
    return known is None or known >= _RESTORES_FROM


def _parsed(version: str | None) -> tuple[int, int, int] | None:
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version or "")
    return (int(match[1]), int(match[2]), int(match[3])) if match else None
