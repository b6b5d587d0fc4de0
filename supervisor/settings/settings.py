"""The settings of one process, complete and unchangeable. Looks for prompt files. Made by ``settings.load``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from supervisor.decide.masking import Masker
from supervisor.decide.masking.names import SecretNames, looks_random
from supervisor.decide.masking.values import passwords_in, secrets_among
from supervisor.errors import ConfigError
from supervisor.model.guarding import CooldownLimit
from supervisor.model.permission import ActionKind
from supervisor.settings.models_table import ModelTable
from supervisor.settings.schema import (
    Budget,
    Claude,
    Continuity,
    Cooldown,
    Cooldowns,
    Escalation,
    Guard,
    Notify,
    Retention,
    Schedule,
    Service,
    State,
    Tier,
    Web,
)
from supervisor.settings.source import Source
from supervisor.settings.values import sqlite_url

if TYPE_CHECKING:
    # Only what guards a run needs it, and loading it takes a while.
    from supervisor.model.rule import TierRules

DATABASE_FILE = "opsladder.db"
_SQLITE = "sqlite:///"

_RULES_FILE = "rules.toml"
# What an operator may have beside the configuration, and what decides over later runs.
_OWN_FILES = (_RULES_FILE, "models.toml", "environment.md", "prompts")
SHIPPED_SETS = frozenset({"read-only", "remedies", "repairs"})
_UNITS = (("day", timedelta(days=1)), ("hour", timedelta(hours=1)), ("minute", timedelta(minutes=1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything an operator can set.

    ``source`` is the file it came from, if any; ``base_dir`` is what relative paths are relative to; ``prompt_dirs``
    are searched in order; ``agent_env`` is the whole environment of an agent but for what belongs to a single run.
    ``origin`` knows where each setting was set, for whoever finds a fault in one later.
    """

    source: Path | None
    base_dir: Path
    prompt_dirs: tuple[Path, ...]
    claude: Claude
    state: State
    continuity: Continuity
    escalation: Escalation
    budget: Budget
    cooldowns: Cooldowns
    guard: Guard
    notify: Notify
    retention: Retention
    service: Service
    web: Web
    tiers: tuple[Tier, ...]
    schedules: tuple[Schedule, ...]
    models: ModelTable = field(repr=False)
    agent_env: Mapping[str, str] = field(repr=False)
    origin: Source = field(repr=False, compare=False)
    _rules: dict[int, "TierRules"] = field(default_factory=dict, init=False, repr=False, compare=False)

    def rules_for(self, tier_number: int) -> "TierRules":
        """What the guard lets a tier do. Read when first asked for; a mistake in it raises ``ConfigProblems``."""
        if tier_number not in self._rules:
            # Here, not above: a command that runs no agent need not read them.
            from supervisor.settings.rules_table import rules_of

            tier = self.tiers[tier_number - 1]
            self._rules[tier_number] = rules_of(tier, tier_number, own=self.rules_file, config=self.source)
        return self._rules[tier_number]

    def check_rules(self) -> None:
        """Find mistakes in what an operator wrote about rules. The shipped sets need no looking into."""
        named = {name for tier in self.tiers for name in tier.rule_sets}
        if self.rules_file.is_file() or not named <= SHIPPED_SETS:
            for number in range(1, len(self.tiers) + 1):
                self.rules_for(number)

    @property
    def rules_file(self) -> Path:
        """Where the operator's own rules are, if there are any."""
        return self.base_dir / _RULES_FILE

    @property
    def prompts_dir(self) -> Path:
        """The operator's own prompts if there are any, else the shipped ones."""
        return self.prompt_dirs[0]

    def prompt_path(self, name: str) -> Path:
        """The file of a prompt: the operator's own before the shipped one."""
        for directory in self.prompt_dirs:
            if (directory / name).is_file():
                return directory / name
        searched = " or ".join(str(directory) for directory in self.prompt_dirs)
        raise ConfigError(
            f"There is no prompt {name} in {searched}.", remedy="`opsladder init` writes the shipped ones."
        )

    def schedule(self, name: str) -> Schedule:
        """The schedule of this name."""
        for schedule in self.schedules:
            if schedule.name == name:
                return schedule
        known = ", ".join(schedule.name for schedule in self.schedules)
        raise ConfigError(f'There is no schedule "{name}".', remedy=f"There is: {known}.")

    def has_schedule(self, name: str) -> bool:
        """Whether there is a schedule of this name."""
        return any(schedule.name == name for schedule in self.schedules)

    def database_url(self) -> str:
        """Where the records are. It may hold a password: for connecting, not for showing."""
        return self.state.database_url.get_secret_value()

    @property
    def probe_file(self) -> Path:
        """Where it is kept what the CLI was found to be able to do."""
        return self.state.dir / "probe.json"

    def masker(self) -> Masker:
        """What takes the secrets out of everything that is stored, shown or sent."""
        names = self.guard.mask_names
        known = {*passwords_in(self.database_url()), *secrets_among(self.agent_env, SecretNames(names))}
        if self.web.token is not None:
            known.add(self.web.token.get_secret_value())
        for address in (*self.notify.info, *self.notify.warning, *self.notify.critical, *self._pings()):
            known.update(_secrets_of_address(address.get_secret_value()))
        return _masker(frozenset(known), names)

    @property
    def known_targets_file(self) -> Path:
        """Where it is kept which addresses of messages were found to be right."""
        return self.state.dir / "targets.json"

    @property
    def tells_anyone(self) -> bool:
        """Whether a person or a dead-man's switch is to be told of anything."""
        return any((self.notify.info, self.notify.warning, self.notify.critical, *self._pings()))

    def _pings(self) -> list[SecretStr]:
        return [schedule.ping_url for schedule in self.schedules if schedule.ping_url is not None]

    def cooldown_rules(self) -> dict[str, dict[str, object]]:
        """The cooldowns in words, for prompts and handoffs."""
        rules: dict[str, Cooldown] = {"restart": self.cooldowns.restart, "redeploy": self.cooldowns.redeploy}
        return {kind: {"max": rule.max, "per": _in_words(rule.per)} for kind, rule in rules.items()}

    def cooldown_limits(self) -> dict[ActionKind, CooldownLimit]:
        """The cooldowns as the ledger counts them."""
        rules: dict[ActionKind, Cooldown] = {
            ActionKind.RESTART: self.cooldowns.restart,
            ActionKind.REDEPLOY: self.cooldowns.redeploy,
        }
        return {kind: CooldownLimit(max=rule.max, window=rule.per) for kind, rule in rules.items()}

    def approval_limit(self) -> timedelta:
        """How long a tool call may wait for a person."""
        return timedelta(minutes=self.guard.approval_minutes)

    def own_paths(self) -> tuple[str, ...]:
        """What belongs to the supervisor and is nothing to an agent, as real paths: its records and configuration."""
        own = [self.state.dir, *self.prompt_dirs, *(self.base_dir / name for name in _OWN_FILES)]
        own += [self.source] if self.source else []
        if self.database_url().startswith(_SQLITE):
            file = self.database_url().removeprefix(_SQLITE).partition("?")[0]
            own += [Path(file + part) for part in ("", "-wal", "-shm")]
        return tuple(dict.fromkeys(str(path.resolve()) for path in own))

    def practising(self, directory: Path, *, looks: str, acts: str) -> "Settings":
        """The same settings for work in a practice directory, whose programs no rule can know.

        ``looks`` is the pattern of what the first tier may run there, ``acts`` of what those above it may.
        """
        tiers = tuple(
            tier.model_copy(update={"allow": (*tier.allow, acts if number else looks)})
            for number, tier in enumerate(self.tiers)
        )
        claude = self.claude.model_copy(update={"work_dir": directory})
        return replace(self, claude=claude, tiers=tiers)

    def with_state(self, directory: Path) -> "Settings":
        """The same settings with records of their own, in SQLite under another directory."""
        url = SecretStr(sqlite_url(directory / DATABASE_FILE))
        return replace(self, state=State.model_construct(dir=directory, database_url=url))


@lru_cache(maxsize=8)
def _masker(values: frozenset[str], names: tuple[str, ...]) -> Masker:
    """One masker for the same secrets: it prepares its patterns once."""
    return Masker(values=values, names=names)


def _secrets_of_address(address: str) -> set[str]:
    """An address at which people are told: its tokens are in its path, and it is turned into others with the same."""
    parts = (part for part in re.split(r"[/@:?&=]+", address.partition("://")[2]) if looks_random(part))
    return {address, *passwords_in(address), *parts}


def _in_words(duration: timedelta) -> str:
    for name, unit in _UNITS:
        count, rest = divmod(duration, unit)
        if count and not rest:
            return f"{count} {name}" if count == 1 else f"{count} {name}s"
    return f"{int(duration.total_seconds())} seconds"
