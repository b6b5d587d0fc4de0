"""A path that is shut in whichever directory of the root is shut by every name it has."""

from dataclasses import replace

import pytest
from permission_corpus import OFF_LIMITS, shipped_rules

from supervisor.decide.rules.permission import permission
from supervisor.decide.rules.rule_pattern import parse_pattern
from supervisor.model.permission import ToolCall, Verdict
from supervisor.model.rule import Effect, Rule
from supervisor.shell import read_shell

PATTERN = "path(/*/secret.txt)"
RULE = Rule(effect=Effect.DENY, text=PATTERN, set="own", pattern=parse_pattern(PATTERN, Effect.DENY))


def verdict(text: str) -> Verdict:
    shipped = shipped_rules(1)
    rules = replace(shipped, rules=(*shipped.rules, RULE))
    call = ToolCall(tool_use_id="t", tool="Bash", input={"command": text}, cwd="/srv/ops")
    return permission(call, read_shell(text), rules, OFF_LIMITS, dry_run=False).verdict


@pytest.mark.parametrize(
    "text",
    [
        "cat /srv/secret.txt",
        "cd /srv && cat secret.txt",
        "cat /srv/./secret.txt",
        "cat ../secret.txt",
        "cat /srv/s*.txt",
    ],
)
def test_it_is_shut_by_every_name(text: str) -> None:
    assert verdict(text) is Verdict.DENY


@pytest.mark.parametrize("text", ["cat secret.txt", "cat /srv/ops/secret.txt", "cat /srv/secret.txt.old"])
def test_other_places_stay_open(text: str) -> None:
    assert verdict(text) is Verdict.ALLOW
