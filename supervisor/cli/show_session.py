"""`opsladder session`: one record with all that was said and done in it. Reads the store. Called from ``app``."""

import json
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

from supervisor.cli import words
from supervisor.cli.show import existing_store
from supervisor.cli.tree import session_lines
from supervisor.errors import NotFound
from supervisor.model.cycle import Chain, Event, EventKind
from supervisor.model.document import event_document, resume_saving, session_document
from supervisor.model.report import Level
from supervisor.model.session import UNFINISHED, Session
from supervisor.settings import settings_from_process

_POLL_SECONDS = 0.5
_SHOWN = 2_000

_LABELS = {
    EventKind.PROMPT: ("prompt", "magenta"),
    EventKind.TEXT: ("says", "white"),
    EventKind.TOOL_USE: ("runs", "bold cyan"),
    EventKind.TOOL_RESULT: ("gets", "bright_black"),
    EventKind.API_RETRY: ("api", "yellow"),
    EventKind.RATE_LIMIT: ("limit", "yellow"),
    EventKind.UNREADABLE: ("unreadable", "yellow"),
    EventKind.DECISION: ("decision", "blue"),
    EventKind.HANDOFF: ("handoff", "yellow"),
    EventKind.NOTICE: ("notice", "red"),
}


def show_session(config: Path | None, *, record: int, follow: bool, as_json: bool) -> None:
    """Print the record; with ``follow`` go on until it is over (with ``as_json`` one event a line meanwhile)."""
    store = existing_store(settings_from_process(config))
    if store is None:
        raise NotFound("No cycle has run yet.")
    session = store.session(record)
    events = store.events(session_id=record)
    if not follow:
        chain = store.chain(session.cycle_id)
        if as_json:
            print(json.dumps(session_document(session, chain, events)))
            return
        console = Console()
        console.print(_head(session, chain))
        for event in events:
            _print_event(console, event)
        return
    console = Console()
    while True:
        for event in events:
            if as_json:
                print(json.dumps(event_document(event)), flush=True)
            else:
                _print_event(console, event)
        seen = events[-1].id if events else 0
        if session.status not in UNFINISHED:
            break
        # Following is looking again: the one wait of this command, ended by the session's own end or Ctrl-C.
        time.sleep(_POLL_SECONDS)
        session = store.session(record)
        events = store.events(session_id=record, after_id=seen)
    if not as_json:
        console.print(_head(session, store.chain(session.cycle_id)))


def _head(session: Session, chain: Chain) -> Text:
    facts = [
        f"session id   {session.session_id or 'not known'}",
        f"model        {session.model}" + (f" = {session.model_id}" if session.model_id else ""),
        f"directory    {session.work_dir}",
        f"fixed size   first call read {words.count(session.first_call_tokens)} tokens, "
        f"{session.prompt_bytes or 0} bytes of it our prompt",
    ]
    if session.tokens:
        used = session.tokens
        facts.append(
            f"tokens       {words.count(used.input)} in, {words.count(used.output)} out, "
            f"{words.count(used.cache_read)} from cache, {words.count(used.cache_write)} to cache"
        )
    saving = resume_saving(session, chain)
    if saving:
        facts.append(
            f"resuming     read {saving['read_tokens']} tokens instead of the {saving['fresh_alternative_tokens']} "
            "the tiers before had to read"
        )
    if session.unknown_lines:
        facts.append(f"unreadable   {session.unknown_lines} lines of its output")
    return session_lines(session, [Text(fact, "bright_black") for fact in facts])


def _print_event(console: Console, event: Event) -> None:
    label, style = _LABELS[event.kind]
    failed = bool(event.data.get("is_error")) or event.level is Level.CRITICAL
    text = event.text if len(event.text) <= _SHOWN else f"{event.text[:_SHOWN]}\n… ({len(event.text)} characters)"
    line = Text(f"{event.at:%H:%M:%S} ", "bright_black")
    line.append(f"{label:>10}{' FAILED' if failed else ''}  ", "red" if failed else style)
    name = event.data.get("name")
    if event.kind is EventKind.TOOL_USE and isinstance(name, str):
        line.append(f"{name}: ", "bold")
    line.append(text.replace("\n", "\n" + " " * 21))
    console.print(line, highlight=False)
