"""What `opsladder doctor` finds out about standing for years: room, clock, firings, messages, units, the guard at work.

Reads the system and the store, and runs one scripted session in a throw-away place. Called from ``doctor``.
"""

import datetime as dt
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from supervisor.cli.cycle import CycleOptions, climb_once
from supervisor.cli.findings import Finding, Grade, attempt, ok
from supervisor.cli.show import existing_store
from supervisor.errors import OpsladderError, SchemaOutdated
from supervisor.model.permission import Verdict
from supervisor.notify import check_targets
from supervisor.rehearsal.scenario import Scenario, Script, ToolCall, Turn
from supervisor.rehearsal.stage import cued, stage
from supervisor.service.triggers import ScheduleTimes, place_of
from supervisor.service.units import (
    STATE_VARIABLE,
    SYSTEM_CONFIG,
    SYSTEM_PLACE,
    is_masked,
    lacking_in,
    lines_for,
    read_argument,
    started_by,
    units_as_written,
)
from supervisor.settings import Settings
from supervisor.store import open_store

_LITTLE_ROOM = 500 << 20
_LATE = dt.timedelta(minutes=5)
_SERVICE = "opsladder.service"


def standing(settings: Settings) -> list[Finding]:
    """Everything but the guard's trial. The database is known to be usable."""
    findings = [_room(settings), attempt("messages", lambda: _messages(settings)), *_units(), *_service()]
    try:
        return [*findings, *_times(settings, dt.datetime.now(dt.UTC))]
    except SchemaOutdated:
        # The next cycle brings it up to date.
        return findings


def existing(path: Path) -> Path:
    """The path, or what there is of it. What cannot be looked into counts as the end of it."""
    for part in reversed((path, *path.parents)):
        try:
            part.stat()
        except OSError:
            return part.parent
    return path


def _room(settings: Settings) -> Finding:
    place = existing(settings.state.dir)
    try:
        free = shutil.disk_usage(place).free
    except OSError as error:
        return Finding(check="room", grade=Grade.WARNING, detail=f"{place} cannot be looked at: {error.strerror}")
    detail = f"{free / (1 << 30):.1f} GiB are free at {place}"
    if free >= _LITTLE_ROOM:
        return ok("room", detail)
    remedy = "Make room, or let [retention] keep less and run `opsladder sweep`."
    return Finding(check="room", grade=Grade.WARNING, detail=detail, remedy=remedy)


def _messages(settings: Settings) -> Finding:
    check_targets(settings)
    if not settings.tells_anyone:
        return Finding(
            check="messages",
            grade=Grade.WARNING,
            detail="nobody is told of anything",
            remedy="Fill in [notify], then try it with `opsladder notify test`.",
        )
    return ok("messages", "their targets can be read; `opsladder notify test` tries them")


def _units() -> Iterator[Finding]:
    installed = SYSTEM_PLACE / _SERVICE
    if not installed.exists():
        return
    text = _read(installed)
    # Only the rest is compared: where the command and the configuration are is everybody's own business.
    command, config = started_by(text) or (os.devnull, None)
    ours = {unit.name: unit.text for unit in units_as_written(command, user=False, config=config)}
    if text == ours[_SERVICE]:
        yield ok("units", f"{installed} is of this version")
    else:
        yield Finding(
            check="units",
            grade=Grade.WARNING,
            detail=f"{installed} is not of this version",
            remedy="`opsladder systemd install`; what is your own belongs into `systemctl edit opsladder`.",
        )


def _service() -> Iterator[Finding]:
    """Whether the installed service has the records that whoever types a command with its configuration sees."""
    installed = SYSTEM_PLACE / _SERVICE
    if not installed.exists() or is_masked(installed):
        return
    started = started_by(_read(installed))
    config = read_argument(started[1]) if started else SYSTEM_CONFIG
    for file in (installed, *sorted(SYSTEM_PLACE.glob(f"{_SERVICE}.d/*.conf"))):
        if re.search(rf"^Environment=.*\b{STATE_VARIABLE}=", _read(file), re.MULTILINE):
            yield Finding(
                check="service",
                grade=Grade.WARNING,
                detail=f"{file} sets {STATE_VARIABLE}, which commands that a person types do not see",
                remedy=f"{lines_for(config)} Take it out of {file}; `opsladder systemd install` renews the unit.",
            )
            return
    if lacking := lacking_in(config):
        yield Finding(check="service", grade=Grade.WARNING, detail=lacking.what.rstrip("."), remedy=lacking.remedy)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _times(settings: Settings, now: dt.datetime) -> Iterator[Finding]:
    """Whether the clock agrees with the records, and whether schedules fire that should."""
    store = existing_store(settings)
    if store is None:
        return
    with store:
        newest = store.chains(1)
        dealt = store.dealt_until([schedule.name for schedule in settings.schedules])
    if newest and newest[0].cycle.started_at > now + _LATE:
        yield Finding(
            check="clock",
            grade=Grade.WARNING,
            detail=f"it is {now:%Y-%m-%d %H:%M} UTC, and the newest cycle began at "
            f"{newest[0].cycle.started_at:%Y-%m-%d %H:%M} UTC",
            remedy="Set the clock: sessions, cooldowns and budgets go by it.",
        )
    place = place_of(settings)
    for schedule in settings.schedules:
        if schedule.name not in dealt:
            continue
        due = ScheduleTimes(schedule, place).next_after(dealt[schedule.name])
        if due is not None and due < now - _LATE:
            yield Finding(
                check="firings",
                grade=Grade.WARNING,
                detail=f"{schedule.name} was due at {due:%Y-%m-%d %H:%M} UTC and has not fired since",
                remedy="Is `opsladder run` running? `systemctl status opsladder` tells.",
            )


@contextmanager
def _throw_away() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="opsladder-doctor-") as name:
        yield Path(name).resolve()


async def guard_trial(settings: Settings) -> Finding:
    """A call that is off limits on every tier, asked for on the real CLI by a scripted model: it has to be refused."""
    with _throw_away() as directory:
        # To list the records is off limits on every tier, and does no harm should it come to that.
        forbidden = ToolCall(name="Bash", input={"command": f"ls {directory / 'state'}"})
        report = {"summary": "a trial of the guard", "escalation": {"needed": False}}
        script = Script(tier=1, turns=(Turn(text="A trial.", tools=(forbidden,)), Turn(report=report)))
        scenario = Scenario(title="a trial of the guard", scripts=(script,))
        try:
            async with stage(settings, scenario, directory=directory) as (staged, api):
                chain = await climb_once(staged, CycleOptions(max_tier=1), watch=cued(api, lambda _: None))
                with open_store(staged.database_url()) as store:
                    verdicts = [call.verdict for s in chain.sessions for call in store.calls(s.id)]
        except OpsladderError as error:
            return Finding(check="guard", grade=Grade.PROBLEM, detail=error.message, remedy=error.remedy)
    if verdicts == [Verdict.DENY] and not any(s.tools_executed for s in chain.sessions):
        return ok("guard", "a forbidden call on the real CLI was asked about, refused, and did not run")
    last = chain.sessions[-1].detail if chain.sessions else None
    return Finding(
        check="guard",
        grade=Grade.PROBLEM,
        detail=f"a forbidden call was not refused as it has to be. {last or ''}".strip(),
        remedy="Do not run cycles with this CLI. Use another version.",
    )
