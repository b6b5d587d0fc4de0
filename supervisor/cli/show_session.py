"""`opsladder session`: one record with all that was said and done in it. Reads the store. Called from ``app``."""

import datetime as dt
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from supervisor.cli import words
from supervisor.cli.screen import Screen
from supervisor.cli.show import find, recorded
from supervisor.cli.tree import session_lines
from supervisor.errors import OpsladderError
from supervisor.model.cycle import Chain, Cycle, Event, EventKind
from supervisor.model.document import resume_saving, session_document
from supervisor.model.guarding import RecordedCall
from supervisor.model.permission import Verdict
from supervisor.model.report import Level
from supervisor.model.session import UNFINISHED, Session
from supervisor.settings import Settings, settings_from_process

if TYPE_CHECKING:
    from supervisor.store import Store

_POLL_SECONDS = 0.5
_SHOWN = 2_000
_RULE_SHOWN = 48

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
    """Print the record; with ``follow`` while it grows, or with ``as_json`` as one document once it is over."""
    settings = settings_from_process(config)
    store = recorded(settings)
    session = find(store.session, record)
    follow = follow and session.status in UNFINISHED
    if as_json:
        if follow:
            for _ in _while_it_grows(store, session):
                pass
            session = store.session(record)
        events = store.events(session_id=record)
        chain = store.chain(session.cycle_id)
        document = session_document(session, chain, events, store.calls(record), store.history(session_id=record))
        print(json.dumps({**document, "archive": _archive(settings, chain.cycle)}))
        return
    screen = Screen()
    _print_head(screen, session, store)
    if archive := _archive(settings, store.cycle(session.cycle_id)):
        screen.print("Its messages and tool calls were archived:", highlight=False)
        # A line of its own, and whole: it is there to be copied.
        screen.print(Text(archive if Path(archive).exists() else f"{archive} (not here)"), soft_wrap=True)
    account = _Account(screen, lambda: store.calls(record))
    for event in _while_it_grows(store, session) if follow else store.events(session_id=record):
        account.tell(event)
    account.tell_the_rest()
    if follow:
        screen.print()
        _print_head(screen, store.session(record), store)


def _archive(settings: Settings, cycle: Cycle) -> str | None:
    """Where the messages of a record are that are no longer in the store."""
    if cycle.archived_at is None:
        return None
    # Here, because few records are that old.
    from supervisor.climb.archive_file import archive_path

    return str(archive_path(settings.state.dir, cycle))


class _Account:
    """What happened, in its order, and beside each tool call what the guard decided about it.

    A decision that comes after its call was told, or whose call was made in a session that this one goes on from, names
    the call.
    """

    def __init__(self, screen: Screen, decisions: Callable[[], list[RecordedCall]]) -> None:
        self._screen = screen
        self._look = decisions
        self._waiting: dict[str, list[RecordedCall]] = {}
        self._seen = 0

    def tell(self, event: Event) -> None:
        call = str(event.data.get("tool_use_id"))
        if event.kind is EventKind.TOOL_RESULT:
            self._decided(call, beside_the_call=False)
        _print_event(self._screen, event)
        if event.kind is EventKind.TOOL_USE:
            self._decided(call, beside_the_call=True)

    def tell_the_rest(self) -> None:
        """The decisions about calls of which nothing else was recorded, such as one that was cut off."""
        self._look_again()
        for call in list(self._waiting):
            self._decided(call, beside_the_call=False)

    def _decided(self, call: str, *, beside_the_call: bool) -> None:
        if call not in self._waiting:
            self._look_again()
        for decision in self._waiting.pop(call, []):
            _print_decision(self._screen, decision, named=not beside_the_call)

    def _look_again(self) -> None:
        for decision in self._look():
            if decision.id > self._seen:
                self._seen = decision.id
                self._waiting.setdefault(decision.tool_use_id, []).append(decision)


def _while_it_grows(store: "Store", session: Session) -> Iterator[Event]:
    """The events of a session up to its end, each as soon as it is recorded."""
    seen = 0
    while True:
        # The status before the events: what was written before the end is not missed.
        session = store.session(session.id)
        for event in store.events(session_id=session.id, after_id=seen):
            seen = event.id
            yield event
        if session.status not in UNFINISHED:
            return
        if _is_orphaned(store, session):
            raise OpsladderError(
                f"Nobody runs record {session.id} any more: its supervisor is gone.",
                remedy="The next cycle settles it.",
            )
        # Following is looking again: the one wait of this command, ended by the session's own end or Ctrl-C.
        time.sleep(_POLL_SECONDS)


def _is_orphaned(store: "Store", session: Session) -> bool:
    """Whether a session that has not ended never will, because the supervisor that ran it is dead."""
    # Here, because only following needs to know about processes.
    from supervisor.climb.owner import is_gone

    owner = next((owner for cycle, owner in store.running_cycles() if cycle.id == session.cycle_id), None)
    if owner is not None and not is_gone(owner):
        return False
    # It may have ended between the two looks.
    return store.session(session.id).status in UNFINISHED


def _print_head(screen: Screen, session: Session, store: "Store") -> None:
    facts = _facts(session, store.chain(session.cycle_id))
    screen.print(session_lines(session, []), highlight=False)
    for name, fact in facts.items():
        screen.hang_whole(Text(f"{name:<12} ", "bright_black"), words.harmless(fact))
    screen.print()


def _facts(session: Session, chain: Chain) -> dict[str, str]:
    facts = {
        "cycle": f"{session.cycle_id} of {chain.cycle.schedule}, {chain.cycle.status.value}",
        "created": _time(session.created_at) + _if_known(", started", session.started_at),
        "session id": session.session_id or "unknown",
        "model": session.model + (f" = {session.model_id}" if session.model_id else ""),
        "directory": session.work_dir,
        "our prompt": "unknown" if session.prompt_bytes is None else f"{session.prompt_bytes:,} bytes",
        "first call": f"{words.count(session.first_call_tokens)} tokens read",
        "fixed part": _fixed_part(session),
        "messages": str(session.messages) + _if_known(", the last at", session.last_message_at),
    }
    if session.tokens:
        used = session.tokens
        facts["tokens"] = (
            f"{words.count(used.input)} in, {words.count(used.output)} out, "
            f"{words.count(used.cache_read)} from cache, {words.count(used.cache_write)} to cache"
        )
    saving = resume_saving(session, chain)
    if saving:
        facts["resuming"] = (
            f"its first call read {saving['read_tokens']} tokens; the tiers before had to read "
            f"{saving['fresh_alternative_tokens']} to know as much"
        )
    if session.status not in UNFINISHED:
        facts["ending"] = ", ".join(_ending(session))
    if session.unknown_lines:
        facts["unreadable"] = f"{words.several(session.unknown_lines, 'line')} of its output"
    return facts


def _fixed_part(session: Session) -> str:
    if session.fixed_tokens is not None:
        return f"≈{words.count(session.fixed_tokens)} tokens of each call: what its first one read, less our prompt"
    return "unknown" + (": its first call read what was said before, too" if session.resumed_from else "")


def _time(at: dt.datetime) -> str:
    return f"{at.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC"


def _if_known(what: str, at: dt.datetime | None) -> str:
    return "" if at is None else f"{what} {_time(at)}"


def _ending(session: Session) -> Iterator[str]:
    if session.failure:
        yield session.failure.value
    yield f"exit code {'unknown' if session.exit_code is None else session.exit_code}"
    yield f"stop reason {session.stop_reason or 'unknown'}"
    yield "turns unknown" if session.num_turns is None else words.several(session.num_turns, "turn")


def _print_decision(screen: Screen, decision: RecordedCall, *, named: bool) -> None:
    sign, style = words.VERDICT_SIGNS[decision.verdict]
    body = Text(f"{sign} {decision.verdict.value}", style)
    if named:
        body.append(f" {words.one_line(decision.tool, 80)}: {words.one_line(decision.text, 300)}")
    # Most sentences name the rule; of a call that is simply allowed, they say no more than that.
    says_the_rule = f"the rule {decision.rule}" in decision.sentence
    says_nothing_else = says_the_rule and decision.verdict is Verdict.ALLOW
    if says_nothing_else or not says_the_rule:
        body.append(f" ({words.one_line(decision.rule, _RULE_SHOWN)})", "bright_black")
    if not says_nothing_else:
        body.append(f": {words.one_line(decision.sentence, _SHOWN)}")
    screen.hang(_head(decision.at, "guard", "bold"), body)


def _head(at: dt.datetime, label: str, style: str) -> Text:
    head = Text(f"{at.astimezone(dt.UTC):%H:%M:%S} ", "bright_black")
    return head.append(f"{label:>10}  ", style)


def _print_event(screen: Screen, event: Event) -> None:
    head = _head(event.at, *_LABELS[event.kind])
    body = Text()
    if event.data.get("is_error") or event.level is Level.CRITICAL:
        body.append("FAILED ", "bold red")
    name = event.data.get("name")
    if event.kind is EventKind.TOOL_USE and isinstance(name, str):
        body.append(f"{words.one_line(name, 80)}: ", "bold")
    text = event.text.strip("\n")
    if event.kind is EventKind.PROMPT and not text:
        text = "(none: what the session was stopped at comes first)"
    body.append(words.harmless(text[:_SHOWN]))
    if len(text) > _SHOWN:
        body.append(f"\n… {_SHOWN:,} of {len(text):,} characters; --json has them all", "bright_black")
    screen.hang(head, body)
