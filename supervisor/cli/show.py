"""`opsladder chains`, `chain` and `cost`: what happened and what it cost. Reads the store. Called from ``app``."""

import datetime as dt
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from supervisor.cli import words
from supervisor.errors import NotFound, UsageError
from supervisor.model.cycle import Chain, CycleStatus, Event, EventKind
from supervisor.model.document import chain_document, event_document, timestamp
from supervisor.settings import Settings, settings_from_process

if TYPE_CHECKING:
    from rich.text import Text

    from supervisor.store import CostBy, CostRow, Store

_Found = TypeVar("_Found")

_AGE = re.compile(r"(\d+)([smhd])")
_LARGEST_ID = 2**63 - 1
_OF_CYCLES = (EventKind.DECISION, EventKind.HANDOFF, EventKind.NOTICE)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def existing_store(settings: Settings) -> "Store | None":
    """The store as it is; ``None`` where nothing has been recorded yet. Looking never creates anything."""
    from supervisor.store import open_store

    url = settings.database_url()
    return None if _is_missing_file(url) else open_store(url, create=False)


def _is_missing_file(url: str) -> bool:
    scheme, _, path = url.partition("///")
    try:
        return scheme == "sqlite:" and not Path(path.split("?")[0]).exists()
    except OSError:
        # The store says why it cannot be looked at.
        return False


def recorded(settings: Settings) -> "Store":
    """The store of someone who asks for a record: there has to be one."""
    store = existing_store(settings)
    if store is None:
        raise NotFound("No cycle has run yet.", remedy="`opsladder cycle` runs one, `opsladder demo` shows one.")
    return store


def find(look_up: Callable[[int], _Found], number: int) -> _Found:
    """A cycle or a session record by its number."""
    remedy = "`opsladder chains` lists cycles and records."
    if not 0 < number <= _LARGEST_ID:
        raise NotFound(f"There is no number {number}.", remedy=remedy)
    try:
        return look_up(number)
    except NotFound as error:
        raise NotFound(error.message, remedy=remedy) from error


def show_chains(config: Path | None, *, limit: int, status: str | None, as_json: bool) -> None:
    wanted = _status(status)
    store = existing_store(settings_from_process(config))
    found = store.chains(min(limit, _LARGEST_ID), status=wanted) if store else []
    if as_json:
        print(json.dumps({"schema": "opsladder.chains/1", "chains": [chain_document(c) for c in found]}))
    elif found:
        _print_chains(found)
    else:
        print("No cycle has run yet." if wanted is None else f"No cycle is {wanted.value}.")


def _print_chains(chains: Sequence[Chain]) -> None:
    """Two lines each: the figures in columns, then what is to be said of it."""
    from rich.text import Text

    from supervisor.cli.screen import Screen

    headings = ("cycle", "started (UTC)", "schedule", "status", "tier", "records", "cost", "took")
    rows = [_row(chain) for chain in chains]
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    screen = Screen()
    screen.print(Text(_in_columns(headings, widths), "bold"))
    for chain, row in zip(chains, rows, strict=True):
        line = Text(_in_columns(row, widths))
        line.highlight_words([row[3]], words.CYCLE_SIGNS[chain.cycle.status][1])
        screen.print(line, highlight=False)
        screen.hang(Text(" " * (widths[0] + 2)), _said_of(chain))


def _in_columns(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *middle, cost, took = (
        cell.ljust(width) if 0 < number < len(cells) - 2 else cell.rjust(width)
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([first, *middle, cost, took])


def _row(chain: Chain) -> tuple[str, ...]:
    cycle = chain.cycle
    return (
        str(cycle.id),
        f"{cycle.started_at.astimezone(dt.UTC):%Y-%m-%d %H:%M}",
        cycle.schedule,
        f"{words.CYCLE_SIGNS[cycle.status][0]} {cycle.status.value}",
        str(max((s.tier for s in chain.sessions), default="-")),
        words.numbers([s.id for s in chain.sessions]),
        words.money(chain.cost_usd, exact=chain.cost_is_exact, unknown="unknown") if chain.sessions else "-",
        words.duration(chain.duration_seconds),
    )


def _said_of(chain: Chain) -> "Text":
    from rich.text import Text

    cycle = chain.cycle
    said = Text("dry run, " if cycle.dry_run and cycle.reason != "dry_run" else "", "yellow")
    said.append(f"{cycle.reason}: " if cycle.reason else "", "bold")
    return said.append(words.one_line(cycle.detail or "", 200), "italic")


def show_chain(config: Path | None, *, record: int | None, cycle: int | None, as_json: bool) -> None:
    if (record is None) == (cycle is None):
        raise UsageError(
            "Name a chain either by a session record or with --cycle.", remedy="`opsladder chains` lists both."
        )
    store = recorded(settings_from_process(config))
    chain = find(store.chain, cycle) if cycle is not None else find(store.chain_of, record or 0)
    events = [event for one in chain.cycles for event in store.events(cycle_id=one.id, kinds=_OF_CYCLES)]
    events = [event for event in events if event.session_id is None]
    if as_json:
        print(json.dumps({**chain_document(chain), "events": [event_document(event) for event in events]}))
        return
    from rich.text import Text

    from supervisor.cli.screen import Screen
    from supervisor.cli.tree import chain_tree

    screen = Screen()
    screen.print(chain_tree(chain))
    for event in events:
        if event.kind is EventKind.NOTICE and not _is_an_end(event, chain):
            screen.print(Text.assemble(("! ", "yellow"), words.harmless(event.text)), highlight=False)


def _is_an_end(event: Event, chain: Chain) -> bool:
    """Whether a notice tells how a cycle ended, which the tree does, or that it once waited, which is past."""
    return "status" in event.data or event.text == chain.cycle.detail


def show_cost(config: Path | None, *, since: str | None, by: str, as_json: bool) -> None:
    from supervisor.store import CostBy

    try:
        grouping = CostBy(by)
    except ValueError:
        raise UsageError(f"Cost cannot be shown by {by!r}.", remedy=f"Use one of {', '.join(CostBy)}.") from None
    start = None if since is None else moment(since, now=dt.datetime.now(dt.UTC))
    store = existing_store(settings_from_process(config))
    rows = store.cost(start, grouping) if store else []
    if as_json:
        document = {
            "schema": "opsladder.cost/1",
            "since": timestamp(start),
            "by": grouping.value,
            "total_usd": _total(rows),
            "total_is_exact": _is_exact(rows),
            "rows": [_cost_document(row, grouping) for row in rows],
        }
        print(json.dumps(document))
    elif rows:
        _print_costs(rows, grouping)
    else:
        print("Nothing was spent.")


def _total(rows: Sequence["CostRow"]) -> float | None:
    """What is known to be spent; ``None`` when there is something and the cost of none of it is known."""
    known = [row.cost_usd for row in rows if row.cost_usd is not None]
    return sum(known, start=0.0) if known or not rows else None


def _is_exact(rows: Iterable["CostRow"]) -> bool:
    return not any(row.estimated or row.unknown for row in rows)


def _cost_document(row: "CostRow", grouping: "CostBy") -> dict[str, object]:
    return {
        grouping.value: int(row.key) if grouping.value == "tier" else row.key,
        "cost_usd": row.cost_usd,
        "sessions": row.sessions,
        "estimated": row.estimated,
        "unknown": row.unknown,
        "input_tokens": row.tokens.input,
        "output_tokens": row.tokens.output,
        "cache_read_tokens": row.tokens.cache_read,
        "cache_write_tokens": row.tokens.cache_write,
    }


def _print_costs(rows: Sequence["CostRow"], grouping: "CostBy") -> None:
    from rich.table import Table

    from supervisor.cli.screen import Screen

    notes = [_note(row) for row in rows]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(grouping.value, overflow="fold")
    for heading in ("cost", "sessions", "tokens read", "from cache", "written"):
        table.add_column(heading, justify="right", no_wrap=True)
    if any(notes):
        table.add_column("")
    for row, note in zip(rows, notes, strict=True):
        cost = words.money(row.cost_usd, exact=_is_exact([row]), unknown="unknown")
        tokens = [words.count(number) for number in (row.tokens.read, row.tokens.cache_read, row.tokens.output)]
        table.add_row(row.key, cost, str(row.sessions), *tokens, *([note] if any(notes) else []))
    total = words.money(_total(rows), exact=_is_exact(rows), unknown="unknown")
    table.add_row("total", total, str(sum(row.sessions for row in rows)), style="bold")
    Screen().print(table)


def _note(row: "CostRow") -> str:
    counts = ((row.estimated, "estimated"), (row.unknown, "of unknown cost"))
    return ", ".join(f"{number} {what}" for number, what in counts if number)


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
