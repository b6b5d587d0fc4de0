"""What a run is told."""

import pytest

from supervisor import shipped
from supervisor.errors import ConfigError
from supervisor.prompts import Briefing, Prompts, system_prompt

COOLDOWNS = {"restart": {"max": 2, "per": "4h"}, "redeploy": {"max": 1, "per": "24h"}}
FULL = ["tier1.md", "tier2.md", "tier3.md"]
ESCALATIONS = ["tier2-escalation.md", "tier3-escalation.md"]


def briefing(**changes: object) -> Briefing:
    values = {
        "tier": 2,
        "tier_name": "repair",
        "tiers": 3,
        "dry_run": False,
        "environment": "The web shop runs on host alpha.",
        "cooldowns": COOLDOWNS,
    }
    return Briefing(**{**values, **changes})


def render(name: str, **changes: object) -> str:
    return Prompts([shipped.PROMPTS]).tier(name, briefing(**changes))


@pytest.mark.parametrize("dry_run", [False, True], ids=["real", "dry"])
@pytest.mark.parametrize("name", ESCALATIONS)
def test_an_escalation_prompt_is_under_500_tokens_and_free_of_findings(name, dry_run):
    text = render(name, dry_run=dry_run, handoff='{"secret": "finding"}', instructions="look at web")

    # English prose is above four characters a token; three is a bound no tokenizer exceeds for it.
    assert len(text) / 3.6 < 500
    assert 'finding"' not in text
    assert "alpha" not in text


@pytest.mark.parametrize("name", ESCALATIONS)
def test_an_escalation_prompt_says_who_you_are_what_you_may_and_what_is_above(name):
    text = render(name, dry_run=True)

    for part in (
        "You are now tier 2",
        "You may",
        "You may not",
        "at most 2 restarts",
        "DRY RUN",
        "do not repeat",
        "this turn only",
    ):
        assert part in text


@pytest.mark.parametrize("name", FULL)
def test_a_full_prompt_carries_the_environment_the_handoff_and_the_operator_s_words(name):
    text = render(name, handoff='{"x": 1}', lost="it is too large", instructions="mind the certificates")

    for part in ("host alpha", '{"x": 1}', "it is too large", "mind the certificates", "at most 1 redeployment "):
        assert part in text


@pytest.mark.parametrize("name", FULL)
def test_without_a_handoff_nothing_is_said_of_one(name):
    text = render(name)

    assert "handoff" not in text
    assert "could not be carried over" not in text
    assert "\n\n\n" not in text
    assert "DRY RUN" not in text


def test_a_lost_session_without_records_is_said_to_be_lost():
    assert "nothing of it was recorded" in render("tier1.md", lost="it is too old")


def test_the_operator_s_own_prompt_comes_first_and_the_rest_stays(tmp_path):
    (tmp_path / "tier2.md").write_text("Mine: {{ tier_name }}")
    prompts = Prompts([tmp_path, shipped.PROMPTS])

    assert prompts.tier("tier2.md", briefing()) == "Mine: repair\n"
    assert "tier 2" in prompts.tier("tier3.md", briefing())


BROKEN = {
    "misspelt_name": ("{{ enviroment }}", "enviroment"),
    "syntax": ("line\n{% if %}", ":2:"),
    "reaching_into_python": ("{{ ''.__class__.__mro__ }}", "unsafe"),
    "missing_include": ('{% include "gone.md" %}', "gone.md"),
}


@pytest.mark.parametrize(("text", "said"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_template_is_an_error_that_names_it(tmp_path, text, said):
    (tmp_path / "mine.md").write_text(text)

    with pytest.raises(ConfigError) as caught:
        Prompts([tmp_path]).tier("mine.md", briefing())

    assert said in str(caught.value)


def test_the_system_prompt_is_one_plain_text_with_the_rules_that_hold_on_every_tier():
    text = system_prompt(shipped.PROMPTS / "system.md")

    assert "{{" not in text
    for rule in (
        "persistent volumes",
        "prune the container system",
        "force-push",
        "protected infrastructure",
        "escalation",
    ):
        assert rule in text
