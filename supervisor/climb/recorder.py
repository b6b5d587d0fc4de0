"""Keep what a run says while it says it. Writes to the store. Used by climb.run, and by recovery to catch up.

Events are buffered and written in batches off the event loop. A store that does not answer is retried with the buffer
kept; when its patience ends, the run is asked to stop.
"""

import asyncio
import datetime as dt
import json
import logging
import time
from collections.abc import Callable
from typing import TypeVar

from supervisor.claude.gather import Gatherer
from supervisor.decide.cost import PriceOf, live_cost
from supervisor.errors import StoreUnavailable
from supervisor.model.cycle import EventKind, NewEvent
from supervisor.model.events import (
    Alive,
    ApiRetry,
    CallUsage,
    Init,
    RateLimit,
    Result,
    StreamEvent,
    Text,
    ToolResult,
    ToolUse,
    Unreadable,
)
from supervisor.model.progress import TierActivity, Watch
from supervisor.model.report import Level
from supervisor.model.session import CostBasis, Session
from supervisor.store import Store

logger = logging.getLogger(__name__)

# What comes from the stream, in its order; everything else in a record is the supervisor's own.
STREAM_KINDS = frozenset(
    {
        EventKind.TEXT,
        EventKind.TOOL_USE,
        EventKind.TOOL_RESULT,
        EventKind.API_RETRY,
        EventKind.RATE_LIMIT,
        EventKind.UNREADABLE,
    }
)
REPORT_TOOL = "StructuredOutput"
_FLUSH_SECONDS = 0.25
_RETRY_SECONDS = 0.5
_INPUT_LIMIT = 10_000

_T = TypeVar("_T")


def entry(event: StreamEvent, *, session: int, now: dt.datetime) -> NewEvent | None:
    """What is kept of one stream event: ``None`` for those that only prove the run is alive."""
    match event:
        case Text():
            return NewEvent(
                kind=EventKind.TEXT,
                at=now,
                session_id=session,
                text=event.text,
                data={"message_id": event.message_id, "parent_tool_use_id": event.parent_tool_use_id},
            )
        case ToolUse(name=name) if name != REPORT_TOOL:
            return NewEvent(
                kind=EventKind.TOOL_USE,
                at=now,
                session_id=session,
                text=describe_call(event),
                data={
                    "tool_use_id": event.tool_use_id,
                    "name": name,
                    "input": _bounded(event),
                    "parent_tool_use_id": event.parent_tool_use_id,
                },
            )
        case ToolResult():
            return NewEvent(
                kind=EventKind.TOOL_RESULT,
                at=now,
                session_id=session,
                text=event.text,
                data={"tool_use_id": event.tool_use_id, "is_error": event.is_error, "size": event.size},
            )
        case ApiRetry():
            return NewEvent(
                kind=EventKind.API_RETRY,
                at=now,
                session_id=session,
                level=Level.WARNING,
                text=f"The API answered {event.error_status or 'not at all'}: the CLI tries again.",
                data={"attempt": event.attempt, "status": event.error_status, "error": event.error},
            )
        case RateLimit():
            return NewEvent(
                kind=EventKind.RATE_LIMIT,
                at=now,
                session_id=session,
                level=Level.WARNING if event.status == "rejected" else Level.INFO,
                text=f"The account's usage window: {event.status}.",
                data={"status": event.status, "resets_at": event.resets_at, "type": event.kind},
            )
        case Unreadable():
            return NewEvent(
                kind=EventKind.UNREADABLE,
                at=now,
                session_id=session,
                level=Level.WARNING,
                text=event.why,
                data={"raw": event.raw, "size": event.size},
            )
        case _:
            return None


def describe_call(call: ToolUse) -> str:
    """A tool call in one line: the command, the file, else its whole input."""
    for key in ("command", "file_path", "pattern", "url", "path"):
        value = call.input.get(key)
        if isinstance(value, str):
            return value
    return json.dumps(dict(call.input), ensure_ascii=False)[:_INPUT_LIMIT]


def _bounded(call: ToolUse) -> object:
    text = json.dumps(dict(call.input), ensure_ascii=False)
    return dict(call.input) if len(text) <= _INPUT_LIMIT else {"shortened": text[:_INPUT_LIMIT]}


class Recorder:
    """The memory of one run."""

    def __init__(
        self,
        store: Store,
        session: Session,
        *,
        price: PriceOf,
        watch: Watch,
        clock: Callable[[], dt.datetime],
        patience_seconds: float,
    ) -> None:
        self.gatherer = Gatherer()
        self.last_message_at: dt.datetime | None = None
        self.unwritten: list[NewEvent] = []
        self._store = store
        self._session = session
        self._price = price
        self._watch = watch
        self._clock = clock
        self._patience = patience_seconds
        self._report_calls: set[str] = set()
        self._changed = False
        self._captured: str | None = None

    def on_event(self, event: StreamEvent) -> None:
        """Take one event of the stream. Never blocks, never raises on what a model or tool says."""
        now = self._clock()
        self.gatherer.add(event)
        self._changed = True
        if isinstance(event, ToolUse) and event.name == REPORT_TOOL:
            self._report_calls.add(event.tool_use_id)
        kept = entry(event, session=self._session.id, now=now)
        if kept is not None and not (isinstance(event, ToolResult) and event.tool_use_id in self._report_calls):
            self.unwritten.append(kept)
        match event:
            case Init(session_id=str(said)) if said != self._session.session_id:
                self._captured = said
            case Text() | ToolUse() | ToolResult():
                self.last_message_at = now
                self._show(_doing(event))
            case ApiRetry():
                self._show(f"waiting for the API (it answered {event.error_status or 'nothing'})")
            case CallUsage() | Result() | RateLimit() | Init() | Alive() | Unreadable():
                pass

    async def keep_writing(self, give_up: Callable[[], None]) -> None:
        """Write batches until cancelled; call ``give_up`` once the store has been gone for too long."""
        failing_since: float | None = None
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            if not self._changed and not self.unwritten:
                continue
            try:
                await asyncio.to_thread(self._write_batch)
                failing_since = None
            except StoreUnavailable as error:
                failing_since = failing_since or time.monotonic()
                logger.warning("Records wait for the store", extra={"session": self._session.id, "why": error.message})
                if time.monotonic() - failing_since > self._patience:
                    give_up()
                    return

    async def insist(self, write: Callable[[], _T]) -> _T:
        """Do a write that has to succeed, again and again until the patience ends."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                if self.unwritten:
                    await asyncio.to_thread(self._write_batch)
                return await asyncio.to_thread(write)
            except StoreUnavailable as error:
                if time.monotonic() > deadline:
                    raise
                logger.warning("The outcome waits for the store", extra={"why": error.message})
                await asyncio.sleep(_RETRY_SECONDS)

    def _write_batch(self) -> None:
        if self._captured is not None:
            # A binary that mints its own ids: stored as soon as it is known, not at the end.
            self._session = self._store.capture_session_id(self._session.id, self._captured)
            self._captured = None
        batch = list(self.unwritten)
        if batch:
            self._store.append_events(self._session.cycle_id, batch)
            del self.unwritten[: len(batch)]
        if self._changed:
            self._changed = False
            seen = self.gatherer.transcript()
            cost = live_cost(seen.calls, self._price)
            self._store.record_progress(
                self._session.id,
                messages=seen.messages,
                tools_executed=seen.tools_executed,
                tokens=self.gatherer.tokens_so_far,
                cost_usd=cost,
                cost_basis=CostBasis.UNKNOWN if cost is None else CostBasis.ESTIMATED,
                now=self._clock(),
            )

    def _show(self, doing: str) -> None:
        calls = self.gatherer.transcript().calls
        self._watch(
            TierActivity(
                session=self._session,
                doing=doing,
                tokens=self.gatherer.tokens_so_far,
                cost_usd=live_cost(calls, self._price),
            )
        )


def _doing(event: Text | ToolUse | ToolResult) -> str:
    match event:
        case ToolUse(name=name) if name == REPORT_TOOL:
            return "writing its report"
        case ToolUse():
            return f"{event.name}: {' '.join(describe_call(event).split())}"
        case ToolResult():
            return "thinking"
        case Text():
            return " ".join(event.text.split()) or "thinking"
