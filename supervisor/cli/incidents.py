"""`opsladder incidents`, `incident` and `reset`: trouble over several cycles. Reads and writes the store.

Called from ``app``. Only `reset` writes, and only keys: no record is ever lost by it.
"""

import datetime as dt
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.cli import words
from supervisor.cli.show import existing_store, find, recorded
from supervisor.decide.incident import CLOSES_AFTER_CYCLES, listed
from supervisor.errors import ConfigError, NotFound, UsageError
from supervisor.model.cycle import Chain
from supervisor.model.document import incident_document, incident_fields
from supervisor.model.incident import Incident, IncidentStatus, IncidentTotal
from supervisor.model.session import Session
from supervisor.settings import Settings, settings_from_process

if TYPE_CHECKING:
    from supervisor.cli.screen import Screen
    from supervisor.store import Store

_SIGNS = {IncidentStatus.OPEN: ("✗", "red"), IncidentStatus.CLOSED: ("✓", "green")}
_LARGEST_LIMIT = 2**63 - 1
_CYCLES_SHOWN = 50
_NAME_LIMIT = 60


def show_incidents(config: Path | None, *, limit: int, status: str | None, as_json: bool) -> None:
    wanted = _status(status)
    store = existing_store(settings_from_process(config))
    found = store.incidents(min(limit, _LARGEST_LIMIT), status=wanted) if store else []
    totals = store.incident_totals([incident.id for incident in found]) if store else {}
    if as_json:
        incidents = [incident_fields(incident, totals[incident.id]) for incident in found]
        print(json.dumps({"schema": "opsladder.incidents/1", "incidents": incidents}))
    elif found:
        _print_incidents(found, totals, dt.datetime.now(dt.UTC))
    else:
        print("No incident was found yet." if wanted is None else f"No incident is {wanted.value}.")


def show_incident(config: Path | None, *, incident_id: int, as_json: bool) -> None:
    store = recorded(settings_from_process(config))
    incident = _find(store, incident_id)
    total = store.incident_totals([incident.id])[incident.id]
    chains = store.incident_chains(incident.id, _CYCLES_SHOWN)
    kept = store.kept_sessions(incident.schedule, incident.id)
    if as_json:
        print(json.dumps(incident_document(incident, total, chains, kept)))
        return
    from supervisor.cli.screen import Screen

    screen = Screen()
    _print_head(screen, incident, total, kept, dt.datetime.now(dt.UTC))
    _print_timeline(screen, chains, total)


def reset(config: Path | None, *, schedule: str | None, incident_id: int | None) -> None:
    """Forget kept sessions, so that the next cycle begins with a fresh conversation."""
    settings = settings_from_process(config)
    store = existing_store(settings) if incident_id is None else recorded(settings)
    if store is not None and incident_id is not None:
        incident = _find(store, incident_id)
        if schedule not in (None, incident.schedule):
            raise UsageError(f"Incident {incident.id} is of the schedule {incident.schedule}, not of {schedule}.")
        schedule = incident.schedule
    elif schedule is not None:
        _check_schedule(settings, store, schedule)
    dropped = store.drop_sessions(schedule, incident_id) if store else 0
    of = f" of incident {incident_id}" if incident_id is not None else f" of {schedule}" if schedule else ""
    if dropped:
        print(f"Dropped {words.several(dropped, 'kept session')}{of}.")
        print("The next cycle begins a fresh conversation.")
    else:
        print(f"No session{of} was kept, so nothing was dropped.")


def _find(store: "Store", incident_id: int) -> Incident:
    try:
        return find(store.incident, incident_id)
    except NotFound as error:
        raise NotFound(error.message, remedy="`opsladder incidents` lists them.") from error


def _check_schedule(settings: Settings, store: "Store | None", name: str) -> None:
    """A schedule that is no longer configured can still have sessions kept."""
    try:
        settings.schedule(name)
    except ConfigError:
        if store is None or not store.incidents(1, schedule=name):
            raise


def _status(text: str | None) -> IncidentStatus | None:
    if text is None:
        return None
    try:
        return IncidentStatus(text)
    except ValueError:
        raise UsageError(
            f"There is no status {text!r}.", remedy=f"An incident is {' or '.join(IncidentStatus)}."
        ) from None


def _print_incidents(found: Sequence[Incident], totals: Mapping[int, IncidentTotal], now: dt.datetime) -> None:
    """Two lines each: the figures in columns, then what is to be said of it."""
    from rich.text import Text

    from supervisor.cli.screen import Screen

    headings = ("incident", "status", "opened (UTC)", "lasted", "cycles", "cost", "schedule")
    rows = [_row(incident, totals[incident.id], now) for incident in found]
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    screen = Screen()
    screen.print(Text(_in_columns(headings, widths), "bold"), highlight=False)
    for incident, row in zip(found, rows, strict=True):
        line = Text(_in_columns(row, widths))
        line.highlight_words([row[1]], _SIGNS[incident.status][1])
        screen.print(line, highlight=False)
        screen.hang(Text(" " * (widths[0] + 2)), Text(f"{_services(incident)}{_state(incident)}", "italic"))


def _row(incident: Incident, total: IncidentTotal, now: dt.datetime) -> tuple[str, ...]:
    return (
        str(incident.id),
        f"{_SIGNS[incident.status][0]} {incident.status.value}",
        _time(incident.opened_at),
        words.duration(_lasted(incident, now)),
        str(total.cycles),
        _cost(total),
        incident.schedule,
    )


def _in_columns(cells: Sequence[str], widths: Sequence[int]) -> str:
    number, status, opened, lasted, cycles, cost, schedule = (
        cell.ljust(width) if place in (1, 2, 6) else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([number, status, opened, lasted, cycles, cost, schedule]).rstrip()


def _state(incident: Incident) -> str:
    """Where an incident is between open and closed, if there is anything to say of it."""
    said = []
    if incident.reopened:
        said.append(f"came back {_times(incident.reopened)}")
    if incident.status is IncidentStatus.OPEN and incident.healthy_streak:
        said.append(f"{words.several(incident.healthy_streak, 'cycle')} without it since")
    return f" ({', '.join(said)})" if said else ""


def _print_head(
    screen: "Screen", incident: Incident, total: IncidentTotal, kept: Sequence[Session], now: dt.datetime
) -> None:
    from rich.text import Text

    sign, colour = _SIGNS[incident.status]
    screen.print(
        Text.assemble(
            (f"Incident {incident.id} ", "bold"),
            f"{incident.schedule} ",
            (f"{sign} {incident.status.value}", colour),
            (f"  {_cost(total)}", "bold"),
            f"  {words.duration(_lasted(incident, now))}",
        ),
        highlight=False,
    )
    for name, text in _facts(incident, total, kept):
        screen.hang(Text(f"  {name:<8} ", "bright_black"), Text(text))


def _facts(incident: Incident, total: IncidentTotal, kept: Sequence[Session]) -> Iterator[tuple[str, str]]:
    yield "services", _services(incident)
    yield "opened", f"{_time(incident.opened_at)} UTC"
    if incident.reopened:
        yield "again", f"its trouble came back {_times(incident.reopened)} after it was closed"
    if incident.closed_at is not None:
        yield "closed", f"{_time(incident.closed_at)} UTC, after {CLOSES_AFTER_CYCLES} cycles without its trouble"
    else:
        left = CLOSES_AFTER_CYCLES - incident.healthy_streak
        more = f"{left} more cycle{'' if left == 1 else 's'}"
        yield "trouble", f"last seen {_time(incident.updated_at)} UTC; closes after {more} without it"
    yield "cost", f"{_cost(total)} in {words.several(total.cycles, 'cycle')}, {words.several(total.sessions, 'record')}"
    if kept:
        records = ", ".join(f"record {s.id} (tier {s.tier})" for s in kept)
        yield "kept", f"{records}, to be resumed; `opsladder reset --incident {incident.id}` drops them"
    elif incident.status is IncidentStatus.OPEN:
        yield "kept", "no session, so the next cycle begins a fresh conversation"


def _print_timeline(screen: "Screen", chains: Sequence[Chain], total: IncidentTotal) -> None:
    from rich.text import Text

    missing = total.cycles - len(chains)
    if missing > 0:
        screen.print(f"\n… {words.several(missing, 'earlier cycle')} not shown", highlight=False)
    for chain in chains:
        cycle = chain.cycle
        sign, colour = words.CYCLE_SIGNS[cycle.status]
        head = Text.assemble(
            (f"\n{_time(cycle.started_at)}  ", "bright_black"),
            (f"Cycle {cycle.id} ", "bold"),
            (f"{sign} {cycle.status.value}", colour),
            f" ({cycle.reason})" if cycle.reason else "",
            f"  {_tiers(chain)}",
            (f"  {words.money(chain.cost_usd, exact=chain.cost_is_exact)}", "bold") if chain.sessions else "",
        )
        screen.print(head, highlight=False)
        margin = Text("  ")
        if cycle.detail:
            screen.hang(margin, Text(words.one_line(cycle.detail, 300), "italic"))
        for line, succeeded in _actions(chain):
            done, style = ("✓", "green") if succeeded else ("✗", "red")
            screen.hang(Text.assemble("  ", (f"{done} ", style)), Text(line))


def _tiers(chain: Chain) -> str:
    tiers = sorted({s.tier for s in chain.sessions})
    if not tiers:
        return "no tier"
    return f"tier {tiers[0]}" if len(tiers) == 1 else f"tiers {tiers[0]}-{tiers[-1]}"


def _actions(chain: Chain) -> Iterator[tuple[str, bool]]:
    """What was done, as the agents reported it, and whether it worked."""
    for session in chain.sessions:
        for action in session.report.actions if session.report else ():
            command = f": {words.one_line(action.command, 160)}" if action.command else ""
            what = f"{words.one_line(action.kind, 40)} {words.one_line(action.service, _NAME_LIMIT)}"
            yield f"tier {session.tier} {what}{command}{'' if action.succeeded else ' (failed)'}", action.succeeded


def _services(incident: Incident) -> str:
    return listed([words.one_line(name, _NAME_LIMIT) for name in incident.services])


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _cost(total: IncidentTotal) -> str:
    return words.money(total.cost_usd, exact=total.cost_is_exact, unknown="unknown") if total.sessions else "-"


def _lasted(incident: Incident, now: dt.datetime) -> float:
    return max(0.0, ((incident.closed_at or now) - incident.opened_at).total_seconds())


def _time(at: dt.datetime) -> str:
    return f"{at.astimezone(dt.UTC):%Y-%m-%d %H:%M}"
