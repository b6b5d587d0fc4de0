"""`opsladder services`: how services are, and what is in cooldown. Reads the store. Called from ``app``."""

import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path

from supervisor.cli import words
from supervisor.cli.show import existing_store
from supervisor.model.document import service_document
from supervisor.model.guarding import CooldownUse, ServiceRecord
from supervisor.settings import settings_from_process

_SIGNS = {
    None: ("·", "bright_black"),
    "healthy": ("✓", "green"),
    "degraded": ("!", "yellow"),
    "down": ("✗", "red"),
    "unreachable": ("✗", "red"),
}


def show_services(config: Path | None, *, as_json: bool) -> None:
    settings = settings_from_process(config)
    store = existing_store(settings)
    found = store.services(settings.cooldown_limits()) if store else []
    if as_json:
        print(json.dumps({"schema": "opsladder.services/1", "services": [service_document(s) for s in found]}))
    elif found:
        _print(found, dt.datetime.now(dt.UTC))
    else:
        print("No service was reported or acted on yet.")


def _print(found: Sequence[ServiceRecord], now: dt.datetime) -> None:
    """The figures in columns, then what is not allowed for now, which is too long for a column."""
    from rich.table import Table
    from rich.text import Text

    from supervisor.cli.screen import Screen

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("service", overflow="fold")
    for heading in ("status", "since (UTC)", "streak", "restarts", "redeploys"):
        table.add_column(heading, no_wrap=True)
    for service in found:
        status = service.status.value if service.status else None
        sign, style = _SIGNS[status]
        table.add_row(
            Text(words.one_line(service.name, 60)),
            Text(f"{sign} {status or 'never reported'}", style),
            f"{service.since:%Y-%m-%d %H:%M}" if service.since else "-",
            str(service.healthy_streak),
            *(Text(f"{use.used} of {use.limit.max}", "" if use.left else "yellow") for use in service.cooldowns),
        )
    screen = Screen()
    screen.print(table)
    for use in (use for service in found for use in service.cooldowns):
        if use.next_at is not None:
            screen.hang(Text("! ", "yellow"), Text(_in_cooldown(use, use.next_at, now)))


def _in_cooldown(use: CooldownUse, until: dt.datetime, now: dt.datetime) -> str:
    left = words.duration(max(0.0, (until - now).total_seconds()))
    name = words.one_line(use.service, 60)
    return f"{name} is in cooldown: no {use.kind.value} before {until:%Y-%m-%d %H:%M} UTC, {left} from now."
