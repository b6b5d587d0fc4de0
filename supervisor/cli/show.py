"""`opsladder chains`, `chain` and `cost`: what happened and what it cost. Reads the store. Called from ``app``."""

import datetime as dt
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.cli import words
from supervisor.errors import NotFound, UsageError
from supervisor.model.cycle import Chain, CycleStatus
from supervisor.model.document import chain_document, timestamp
from supervisor.settings import Settings, settings_from_process

if TYPE_CHECKING:
    from supervisor.store import Store

_AGE = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def existing_store(settings: Settings) -> "Store | None":
    """The store as it is; ``None`` where nothing has been recorded yet. Looking never creates anything."""
    from supervisor.store import open_store

    url = settings.database_url()
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///").split("?")[0]).exists():
        return None
    return open_store(url, create=False)


def show_chains(config: Path | None, *, limit: int, status: str | None, as_json: bool) -> None:
    wanted = _status(status)
    store = existing_store(settings_from_process(config))
    found = store.chains(limit, status=wanted) if store else []
    if as_json:
        print(json.dumps({"schema": "opsladder.chains/1", "chains": [chain_document(c) for c in found]}))
        return
    if not found:
        print("No cycle has run yet." if wanted is None else f"No cycle is {wanted.value}.")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("cycle", "started (UTC)", "schedule", "status", "tiers", "records", "cost", "took"):
        table.add_column(heading, justify="right" if heading in ("cycle", "cost", "took") else "left", no_wrap=True)
    table.add_column("what", overflow="ellipsis", no_wrap=True)
    for chain in found:
        table.add_row(*_row(chain))
    Console().print(table)


def _row(chain: Chain) -> list[str]:
    cycle = chain.cycle
    sign, colour = words.CYCLE_SIGNS[cycle.status]
    return [
        str(cycle.id),
        cycle.started_at.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M"),
        cycle.schedule,
        f"[{colour}]{sign} {cycle.status.value}[/]" + (f" ({cycle.reason})" if cycle.reason else ""),
        "→".join(dict.fromkeys(str(s.tier) for s in chain.sessions)) or "-",
        ",".join(str(s.id) for s in chain.sessions) or "-",
        words.money(chain.cost_usd, exact=chain.cost_is_exact) if chain.sessions else "-",
        words.duration(chain.duration_seconds),
        words.one_line(cycle.detail or "", 200).replace("[", r"\["),
    ]


def show_chain(config: Path | None, *, record: int | None, cycle: int | None, as_json: bool) -> None:
    if (record is None) == (cycle is None):
        raise UsageError(
            "Name a chain either by a session record or with --cycle.", remedy="`opsladder chains` lists both."
        )
    store = existing_store(settings_from_process(config))
    if store is None:
        raise NotFound("No cycle has run yet.")
    chain = store.chain(cycle) if cycle is not None else store.chain_of(record or 0)
    if as_json:
        print(json.dumps(chain_document(chain)))
        return
    from rich.console import Console

    from supervisor.cli.tree import chain_tree

    Console().print(chain_tree(chain))


def show_cost(config: Path | None, *, since: str | None, by: str, as_json: bool) -> None:
    from supervisor.store import CostBy

    try:
        grouping = CostBy(by)
    except ValueError:
        raise UsageError(f"Cost cannot be shown by {by!r}.", remedy=f"Use one of {', '.join(CostBy)}.") from None
    start = moment(since, now=dt.datetime.now(dt.UTC)) if since else None
    store = existing_store(settings_from_process(config))
    rows = store.cost(start, grouping) if store else []
    if as_json:
        document = {
            "schema": "opsladder.cost/1",
            "since": timestamp(start),
            "by": grouping.value,
            "total_usd": sum(r.cost_usd for r in rows if r.cost_usd is not None) if rows else 0.0,
            "rows": [
                {
                    grouping.value: row.key,
                    "cost_usd": row.cost_usd,
                    "sessions": row.sessions,
                    "estimated": row.estimated,
                    "unknown": row.unknown,
                    "input_tokens": row.tokens.input,
                    "output_tokens": row.tokens.output,
                    "cache_read_tokens": row.tokens.cache_read,
                    "cache_write_tokens": row.tokens.cache_write,
                }
                for row in rows
            ],
        }
        print(json.dumps(document))
        return
    if not rows:
        print("Nothing was spent.")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(grouping.value)
    for heading in ("cost", "sessions", "read", "cached", "written", "notes"):
        table.add_column(heading, justify="right" if heading != "notes" else "left")
    for row in rows:
        notes = [f"{n} {what}" for n, what in ((row.estimated, "estimated"), (row.unknown, "of unknown cost")) if n]
        table.add_row(
            row.key,
            words.money(row.cost_usd, exact=not row.estimated),
            str(row.sessions),
            words.count(row.tokens.read),
            words.count(row.tokens.cache_read),
            words.count(row.tokens.output),
            ", ".join(notes),
        )
    table.add_section()
    known = [r.cost_usd for r in rows if r.cost_usd is not None]
    table.add_row("total", words.money(sum(known) if known else None), str(sum(r.sessions for r in rows)))
    Console().print(table)


def moment(text: str, *, now: dt.datetime) -> dt.datetime:
    """``7d``, ``12h`` and the like before now, or a date or time."""
    age = _AGE.fullmatch(text.strip())
    try:
        if age:
            return now - dt.timedelta(**{_UNITS[age[2]]: int(age[1])})
        parsed = dt.datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is not a time.", remedy="Write 7d, 12h, 30m or 2026-11-01.") from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=dt.UTC)


def _status(text: str | None) -> CycleStatus | None:
    if text is None:
        return None
    try:
        return CycleStatus(text)
    except ValueError:
        raise UsageError(f"There is no status {text!r}.", remedy=f"There is: {', '.join(CycleStatus)}.") from None
