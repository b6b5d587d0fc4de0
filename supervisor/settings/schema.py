"""The sections of ``opsladder.toml`` as frozen models, with every default. No I/O but what ``settings.values`` reads.

Validated by ``settings.load``, read by every room to the right. Units are in the names.
"""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from supervisor.model.report import Level
from supervisor.settings.patterns import AllowPattern, ApprovePattern, DenyPattern
from supervisor.settings.values import (
    AbsolutePath,
    BlackoutWindow,
    CronLine,
    DatabaseUrl,
    Days,
    Duration,
    FieldNames,
    ModelName,
    Name,
    NotifyUrls,
    Number,
    PingUrl,
    PositiveNumber,
    Program,
    PromptName,
    ScheduleName,
    Secret,
    Switch,
    TextOrFile,
    TimeZone,
    ToolNames,
    ToolPattern,
    VariableNames,
    Variables,
    WholeNumber,
    not_empty,
)

READING_TOOLS = ("Bash", "Read", "Grep", "Glob")

# A first line only: it stops a careless command, not a determined one. ``prefix:*`` ends at a word, so what can
# stand anywhere in a command, or inside its first word, is written with a bare ``*``.
DEFAULT_DISALLOWED_TOOLS = (
    "Bash(rm -rf /:*)",
    "Bash(rm -fr /:*)",
    "Bash(docker system prune:*)",
    "Bash(docker volume prune:*)",
    "Bash(docker volume rm:*)",
    "Bash(git push --force:*)",
    "Bash(git push -f:*)",
    "Bash(git push * --force)",
    "Bash(git push * --force *)",
    "Bash(git push * -f)",
    "Bash(git push * -f *)",
    "Bash(kubectl delete pv:*)",
    "Bash(kubectl delete pvc:*)",
    "Bash(kubectl delete ns:*)",
    "Bash(kubectl delete namespace:*)",
    "Bash(mkfs:*)",
    "Bash(mkfs.*)",
    "Bash(dd *of=/dev/*)",
)


class Section(BaseModel):
    """A table of the file: nothing in it can be changed, and nothing unknown can stand in it."""

    # Built with the document, so that importing costs one schema and not twenty.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, hide_input_in_errors=True)


class Claude(Section):
    """The CLI: which one, where it works, what it may see, how long it may take."""

    bin: Program | None = None
    work_dir: AbsolutePath
    env: Variables = Field(default_factory=lambda: MappingProxyType({}), repr=False)
    pass_env: VariableNames = ()
    system_prompt: Literal["own", "append"] = "own"
    first_output_seconds: PositiveNumber = 60
    silence_seconds: PositiveNumber = 900
    end_grace_seconds: PositiveNumber = 5
    overload_wait_seconds: PositiveNumber = 600


class State(Section):
    """Where the records are."""

    dir: AbsolutePath
    database_url: DatabaseUrl


class Continuity(Section):
    """When a kept session may be resumed."""

    context_threshold: Annotated[Number, Field(gt=0, le=1)] = 0.80
    session_max_age_minutes: PositiveNumber = 60
    idle_timeout_minutes: PositiveNumber = 30
    max_resumes: Annotated[WholeNumber, Field(ge=0)] = 5
    reopen_minutes: Annotated[Number, Field(ge=0, le=525_600)] = 240


class Escalation(Section):
    """How far up a cycle may climb."""

    max_tier: Annotated[WholeNumber, Field(ge=1)] = 3
    dry_run: Switch = False


class Budget(Section):
    """How much may be spent; ``None`` is no limit."""

    per_cycle_usd: PositiveNumber | None = None
    per_day_usd: PositiveNumber | None = None


class Cooldown(Section):
    """How often one service may be repaired in one way."""

    max: Annotated[WholeNumber, Field(ge=0)]
    per: Duration


class RestartCooldown(Cooldown):
    """How often one service may be restarted."""

    max: Annotated[WholeNumber, Field(ge=0)] = 2
    per: Duration = timedelta(hours=4)


class RedeployCooldown(Cooldown):
    """How often one service may be redeployed."""

    max: Annotated[WholeNumber, Field(ge=0)] = 1
    per: Duration = timedelta(hours=24)


class Cooldowns(Section):
    """How often a repair may be repeated."""

    restart: RestartCooldown = Field(default_factory=RestartCooldown)
    redeploy: RedeployCooldown = Field(default_factory=RedeployCooldown)


class Guard(Section):
    """What the guard holds for every tier."""

    approval_minutes: PositiveNumber = 30
    mask_names: FieldNames = ()


class Notify(Section):
    """Who is told of what, as Apprise addresses by level, and how often. See ``targets_of``."""

    info: NotifyUrls = ()
    warning: NotifyUrls = ()
    critical: NotifyUrls = ()
    repeat_minutes: Annotated[Number, Field(ge=0, le=10_080)] = 60
    group_seconds: Annotated[Number, Field(ge=0, le=3_600)] = 30
    max_per_hour: Annotated[WholeNumber, Field(ge=1)] = 20

    def targets_of(self, level: Level) -> tuple[SecretStr, ...]:
        """Who is told of this level: its own list, else the nearest other one, the higher first.

        So what needs a person reaches one with any list filled in, and what is only for information nobody who did
        not ask for it.
        """
        match level:
            case Level.INFO:
                return self.info
            case Level.WARNING:
                return self.warning or self.critical or self.info
            case Level.CRITICAL:
                return self.critical or self.warning or self.info


class Retention(Section):
    """How long a cycle is kept once it is over, and how much of each kind; ``None`` is as much as there is.

    A day at least: what was spent and fired today has to be known.
    """

    messages_days: Days = 30
    records_days: Days = 365
    archives_days: Days = 365
    messages_mb: PositiveNumber | None = None
    records_mb: PositiveNumber | None = None
    archives_mb: PositiveNumber | None = None


class Service(Section):
    """How much `opsladder run` does at a time."""

    max_running: Annotated[WholeNumber, Field(ge=1)] = 4
    drain_seconds: PositiveNumber = 60


class Web(Section):
    """Where the pages are served."""

    host: Name = "127.0.0.1"
    port: Annotated[WholeNumber, Field(ge=0, le=65535)] = 8765
    token: Secret | None = None


class Tier(Section):
    """One rung of the ladder. Its number is its position, from 1; only the first has no ``escalation_prompt``.

    What its guard rules are by default depends on its position, so ``settings.load`` fills them in.
    """

    name: Name
    model: ModelName
    prompt: PromptName
    escalation_prompt: PromptName | None = None
    tools: ToolNames = READING_TOOLS
    disallowed_tools: tuple[ToolPattern, ...] = DEFAULT_DISALLOWED_TOOLS
    timeout_minutes: PositiveNumber = 20
    max_turns: Annotated[WholeNumber, Field(ge=1)] = 60
    max_budget_usd: PositiveNumber | None = None
    rule_sets: tuple[Name, ...] = ("read-only",)
    allow: tuple[AllowPattern, ...] = ()
    approve: tuple[ApprovePattern, ...] = ()
    deny: tuple[DenyPattern, ...] = ()
    default: Literal["deny", "approve"] = "deny"
    opaque: Literal["deny", "approve"] = "deny"


class Schedule(Section):
    """When a cycle starts, and what it is told about the place it looks after. Without a time: started by hand."""

    name: ScheduleName
    cron: CronLine | None = None
    every: Duration | None = None
    timezone: TimeZone = "UTC"
    jitter_seconds: Annotated[WholeNumber, Field(ge=0, le=86_400)] = 0
    overlap: Literal["skip", "queue"] = "skip"
    misfire: Literal["skip", "once"] = "once"
    misfire_grace_seconds: Annotated[WholeNumber, Field(ge=1, le=86_400)] = 60
    blackout: tuple[BlackoutWindow, ...] = ()
    environment_text: TextOrFile = Field(default="", alias="environment")
    ping_url: PingUrl | None = None


class Document(Section):
    """A whole ``opsladder.toml``, completed by ``settings.load`` so that every section is there."""

    model_config = ConfigDict(defer_build=False)

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
    tiers: Annotated[tuple[Tier, ...], AfterValidator(not_empty)]
    schedules: Annotated[tuple[Schedule, ...], AfterValidator(not_empty)]


DEFAULT_TIERS: Final[tuple[Mapping[str, object], ...]] = (
    {"name": "observe", "model": "haiku", "prompt": "tier1.md", "timeout_minutes": 10, "max_turns": 40},
    {"name": "repair", "model": "sonnet", "prompt": "tier2.md", "timeout_minutes": 20, "max_turns": 60},
    {
        "name": "rebuild",
        "model": "opus",
        "prompt": "tier3.md",
        "tools": [*READING_TOOLS, "Edit", "Write"],
        "timeout_minutes": 30,
        "max_turns": 80,
    },
)
# By position; a higher tier has the last of these. Above the third there is nobody left to escalate to but a person, so
# what no rule knows is put before one instead of being refused.
DEFAULT_RULES: Final[tuple[Mapping[str, object], ...]] = (
    {"rule_sets": ["read-only"], "default": "deny", "opaque": "deny"},
    {"rule_sets": ["read-only", "remedies"], "default": "deny", "opaque": "deny"},
    {"rule_sets": ["read-only", "remedies", "repairs"], "default": "approve", "opaque": "approve"},
)
DEFAULT_SCHEDULES: Final[tuple[Mapping[str, object], ...]] = ({"name": "default"},)
