"""`opsladder services`: how services are, and what is in cooldown. Reads the store. Called from ``app``."""

import json
from collections.abc import Iterable
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
        _print(found)
    else:
        print("No service was reported or acted on yet.")


def _print(found: Iterable[ServiceRecord]) -> None:
    from rich.table import Table
    from rich.text import Text

    from supervisor.cli.screen import Screen

    table = Table(box=None, pad_edge=False)
    for heading in ("service", "status", "since (UTC)", "healthy cycles", "restarts", "redeployments"):
        table.add_column(heading, overflow="fold")
    for service in found:
        status = service.status.value if service.status else None
        sign, style = _SIGNS[status]
        table.add_row(
            Text(words.one_line(service.name, 60)),
            Text(f"{sign} {status or 'never reported'}", style),
            f"{service.since:%Y-%m-%d %H:%M}" if service.since else "-",
            str(service.healthy_streak),
            *(Text(_used(use), "yellow" if use.next_at else "") for use in service.cooldowns),
        )
    Screen().print(table)


def _used(use: CooldownUse) -> str:
    until = f", next {use.next_at:%m-%d %H:%M}" if use.next_at else ""
    return f"{use.used} of {use.limit.max}{until}"
