"""What `opsladder doctor` finds out about the guard: its rules, and what it holds up. Reads files and the store.

Called from ``doctor``.
"""

import datetime as dt
from collections.abc import Iterator

from supervisor import shipped
from supervisor.cli import words
from supervisor.cli.findings import Finding, Grade, ok
from supervisor.cli.show import existing_store
from supervisor.errors import ConfigError, SchemaOutdated
from supervisor.model.cycle import Chain, CycleStatus
from supervisor.model.guarding import SwitchState
from supervisor.settings import Settings

SWITCH = "switch"
_PAUSED_SHOWN = 20


def rules(settings: Settings) -> Finding:
    """Whether the rules of every tier can be read, and what becomes of a call that none of them knows."""
    lines = []
    for number, tier in enumerate(settings.tiers, start=1):
        try:
            read = settings.rules_for(number)
        except ConfigError as error:
            remedy = error.remedy or f"Correct it. {shipped.CONFIG / 'rules.toml'} explains sets and patterns."
            return Finding(check="rules", grade=Grade.PROBLEM, detail=error.message, remedy=remedy)
        lines.append(
            f"tier {number} {tier.name}: {words.several(len(read.rules), 'rule')}, "
            f"default {read.default.value}, opaque {read.opaque.value}"
        )
    return ok("rules", "\n".join(lines))


def waiting(settings: Settings) -> list[Finding]:
    """What keeps cycles from running until a person does something. The database is known to be usable."""
    try:
        return list(_waiting(settings))
    except SchemaOutdated:
        # The next cycle brings it up to date, and is not held up by what an older one could not record.
        return []


def _waiting(settings: Settings) -> Iterator[Finding]:
    store = existing_store(settings)
    if store is None:
        return
    with store:
        switch = store.switch()
        asked = store.pending_approvals(dt.datetime.now(dt.UTC))
        paused = store.chains(_PAUSED_SHOWN, CycleStatus.PAUSED)
    if switch.paused:
        yield Finding(check=SWITCH, grade=Grade.WARNING, detail=_paused(switch), remedy="`opsladder unpause` ends it.")
    if asked:
        numbers = ", ".join(str(approval.id) for approval in asked)
        calls = f"{words.several(len(asked), 'tool call')} wait{'s' if len(asked) == 1 else ''}"
        yield Finding(
            check="approvals",
            grade=Grade.WARNING,
            detail=f"{calls} for a person: {numbers}",
            remedy="`opsladder approvals` shows what each would do, and how to answer.",
        )
    for chain in paused:
        yield _paused_cycle(settings, chain)


def _paused_cycle(settings: Settings, chain: Chain) -> Finding:
    cycle = chain.cycle
    detail = f"cycle {cycle.id} of {cycle.schedule} is paused ({cycle.reason}); no other one begins before it"
    remedy = f"To go on: {words.way_on(cycle)}."
    if not settings.has_schedule(cycle.schedule):
        detail = f"cycle {cycle.id} is paused ({cycle.reason}), and there is no schedule {cycle.schedule} any more"
        remedy = "Configure it again, if the cycle is to go on."
        if chain.sessions:
            remedy += f" `opsladder stop {chain.sessions[-1].id}` ends it."
    return Finding(check="paused", grade=Grade.WARNING, detail=detail, remedy=remedy)


def _paused(switch: SwitchState) -> str:
    at = f" at {switch.at.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC" if switch.at else ""
    by = f" by {switch.by}" if switch.by else ""
    why = f": {switch.reason}" if switch.reason else ""
    return f"paused{by}{at}{why}"
