"""Try every prompt that the configuration can use, before anything runs. Reads templates. Called from cli and service.

Found only when its tier is reached, a mistake in a prompt would have cost the tiers before it.
"""

import datetime as dt
import filecmp
from dataclasses import replace
from pathlib import Path

from supervisor import shipped
from supervisor.climb.brief import LOST
from supervisor.climb.launch import SYSTEM_PROMPT_FILE
from supervisor.model.session import Reason
from supervisor.prompts import CONTINUE, DELTA, RETRY, Briefing, Delta, Prompts, system_prompt
from supervisor.settings import Settings

_LONG_AGO = dt.datetime.fromtimestamp(0, dt.UTC)
_AN_INCIDENT = Delta(services=("web",), opened_at=_LONG_AGO, checked_at=_LONG_AGO, cycles=1, last_cycle="unresolved")


def check_prompts(settings: Settings) -> None:
    """Find mistakes in prompts of the operator's own. Those that are as they were shipped need no looking into.

    To try all takes some 20 ms, which every cycle would pay.
    """
    own = _own_files(settings)
    used = _used(settings)
    if SYSTEM_PROMPT_FILE in own:
        system_prompt(settings.prompt_path(SYSTEM_PROMPT_FILE))
    # What is not used by itself may be a part of any other.
    tried = used if own - used - {SYSTEM_PROMPT_FILE} else used & own
    if tried:
        _render(settings, tried)


def try_prompts(settings: Settings) -> int:
    """The same for all, wherever they come from. Returns how many bytes the longest escalation prompt has."""
    system_prompt(settings.prompt_path(SYSTEM_PROMPT_FILE))
    return _render(settings, _used(settings))


def _used(settings: Settings) -> frozenset[str]:
    names = (name for tier in settings.tiers for name in (tier.prompt, tier.escalation_prompt) if name)
    return frozenset(names).union((CONTINUE, RETRY, DELTA))


def _render(settings: Settings, wanted: frozenset[str]) -> int:
    """Render these once with nothing to say and once with everything: both sides of what depends on it.

    ``ConfigError`` names the first that does not render.
    """
    # Of its own: what is wrong later, because someone has edited a prompt since, is found when it is used.
    prompts = Prompts(settings.prompt_dirs)
    longest = 0
    for number, tier in enumerate(settings.tiers, start=1):
        for briefing in _briefings(settings, number):
            if tier.prompt in wanted:
                prompts.tier(tier.prompt, briefing)
            if CONTINUE in wanted:
                prompts.again(briefing, why="the run was cut off")
            if RETRY in wanted:
                prompts.retry(briefing)
            if DELTA in wanted:
                prompts.delta(briefing, _AN_INCIDENT)
            if tier.escalation_prompt in wanted:
                longest = max(longest, len(prompts.tier(tier.escalation_prompt, briefing).encode()))
    return longest


def _briefings(settings: Settings, number: int) -> list[Briefing]:
    texts = sorted({schedule.environment_text for schedule in settings.schedules}, key=len)
    bare = Briefing(
        tier=number,
        tier_name=settings.tiers[number - 1].name,
        tiers=len(settings.tiers),
        dry_run=False,
        # The shortest, which may be empty, and the longest: more of them is more of the same.
        environment=texts[0],
        cooldowns=settings.cooldown_rules(),
    )
    full = replace(
        bare,
        dry_run=True,
        environment=texts[-1],
        cooling=("web: 2 of 2 restarts in 4 hours",),
        instructions="Look.",
        handoff="{}",
        lost=LOST[Reason.CONTEXT_THRESHOLD],
        unfinished=("Bash: webctl restart",),
        waited="It was refused.",
    )
    return [bare, full]


def _own_files(settings: Settings) -> frozenset[str]:
    """What the operator has written, by its name: every file that is not the shipped one of that name."""
    return frozenset(
        str(file.relative_to(directory))
        for directory in settings.prompt_dirs
        if directory != shipped.PROMPTS
        for file in directory.rglob("*")
        if not file.is_dir() and not _is_the_same(file, shipped.PROMPTS / file.relative_to(directory))
    )


def _is_the_same(file: Path, shipped_one: Path) -> bool:
    try:
        return filecmp.cmp(file, shipped_one, shallow=False)
    except OSError:
        return False
