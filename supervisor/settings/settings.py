"""The settings of one process, complete and unchangeable. Looks for prompt files. Made by ``settings.load``."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from pydantic import SecretStr

from supervisor.errors import ConfigError
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
    State,
    Tier,
    Web,
)
from supervisor.settings.values import sqlite_url

DATABASE_FILE = "opsladder.db"

_UNITS = (("day", timedelta(days=1)), ("hour", timedelta(hours=1)), ("minute", timedelta(minutes=1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything an operator can set.

    ``source`` is the file it came from, if any; ``base_dir`` is what relative paths are relative to; ``prompt_dirs``
    are searched in order; ``agent_env`` is the whole environment of an agent but for what belongs to a single run.
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
    web: Web
    tiers: tuple[Tier, ...]
    schedules: tuple[Schedule, ...]
    models: ModelTable = field(repr=False)
    agent_env: Mapping[str, str] = field(repr=False)

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

    def database_url(self) -> str:
        """Where the records are. It may hold a password: for connecting, not for showing."""
        return self.state.database_url.get_secret_value()

    def cooldown_rules(self) -> dict[str, dict[str, object]]:
        """The cooldowns in words, for prompts and handoffs."""
        rules: dict[str, Cooldown] = {"restart": self.cooldowns.restart, "redeploy": self.cooldowns.redeploy}
        return {kind: {"max": rule.max, "per": _in_words(rule.per)} for kind, rule in rules.items()}

    def with_state(self, directory: Path) -> "Settings":
        """The same settings with records of their own, in SQLite under another directory."""
        url = SecretStr(sqlite_url(directory / DATABASE_FILE))
        return replace(self, state=State.model_construct(dir=directory, database_url=url))


def _in_words(duration: timedelta) -> str:
    for name, unit in _UNITS:
        count, rest = divmod(duration, unit)
        if count and not rest:
            return f"{count} {name}" if count == 1 else f"{count} {name}s"
    return f"{int(duration.total_seconds())} seconds"
