"""`opsladder schedules`: when each schedule fires, and what became of the last time. Reads the store. From ``app``."""

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.cli import words
from supervisor.cli.show import existing_store
from supervisor.model.cycle import Cycle
from supervisor.model.document import timestamp
from supervisor.settings import Schedule, Settings, settings_from_process

if TYPE_CHECKING:
    from rich.text import Text

    from supervisor.decide.firing import FiringPolicy
    from supervisor.store import Store

# So many windows at most that hold a start back one after the other, and none is longer than a week.
_LOOKED_AHEAD = 100
_MINUTE = dt.timedelta(minutes=1)
_LONGEST_WINDOW = dt.timedelta(days=8)
_TIME_WIDTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    schedule: Schedule
    next_at: dt.datetime | None
    last: Cycle | None
    missed: int


def show_schedules(config: Path | None, *, as_json: bool) -> None:
    settings = settings_from_process(config)
    rows = _rows(settings, existing_store(settings), dt.datetime.now(dt.UTC))
    if as_json:
        print(json.dumps({"schema": "opsladder.schedules/1", "schedules": [_document(row) for row in rows]}))
    else:
        _print(rows)


def _rows(settings: Settings, store: "Store | None", now: dt.datetime) -> list[_Row]:
    names = [schedule.name for schedule in settings.schedules]
    last = store.last_cycles(names) if store else {}
    missed = store.missed_fires() if store else {}
    return [
        _Row(
            schedule=schedule,
            next_at=next_start(settings, schedule, now),
            last=last.get(schedule.name),
            missed=missed.get(schedule.name, 0),
        )
        for schedule in settings.schedules
    ]


def next_start(settings: Settings, schedule: Schedule, now: dt.datetime) -> dt.datetime | None:
    """When it starts next, for whoever runs the service."""
    if schedule.cron is None and schedule.every is None:
        return None
    # Here, not above: APScheduler is slow to import, and schedules for people do without it.
    from supervisor.service.triggers import ScheduleTimes, place_of, policy_of

    times, policy = ScheduleTimes(schedule, place_of(settings)), policy_of(schedule)
    start = times.next_start(now)
    for _ in range(_LOOKED_AHEAD):
        if start is None or not policy.blacked_out(start):
            return start
        # Not start by start: there can be thousands in one window.
        start = times.next_start(_end_of_blackout(policy, start) - dt.timedelta.resolution)
    return None


def _end_of_blackout(policy: "FiringPolicy", start: dt.datetime) -> dt.datetime:
    """The first full minute after a start that no window covers."""
    moment = start.replace(second=0, microsecond=0) + _MINUTE
    while policy.blacked_out(moment) and moment - start < _LONGEST_WINDOW:
        moment += _MINUTE
    return moment


def _document(row: _Row) -> dict[str, object]:
    schedule, last = row.schedule, row.last
    return {
        "name": schedule.name,
        "cron": schedule.cron,
        "every_seconds": None if schedule.every is None else int(schedule.every.total_seconds()),
        "timezone": schedule.timezone,
        "next_fire_at": timestamp(row.next_at),
        "last": None
        if last is None
        else {
            "cycle": last.id,
            "trigger": last.trigger.value,
            "status": last.status.value,
            "reason": last.reason,
            "started_at": timestamp(last.started_at),
            "ended_at": timestamp(last.ended_at),
        },
        "missed": row.missed,
    }


def _print(rows: Sequence[_Row]) -> None:
    from rich.table import Table

    from supervisor.cli.screen import Screen

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("schedule", overflow="fold")
    table.add_column("when", overflow="fold")
    table.add_column("next (UTC)", no_wrap=True)
    table.add_column("last (UTC)", overflow="fold", min_width=_TIME_WIDTH)
    table.add_column("missed", no_wrap=True, justify="right")
    for row in rows:
        next_at = "-" if row.next_at is None else f"{row.next_at:%Y-%m-%d %H:%M}"
        table.add_row(row.schedule.name, _when(row.schedule), next_at, _last(row.last), str(row.missed))
    Screen().print(table, highlight=False)


def _when(schedule: Schedule) -> str:
    if schedule.cron is not None:
        return f"{schedule.cron}\n{schedule.timezone}"
    if schedule.every is None:
        return "by hand"
    return words.every(schedule.every)


def _last(cycle: Cycle | None) -> "Text":
    """When the last cycle began, and below it how it ended."""
    from rich.text import Text

    if cycle is None:
        return Text("-")
    sign, style = words.CYCLE_SIGNS[cycle.status]
    reason = f" ({words.one_line(cycle.reason, 60)})" if cycle.reason else ""
    return Text(f"{cycle.started_at:%Y-%m-%d %H:%M}\n").append(f"{sign} {cycle.status.value}{reason}", style)
