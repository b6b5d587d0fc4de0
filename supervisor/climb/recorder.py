"""Keep what a run says while it says it. Writes to the store. Used by climb.run, and by recovery to catch up.

Events are buffered and written in batches off the event loop, each exactly once. A store that does not answer is
retried with the buffer kept; when its patience ends, the writing ends and climb.run stops the run.
"""

import asyncio
import datetime as dt
import logging
import threading
import time
from collections.abc import Callable

from supervisor.claude.gather import Gatherer
from supervisor.climb.entries import REPORT_TOOL, STREAM_KINDS, doing, ending, entry, usable_id
from supervisor.climb.insist import insist, or_find_it_done
from supervisor.decide.cost import PriceOf, live_cost
from supervisor.decide.masking import Masker
from supervisor.errors import Conflict, StoreError, StoreUnavailable
from supervisor.model.cycle import NewEvent
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
from supervisor.model.session import CostBasis, Session
from supervisor.store import SessionEnd, Store

logger = logging.getLogger(__name__)

_FLUSH_SECONDS = 0.25


class Recorder:
    """The memory of one run. ``catching_up`` when it is given a stream of which a part may be stored already."""

    def __init__(
        self,
        store: Store,
        session: Session,
        *,
        price: PriceOf,
        masker: Masker,
        watch: Watch,
        clock: Callable[[], dt.datetime],
        patience_seconds: float,
        catching_up: bool = False,
    ) -> None:
        self.gatherer = Gatherer()
        self.last_message_at: dt.datetime | None = None
        self._store = store
        self._session = session
        self._price = price
        self._masker = masker
        self._watch = watch
        self._clock = clock
        self._patience = patience_seconds
        self._unwritten: list[NewEvent] = []
        self._notes: list[NewEvent] = []
        self._written = 0
        self._in_doubt = catching_up
        self._turn = threading.Lock()
        self._report_calls: set[str] = set()
        self._changed = False
        self._captured: str | None = None
        self._cost: float | None = None
        self._cost_at: float | None = None

    def on_event(self, event: StreamEvent) -> None:
        """Take one event of the stream. Never blocks, never raises on what a model or tool says."""
        now = self._clock()
        self.gatherer.add(event)
        self._changed = True
        if isinstance(event, ToolUse) and event.name == REPORT_TOOL:
            self._report_calls.add(event.tool_use_id)
        kept = entry(event, session=self._session.id, now=now, masker=self._masker)
        if kept is not None and not (isinstance(event, ToolResult) and event.tool_use_id in self._report_calls):
            self._unwritten.append(kept)
        match event:
            case Init(session_id=said) if usable_id(said) and said != self._session.session_id:
                self._captured = said
            case Text() | ToolUse() | ToolResult():
                self.last_message_at = now
                self._show(doing(kept))
            case ApiRetry():
                self._show(f"waiting for the API (it answered {event.error_status or 'nothing'})")
            case CallUsage() | Result() | RateLimit() | Init() | Alive() | Unreadable():
                pass

    def note(self, event: NewEvent) -> None:
        """Put something of the supervisor's own on the run's record."""
        self._notes.append(event)

    def cost_so_far(self) -> float | None:
        """What the run has cost by now, as far as prices are known."""
        return live_cost(self.gatherer.transcript().calls, self._price)

    async def keep_writing(self) -> None:
        """Write batches until cancelled. Returns once the store has been gone for too long: the run has to stop."""
        failing_since: float | None = None
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            if not self._changed and not self._unwritten and not self._notes:
                continue
            try:
                await asyncio.to_thread(self._write_batch)
                failing_since = None
            except StoreUnavailable as error:
                failing_since = failing_since or time.monotonic()
                logger.warning("Records wait for the store", extra={"session": self._session.id, "why": error.message})
                if time.monotonic() - failing_since >= self._patience:
                    return

    async def finish(self, end: SessionEnd) -> Session:
        """Write what is left and then the outcome, whatever becomes of the rest."""
        end = ending(end, self._masker)
        record = self._session.id
        try:
            await insist(self._patience, self._write_batch)
        except (StoreUnavailable, Conflict):
            raise
        except StoreError:
            # An outcome that is never recorded would keep the schedule's lock for ever.
            logger.exception("Events of a session cannot be stored", extra={"session": record})
        return await insist(
            self._patience,
            or_find_it_done,
            lambda: self._store.finish_session(record, end),
            find=lambda: self._store.session(record),
            is_ours=lambda found: (found.status, found.ended_at) == (end.status, end.ended_at),
        )

    def unwritten(self, stored: int) -> list[NewEvent]:
        """What of a stream that is caught up with is not stored yet, when so many of its events are."""
        return self._unwritten[stored:]

    def _write_batch(self) -> None:
        # A cancelled writer goes on in its thread until its call returns; the next one must not take the same events.
        with self._turn:
            self._write_captured()
            self._write_events()
            self._write_notes()
            self._write_progress()

    def _write_captured(self) -> None:
        captured = self._captured
        if captured is not None:
            # A binary that mints its own ids: stored as soon as it is known, not at the end.
            self._session = self._store.capture_session_id(self._session.id, captured)
            if self._captured == captured:
                self._captured = None

    def _write_events(self) -> None:
        if self._in_doubt and self._unwritten:
            # Whether the last batch was committed before the store went away, only the store can say.
            stored = len(self._store.events(session_id=self._session.id, kinds=STREAM_KINDS))
            del self._unwritten[: max(0, stored - self._written)]
            self._written = stored
            self._in_doubt = False
        batch = list(self._unwritten)
        if batch:
            self._in_doubt = True
            self._store.append_events(self._session.cycle_id, batch)
            self._in_doubt = False
            self._written += len(batch)
            del self._unwritten[: len(batch)]

    def _write_notes(self) -> None:
        notes = list(self._notes)
        self._store.append_events(self._session.cycle_id, notes)
        del self._notes[: len(notes)]

    def _write_progress(self) -> None:
        if not self._changed:
            return
        self._changed = False
        seen = self.gatherer.transcript()
        cost = live_cost(seen.calls, self._price)
        try:
            self._store.record_progress(
                self._session.id,
                messages=seen.messages,
                tools_executed=seen.tools_executed,
                tokens=self.gatherer.tokens_so_far,
                cost_usd=cost,
                cost_basis=CostBasis.UNKNOWN if cost is None else CostBasis.ESTIMATED,
                now=self._clock(),
            )
        except StoreUnavailable:
            self._changed = True
            raise

    def _show(self, activity: str) -> None:
        self._watch(
            TierActivity(
                session=self._session, doing=activity, tokens=self.gatherer.tokens_so_far, cost_usd=self._cost_to_show()
            )
        )

    def _cost_to_show(self) -> float | None:
        """Worked out a few times a second at most: it looks at every call of the run."""
        now = time.monotonic()
        if self._cost_at is None or now - self._cost_at >= _FLUSH_SECONDS:
            self._cost_at = now
            self._cost = self.cost_so_far()
        return self._cost
