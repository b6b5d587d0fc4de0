"""The rules of a tier: shipped sets, the operator's own file, patterns in the configuration, and what is wrong."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor import shipped
from supervisor.model.rule import Effect, TierRules
from supervisor.settings import ConfigProblems, Settings
from supervisor.settings.settings import SHIPPED_SETS

Load = Callable[..., Settings]
Refuse = Callable[..., list[str]]

TIER = '[[tiers]]\nname = "one"\nmodel = "haiku"\nprompt = "tier1.md"\n'


def sets(rules: TierRules) -> set[str]:
    return {rule.set for rule in rules.rules}


def texts(rules: TierRules, name: str) -> list[str]:
    return [rule.text for rule in rules.rules if rule.set == name]


@pytest.mark.parametrize(
    ("tier", "expected", "default", "opaque"),
    [
        pytest.param(1, {"read-only"}, Effect.DENY, Effect.DENY, id="the first"),
        pytest.param(2, {"read-only", "remedies"}, Effect.DENY, Effect.DENY, id="the second"),
        pytest.param(3, {"read-only", "remedies", "repairs"}, Effect.APPROVE, Effect.APPROVE, id="the third"),
    ],
)
def test_each_tier_has_the_rules_of_its_position(
    load: Load, tier: int, expected: set[str], default: Effect, opaque: Effect
) -> None:
    rules = load().rules_for(tier)
    assert sets(rules) == expected | {"never", "secrets", "protected"}
    assert (rules.default, rules.opaque) == (default, opaque)


def test_a_ladder_of_the_operators_has_the_same_defaults(load: Load) -> None:
    settings = load(TIER + TIER.replace("one", "two").replace("tier1", "tier2"))
    assert "remedies" in sets(settings.rules_for(2))


def test_a_tier_adds_patterns_of_its_own(load: Load) -> None:
    settings = load(TIER + 'rule_sets = []\nallow = ["mytool status"]\ndeny = ["mytool -x"]\ndefault = "approve"\n')
    rules = settings.rules_for(1)
    assert texts(rules, "tier one") == ["mytool -x", "mytool status"]
    assert "read-only" not in sets(rules)
    assert rules.default is Effect.APPROVE


@pytest.mark.parametrize("name", ["read-only", "never"])
def test_what_a_tier_allows_itself_never_counts_as_reading(load: Load, name: str) -> None:
    settings = load(TIER.replace("one", name) + 'rule_sets = []\nallow = ["mytool"]\n')
    assert texts(settings.rules_for(1), f"tier {name}") == ["mytool"]


def test_a_pattern_with_a_mistake_is_named_with_its_line_before_anything_runs(refuse: Refuse) -> None:
    (problem,) = refuse(TIER + 'allow = [\n  "tool a",\n  "tool [-x",\n]\n')
    assert problem.startswith("FILE:7: tiers.1.allow.2: a list of options is not closed by ]")


def test_nothing_can_be_allowed_by_default(refuse: Refuse) -> None:
    (problem,) = refuse(TIER + 'default = "allow"\n')
    assert problem.startswith("FILE:5: tiers.1.default")


def test_an_unknown_set_is_named_with_its_line(load: Load, base: Path) -> None:
    settings = load(TIER + 'rule_sets = ["read-only", "remedys"]\n')
    with pytest.raises(ConfigProblems) as caught:
        settings.rules_for(1)
    (problem,) = caught.value.problems
    assert str(problem).startswith(f'{base / "opsladder.toml"}:5: tiers.1.rule_sets.2: there is no set "remedys"')
    assert problem.suggestion == "remedies"


def test_a_set_of_the_operators_takes_the_place_of_the_shipped_one(load: Load, base: Path) -> None:
    (base / "rules.toml").write_text("[sets.read-only]\nallow = ['df ...']\n")
    assert texts(load().rules_for(1), "read-only") == ["df ..."]
    assert "remedies" in sets(load().rules_for(2))


def test_what_is_never_allowed_can_only_grow(load: Load, base: Path) -> None:
    shipped = load().rules_for(1)
    (base / "rules.toml").write_text(
        "[sets.never]\ndeny = ['mytool']\n[secrets]\npaths = ['/etc/mine']\n[protected]\npaths = []\n"
    )
    own = load().rules_for(1)
    for name, added in (("never", ["mytool"]), ("secrets", ["/etc/mine"]), ("protected", [])):
        assert texts(own, name) == texts(shipped, name) + added


def test_no_tier_can_name_the_never_set_away(load: Load) -> None:
    assert "never" in sets(load(TIER + "rule_sets = []\n").rules_for(1))
    assert len(texts(load(TIER + 'rule_sets = ["never"]\n').rules_for(1), "never")) == len(
        texts(load().rules_for(1), "never")
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("[sets.x]\nallow = ['tool ... x']\n", ":2: sets.x.allow.1: ", id="a pattern"),
        pytest.param("[sets.x]\nalow = []\n", ':2: sets.x.alow: unknown key. Did you mean "allow"?', id="a key"),
        pytest.param("[secrets]\npaths = ['etc/x']\n", ":2: secrets.paths.1: a path begins with", id="a path"),
        pytest.param("[options]\ntool = 'n='\n", ":2: options.tool: should be options", id="an option"),
        pytest.param("[sets\n", ":1: is not TOML", id="the file"),
    ],
)
def test_a_mistake_in_the_operators_rules_is_named_with_its_line(
    load: Load, base: Path, text: str, expected: str
) -> None:
    file = base / "rules.toml"
    file.write_text(text)
    settings = load()
    with pytest.raises(ConfigProblems) as caught:
        settings.rules_for(1)
    assert str(caught.value).startswith(f"{file}{expected}")


def test_the_rules_are_read_once(load: Load, base: Path) -> None:
    settings = load()
    rules = settings.rules_for(1)
    (base / "rules.toml").write_text("[sets\n")
    assert settings.rules_for(1) is rules


@pytest.mark.parametrize("name", ["rules.toml", "models.toml", "environment.md", "prompts"])
def test_what_the_operator_wrote_is_off_limits_to_agents_also_before_it_exists(
    load: Load, base: Path, name: str
) -> None:
    assert str(base / name) in load().own_paths()


def test_the_sets_that_need_no_looking_into_are_those_that_are_shipped() -> None:
    shipped_sets = tomllib.loads((shipped.CONFIG / "rules.toml").read_text())["sets"]

    assert set(shipped_sets) - {"never"} == SHIPPED_SETS


def test_a_database_apart_from_the_other_records_is_off_limits_too_with_its_side_files(load: Load, base: Path) -> None:
    settings = load('[state]\ndatabase_url = "sqlite:///ops.db?timeout=30"\n')

    assert {str(base / name) for name in ("ops.db", "ops.db-wal", "ops.db-shm")} <= set(settings.own_paths())
