"""The shipped rules against a corpus written by somebody who did not write them: escapes, ordinary looks, remedies."""

import pytest
from permission_corpus import TIERS, Example, commands, decide, examples

from supervisor.model.permission import Verdict

FEWEST_ESCAPES = 300
FEWEST_ORDINARY = 150
_ACCEPTED = {
    "allow": {Verdict.ALLOW},
    "deny": {Verdict.DENY},
    "defer": {Verdict.DEFER},
    "guarded": {Verdict.DENY, Verdict.DEFER},
    "any": set(Verdict),
}


def _each(name: str) -> list[object]:
    return [pytest.param(example, id=example.label) for example in examples(name)]


def _each_on_every_tier(name: str) -> list[object]:
    return [
        pytest.param(example, tier, verdict, id=f"tier {tier}: {example.label}")
        for example in examples(name)
        for tier, verdict in zip(TIERS, example.verdicts, strict=True)
    ]


@pytest.mark.parametrize("example", _each("escapes"))
def test_an_escape_from_looking_is_denied_on_tier_1(example: Example) -> None:
    decision = decide(example.tool, example.input)
    assert decision.verdict is Verdict.DENY, f"{example.why}; it was let through by {decision.rule}"
    assert decision.sentence


@pytest.mark.parametrize("example", _each("escapes"))
def test_an_escape_is_not_taken_for_reading_in_a_dry_run_on_the_highest_tier(example: Example) -> None:
    decision = decide(example.tool, example.input, tier=TIERS[-1], dry_run=True)
    assert decision.verdict is Verdict.DENY, f"{example.why}; it was let through by {decision.rule}"


@pytest.mark.parametrize("example", _each("ordinary"))
def test_an_ordinary_look_is_allowed_on_tier_1(example: Example) -> None:
    decision = decide(example.tool, example.input)
    assert decision.verdict is Verdict.ALLOW, f"{decision.rule}: {decision.sentence}"
    assert decision.read_only
    assert not decision.actions


@pytest.mark.parametrize("tier", TIERS[1:])
@pytest.mark.parametrize("example", _each("ordinary"))
def test_an_ordinary_look_is_allowed_on_higher_tiers_also_in_a_dry_run(example: Example, tier: int) -> None:
    for dry_run in (False, True):
        decision = decide(example.tool, example.input, tier=tier, dry_run=dry_run)
        assert decision.verdict is Verdict.ALLOW, f"{decision.rule}: {decision.sentence}"


@pytest.mark.parametrize(("example", "tier", "verdict"), _each_on_every_tier("remedies"))
def test_a_remedy_belongs_to_its_tiers(example: Example, tier: int, verdict: str) -> None:
    decision = decide(example.tool, example.input, tier=tier)
    assert decision.verdict in _ACCEPTED[verdict], f"{example.why}; {decision.rule}: {decision.sentence}"


@pytest.mark.parametrize(("example", "tier", "verdict"), _each_on_every_tier("tool_calls"))
def test_a_tool_call_belongs_to_its_tiers(example: Example, tier: int, verdict: str) -> None:
    decision = decide(example.tool, example.input, tier=tier)
    assert decision.verdict in _ACCEPTED[verdict], f"{example.why}; {decision.rule}: {decision.sentence}"


def test_the_corpus_is_large_and_says_nothing_twice() -> None:
    escapes, ordinary = commands("escapes"), commands("ordinary")
    assert len(set(escapes)) >= FEWEST_ESCAPES
    assert len(set(ordinary)) >= FEWEST_ORDINARY
    assert len(set(escapes)) == len(escapes)
    assert len(set(ordinary)) == len(ordinary)
    assert not set(escapes) & set(ordinary)
