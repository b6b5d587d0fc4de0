"""Decide on one tool call from everything that bears on it. Pure. Called from climb.warden.

The order is the point: the switch before money, money before rules, rules before people, and a person's word opens
only what a rule left to a person. What is let through here still has to find its cooldown slots free.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

from supervisor.decide.budget import OverBudget
from supervisor.model.guarding import Approval, ApprovalStatus, Refused, SwitchState
from supervisor.model.permission import ActionKind, Decision, Remedies, Verdict

SWITCH = "switch"
BUDGET = "budget"
COOLDOWN = "cooldown"
UNNAMED = "cooldown.unnamed"
APPROVED = "approved"
DENIED = "denied"
EXPIRED = "approval.expired"

_END = "End now with your report, and say in it what is left to do."


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What is true around a call. ``approval`` is what a person was asked about this very call and input."""

    switch: SwitchState
    over_budget: OverBudget | None = None
    approval: Approval | None = None


def clearance(ruled: Decision, remedies: Remedies, around: Circumstances) -> Decision:
    """What happens to a call that the rules have ``ruled`` on. Allowed, it carries the actions it needs slots for."""
    if around.switch.paused:
        return _deny(SWITCH, _paused(around.switch))
    if around.over_budget is not None:
        return _deny(BUDGET, f"{around.over_budget.sentence} No further tool call is let through. {_END}")
    if ruled.verdict is Verdict.DENY:
        return ruled
    if remedies.uncounted:
        return _deny(UNNAMED, " ".join(remedies.uncounted))
    acting = replace(ruled, actions=remedies.actions)
    return acting if ruled.verdict is Verdict.ALLOW else _by_a_person(acting, around.approval)


def _by_a_person(asking: Decision, approval: Approval | None) -> Decision:
    match approval.status if approval else None:
        case ApprovalStatus.APPROVED if approval:
            said = f"{approval.decided_by or 'A person'} approved this call."
            return replace(asking, verdict=Verdict.ALLOW, rule=APPROVED, sentence=said)
        case ApprovalStatus.DENIED if approval:
            why = f": {approval.reason}" if approval.reason else ""
            said = f"{approval.decided_by or 'A person'} refused this call{why}. Do not ask for it again; find another"
            return _deny(DENIED, f"{said} way, or report that it is needed.")
        case ApprovalStatus.EXPIRED:
            said = "Nobody answered in time whether this call may run, so it is refused. Do not ask for it again;"
            return _deny(EXPIRED, f"{said} say in your report that it is needed.")
        case ApprovalStatus.USED:
            return _deny(DENIED, "The approval of this call is used up: it was let through once, and is not again.")
        case _:
            return asking


def out_of_slots(refused: Refused, now: dt.datetime) -> Decision:
    """The refusal of a call whose service was acted on too often already."""
    limit = refused.limit
    often = f"{limit.max} {_noun(refused.kind, limit.max)} per service in any {_span(limit.window)}"
    again = (
        f"It is allowed again from {refused.next_at.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%SZ}, "
        f"in {_span(max(refused.next_at - now, dt.timedelta(minutes=1)))}."
        if refused.next_at
        else "One call asks for more than the limit will ever allow."
    )
    return _deny(
        COOLDOWN,
        f"{refused.service} is in cooldown: at most {often}. {again} Leave it alone until then and say so in your "
        "report.",
    )


def needs_a_person(services: Sequence[str]) -> str:
    """What the model is told while a call waits for a person, after why it does."""
    about = f" concerns {', '.join(services)} and" if services else ""
    return f"This call{about} waits for the answer."


def _paused(switch: SwitchState) -> str:
    by = f" by {switch.by}" if switch.by else ""
    why = f": {switch.reason}" if switch.reason else ""
    return f"opsladder was paused{by}{why}. No tool call is let through until it is unpaused. {_END}"


def _noun(kind: ActionKind, count: int) -> str:
    noun = {ActionKind.RESTART: "restart", ActionKind.REDEPLOY: "redeployment"}[kind]
    return noun if count == 1 else f"{noun}s"


def _span(duration: dt.timedelta) -> str:
    minutes = round(duration.total_seconds() / 60)
    hours, rest = divmod(minutes, 60)
    if not hours:
        return f"{max(minutes, 1)} minute{'s' if minutes > 1 else ''}"
    return f"{hours} hour{'s' if hours > 1 else ''}" + (f" {rest} minutes" if rest else "")


def _deny(rule: str, sentence: str) -> Decision:
    return Decision(verdict=Verdict.DENY, rule=rule, sentence=sentence)
