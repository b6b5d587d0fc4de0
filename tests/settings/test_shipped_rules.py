"""The shipped rules are taken as they are when a run starts: what an operator's file is checked for is checked here."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor import shipped
from supervisor.model.rule import Pattern, TierRules
from supervisor.settings import Settings

Load = Callable[..., Settings]


def listed(rules: TierRules) -> dict[tuple[str, str, str], Pattern]:
    return {(rule.set, rule.effect.value, rule.text): rule.pattern for rule in rules.rules}


@pytest.mark.parametrize("tier", [1, 2, 3])
def test_the_shipped_rules_pass_the_checks_of_an_operators_file_and_mean_the_same(
    load: Load, base: Path, tier: int
) -> None:
    taken = load().rules_for(tier)
    shutil.copy(shipped.CONFIG / "rules.toml", base / "rules.toml")
    checked = load().rules_for(tier)
    assert listed(checked) == listed(taken)
    assert (checked.options, checked.steering) == (taken.options, taken.steering)
