"""Switch, money, rules, people, cooldowns: which of them has the word on a tool call."""

import datetime as dt

import pytest
from make import NOW

from supervisor.decide.budget import OverBudget
from supervisor.decide.clearance import Circumstances, clearance, out_of_slots
from supervisor.model.guarding import Approval, ApprovalStatus, CooldownLimit, Refused, SwitchState
from supervisor.model.permission import ActionKind, Decision, Remedies, ServiceAction, Verdict

ON, OFF = SwitchState(paused=False), SwitchState(paused=True, at=NOW, by="ada", reason="maintenance")
BROKE = OverBudget(spent_usd=2.0, limit_usd=1.0, what="this cycle")
ALLOW = Decision(verdict=Verdict.ALLOW, rule="systemctl restart *", sentence="Allowed.")
DENY = Decision(verdict=Verdict.DENY, rule="never", sentence="Never.")
ASK = Decision(verdict=Verdict.DEFER, rule="helm *", sentence="A person decides.")
RESTART = ServiceAction(kind=ActionKind.RESTART, service="web")
NOTHING = Remedies(actions=(), uncounted=())
WEB = Remedies(actions=(RESTART,), uncounted=())
UNNAMED = Remedies(actions=(), uncounted=("Name the services one by one.",))


def approval(status, **changes):
    asked = {
        "session_id": 1,
        "cycle_id": 1,
        "tier": 3,
        "tool_use_id": "toolu_1",
        "tool": "Bash",
        "input": {},
        "input_hash": "h",
        "text": "helm upgrade web",
        "rule": "helm *",
        "sentence": "A person decides.",
        "created_at": NOW,
        "expires_at": NOW,
    }
    return Approval(**{**asked, "id": 7, "status": status, "decided_by": "grace", **changes})


CASES = {
    "allowed": (ALLOW, NOTHING, {}, Verdict.ALLOW, "systemctl restart *"),
    "denied_by_rule": (DENY, NOTHING, {}, Verdict.DENY, "never"),
    "switch_before_everything": (ALLOW, NOTHING, {"switch": OFF, "over_budget": BROKE}, Verdict.DENY, "switch"),
    "switch_before_an_approval": (
        ASK,
        NOTHING,
        {"switch": OFF, "approval": approval(ApprovalStatus.APPROVED)},
        Verdict.DENY,
        "switch",
    ),
    "money_before_rules": (ALLOW, NOTHING, {"over_budget": BROKE}, Verdict.DENY, "budget"),
    "unnamed_services": (ALLOW, UNNAMED, {}, Verdict.DENY, "cooldown.unnamed"),
    "unnamed_services_are_not_asked_about": (ASK, UNNAMED, {}, Verdict.DENY, "cooldown.unnamed"),
    "a_person_is_asked": (ASK, NOTHING, {}, Verdict.DEFER, "helm *"),
    "a_person_is_still_asked": (ASK, NOTHING, {"approval": approval(ApprovalStatus.WAITING)}, Verdict.DEFER, "helm *"),
    "approved": (ASK, NOTHING, {"approval": approval(ApprovalStatus.APPROVED)}, Verdict.ALLOW, "approved"),
    "refused": (ASK, NOTHING, {"approval": approval(ApprovalStatus.DENIED)}, Verdict.DENY, "denied"),
    "used_up": (ASK, NOTHING, {"approval": approval(ApprovalStatus.USED)}, Verdict.DENY, "denied"),
    "too_late": (ASK, NOTHING, {"approval": approval(ApprovalStatus.EXPIRED)}, Verdict.DENY, "approval.expired"),
    "an_approval_opens_no_denial": (
        DENY,
        NOTHING,
        {"approval": approval(ApprovalStatus.APPROVED)},
        Verdict.DENY,
        "never",
    ),
}


@pytest.mark.parametrize(("ruled", "wanted", "around", "verdict", "rule"), CASES.values(), ids=CASES.keys())
def test_who_has_the_word(ruled, wanted, around, verdict, rule):
    decision = clearance(ruled, wanted, Circumstances(**{"switch": ON, **around}))

    assert (decision.verdict, decision.rule) == (verdict, rule)
    assert decision.sentence


@pytest.mark.parametrize("around", [{}, {"approval": approval(ApprovalStatus.APPROVED)}], ids=["rule", "person"])
def test_what_is_let_through_carries_the_actions_it_needs_slots_for(around):
    ruled = ASK if around else ALLOW

    assert clearance(ruled, WEB, Circumstances(switch=ON, **around)).actions == (RESTART,)


def test_a_persons_reason_reaches_the_model():
    answer = approval(ApprovalStatus.DENIED, reason="the migration is not done")
    decision = clearance(ASK, NOTHING, Circumstances(switch=ON, approval=answer))

    assert "grace" in decision.sentence
    assert "the migration is not done" in decision.sentence


def test_a_cooldown_names_service_limit_and_next_time():
    limit = CooldownLimit(max=2, window=dt.timedelta(hours=4))
    later = NOW + dt.timedelta(hours=1, minutes=30)
    decision = out_of_slots(Refused(service="web", kind=ActionKind.RESTART, limit=limit, next_at=later), NOW)

    assert (decision.verdict, decision.rule) == (Verdict.DENY, "cooldown")
    assert "web is in cooldown: at most 2 restarts per service in any 4 hours." in decision.sentence
    assert f"{later:%Y-%m-%dT%H:%M:%SZ}, in 1 hour 30 minutes" in decision.sentence


def test_a_call_that_asks_for_more_than_the_limit_is_told_that_it_never_fits():
    limit = CooldownLimit(max=1, window=dt.timedelta(hours=24))
    decision = out_of_slots(Refused(service="web", kind=ActionKind.REDEPLOY, limit=limit, next_at=None), NOW)

    assert "at most 1 redeployment per service in any 24 hours" in decision.sentence
    assert "ever allow" in decision.sentence
