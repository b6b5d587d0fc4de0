"""The shipped rules against a corpus written by somebody who did not write them: escapes, ordinary looks, remedies."""

from collections.abc import Sequence
from typing import TypeVar

import pytest
from permission_corpus import TIERS, Example, commands, decide, examples

from supervisor.model.permission import Decision, Verdict

_Case = TypeVar("_Case")

FEWEST_ESCAPES = 300
FEWEST_ORDINARY = 150
_ACCEPTED = {
    "allow": {Verdict.ALLOW},
    "deny": {Verdict.DENY},
    "defer": {Verdict.DEFER},
    "guarded": {Verdict.DENY, Verdict.DEFER},
    "any": set(Verdict),
}


# Many examples to a test: what is wrong is listed by name, and thousands of tests would take longer than deciding.
_AT_ONCE = 50


def _some(cases: Sequence[_Case]) -> list[object]:
    return [
        pytest.param(cases[start : start + _AT_ONCE], id=f"from {start + 1}")
        for start in range(0, len(cases), _AT_ONCE)
    ]


def _each(name: str) -> list[object]:
    return _some(list(examples(name)))


def _each_on_every_tier(name: str) -> list[object]:
    return _some([(e, *case) for e in examples(name) for case in zip(TIERS, e.verdicts, strict=True)])


def _said(example: Example, decision: Decision) -> str:
    return f"{example.label} ({example.why}): {decision.verdict} by {decision.rule}: {decision.sentence}"


@pytest.mark.parametrize("some", _each("escapes"))
def test_an_escape_from_looking_is_denied_on_tier_1(some: Sequence[Example]) -> None:
    decided = [(example, decide(example.tool, example.input)) for example in some]
    assert [_said(e, d) for e, d in decided if d.verdict is not Verdict.DENY or not d.sentence] == []


@pytest.mark.parametrize("some", _each("escapes"))
def test_an_escape_is_not_taken_for_reading_in_a_dry_run_on_the_highest_tier(some: Sequence[Example]) -> None:
    decided = [(example, decide(example.tool, example.input, tier=TIERS[-1], dry_run=True)) for example in some]
    assert [_said(e, d) for e, d in decided if d.verdict is not Verdict.DENY] == []


@pytest.mark.parametrize("some", _each("ordinary"))
def test_an_ordinary_look_is_allowed_on_tier_1(some: Sequence[Example]) -> None:
    decided = [(example, decide(example.tool, example.input)) for example in some]
    fine = Verdict.ALLOW, True, ()
    assert [_said(e, d) for e, d in decided if (d.verdict, d.read_only, tuple(d.actions)) != fine] == []


@pytest.mark.parametrize("dry_run", [False, True], ids=["in earnest", "dry run"])
@pytest.mark.parametrize("tier", TIERS[1:])
@pytest.mark.parametrize("some", _each("ordinary"))
def test_an_ordinary_look_is_allowed_on_higher_tiers_also_in_a_dry_run(
    some: Sequence[Example], tier: int, dry_run: bool
) -> None:
    decided = [(example, decide(example.tool, example.input, tier=tier, dry_run=dry_run)) for example in some]
    assert [_said(e, d) for e, d in decided if d.verdict is not Verdict.ALLOW] == []


@pytest.mark.parametrize("some", _each_on_every_tier("remedies"))
def test_a_remedy_belongs_to_its_tiers(some: Sequence[tuple[Example, int, str]]) -> None:
    assert _misplaced(some) == []


@pytest.mark.parametrize("some", _each_on_every_tier("tool_calls"))
def test_a_tool_call_belongs_to_its_tiers(some: Sequence[tuple[Example, int, str]]) -> None:
    assert _misplaced(some) == []


def _misplaced(some: Sequence[tuple[Example, int, str]]) -> list[str]:
    decided = [(e, tier, wanted, decide(e.tool, e.input, tier=tier)) for e, tier, wanted in some]
    return [f"tier {tier}: {_said(e, d)}" for e, tier, wanted, d in decided if d.verdict not in _ACCEPTED[wanted]]


def test_the_corpus_is_large_and_says_nothing_twice() -> None:
    escapes, ordinary = commands("escapes"), commands("ordinary")
    assert len(set(escapes)) >= FEWEST_ESCAPES
    assert len(set(ordinary)) >= FEWEST_ORDINARY
    assert len(set(escapes)) == len(escapes)
    assert len(set(ordinary)) == len(ordinary)
    assert not set(escapes) & set(ordinary)
