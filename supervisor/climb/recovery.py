"""Settle what a supervisor left behind when it died. Ends processes, reads streams, writes records. For climb.cycle.

A cycle belongs to the process that began it, known by host, pid and start time. When that process is gone, the CLI it
started is ended with its whole tree, the records catch up from the raw stream the CLI had written, and the cycle is
closed, so that its schedule is free again. The session ids stay: the work can be resumed.
"""

import asyncio
import contextlib
import datetime as dt
import fcntl
import logging
import os
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from supervisor.claude.process import end_tree
from supervisor.claude.stream import StreamParser
from supervisor.climb.close import close, interrupted
from supervisor.climb.conclude import Departure, conclude
from supervisor.climb.files import discard_handoffs, discard_stream, stream_path
from supervisor.climb.insist import insist
from supervisor.climb.ladder import Ladder
from supervisor.climb.launch import guard_places
from supervisor.climb.owner import is_gone
from supervisor.climb.recorder import Recorder
from supervisor.climb.run import RUN_MARK, inherited_usage, price_table
from supervisor.errors import Conflict, OpsladderError
from supervisor.guard.post import sweep_posts
from supervisor.model.cycle import Cycle, EventKind
from supervisor.model.outcome import Ended
from supervisor.model.progress import Notice
from supervisor.model.session import UNFINISHED, Session
from supervisor.model.step import Finish
from supervisor.store import Owner, SessionEnd

logger = logging.getLogger(__name__)

_CHUNK = 1 << 20
_LOCK_FILE = "recovery.lock"
_LOCK_POLL_SECONDS = 0.05
# No process has this pid, so only the mark is looked for.
_NO_PID = 0


async def recover(ladder: Ladder) -> None:
    """Settle every running cycle whose owner is gone, and clear away the posts of runs that are."""
    await asyncio.to_thread(sweep_posts, guard_places(ladder.settings))
    if not await asyncio.to_thread(_lost_cycles, ladder):
        return
    async with _one_at_a_time(ladder):
        for cycle, owner in await asyncio.to_thread(_lost_cycles, ladder):
            logger.warning("A cycle lost its supervisor", extra={"cycle": cycle.id, "pid": owner.pid})
            detail = f"The supervisor of cycle {cycle.id} (pid {owner.pid}) died in the middle of it."
            try:
                await settle(ladder, cycle, interrupted(detail))
            except Conflict:
                logger.info("The cycle was settled by another supervisor", extra={"cycle": cycle.id})


async def settle(ladder: Ladder, cycle: Cycle, finish: Finish) -> None:
    """End what still runs of a cycle that nobody carries on, complete its records, and close it."""
    store, patience = ladder.store, ladder.store_patience_seconds
    chain = await insist(patience, store.chain, cycle.id)
    for session in chain.sessions:
        if session.status in UNFINISHED:
            await _settle_session(ladder, session)
        # Also of a finished one: its supervisor may have died between the record and the file.
        discard_stream(ladder.settings.state.dir, session.id)
    discard_handoffs(ladder.settings.state.dir, cycle.id)
    finish = await close(ladder, cycle, finish)
    ladder.watch(Notice(text=finish.detail))


def _lost_cycles(ladder: Ladder) -> list[tuple[Cycle, Owner]]:
    return [(cycle, owner) for cycle, owner in ladder.store.running_cycles() if is_gone(owner)]


@contextlib.asynccontextmanager
async def _one_at_a_time(ladder: Ladder) -> AsyncIterator[None]:
    """Let one supervisor at a time catch records up: two that read one stream would write its events twice."""
    path = ladder.settings.state.dir / _LOCK_FILE
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise OpsladderError(
            f"What an earlier cycle left cannot be settled: {path} cannot be opened: {error.strerror}.",
            remedy="Correct the owner of state.dir, or make room.",
        ) from error
    try:
        deadline = time.monotonic() + ladder.store_patience_seconds
        while not _locked(descriptor):
            if time.monotonic() >= deadline:
                logger.warning("Another supervisor keeps settling: not waited for", extra={"path": str(path)})
                break
            await asyncio.sleep(_LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _settle_session(ladder: Ladder, session: Session) -> None:
    store, patience = ladder.store, ladder.store_patience_seconds
    mark = await insist(patience, _mark, ladder, session)
    # Its pid may not be recorded yet, and its tools may have left its tree: the mark finds all of them.
    await end_tree(
        session.pid or _NO_PID,
        session.pid_started or 0.0,
        marker=mark,
        grace_seconds=ladder.settings.claude.end_grace_seconds,
    )
    stream_file = stream_path(ladder.settings.state.dir, session.id)
    spoken_at = await asyncio.to_thread(_written_at, stream_file) or ladder.clock()
    recorder = Recorder(
        store,
        session,
        price=price_table(ladder),
        masker=ladder.settings.masker(),
        watch=lambda _: None,
        clock=lambda: spoken_at,
        patience_seconds=patience,
        catching_up=True,
    )
    await asyncio.to_thread(_replay, stream_file, recorder)
    parent_id = session.parent_session_id
    parent = None if parent_id is None else await insist(patience, store.session, parent_id)
    transcript = recorder.gatherer.transcript()
    end = conclude(
        session,
        transcript,
        Departure(ended=Ended.INTERRUPTED, exit_code=None),
        inherited=inherited_usage(session, parent),
        version=ladder.runtime.version,
        price=price_table(ladder),
        configured_window=ladder.settings.models.window(session.model),
        last_message_at=recorder.last_message_at or session.last_message_at,
        now=ladder.clock(),
    )
    await recorder.finish(end if transcript.messages >= session.messages else _without_figures(end))


def _mark(ladder: Ladder, session: Session) -> str | None:
    """The mark that the processes of a run carry, recorded with its prompt."""
    for event in ladder.store.events(session_id=session.id, kinds=(EventKind.PROMPT,)):
        mark = event.data.get(RUN_MARK)
        if isinstance(mark, str):
            return mark
    return session.session_id


def _without_figures(end: SessionEnd) -> SessionEnd:
    """The end of a run whose stream was lost, on a full disk perhaps: what was recorded live says more."""
    return replace(
        end,
        session_id=None,
        cost_usd=None,
        tokens=None,
        context_tokens=None,
        first_call_tokens=None,
        messages=None,
        tool_calls=None,
        tools_executed=None,
        unknown_lines=None,
    )


def _written_at(stream_file: Path) -> dt.datetime | None:
    """When the stream was last written to: the closest that is known to when its events came."""
    try:
        return dt.datetime.fromtimestamp(stream_file.stat().st_mtime, dt.UTC)
    except FileNotFoundError:
        return None


def _replay(stream_file: Path, recorder: Recorder) -> None:
    """Read a stream as far as it was written; the last line may be half."""
    try:
        file = stream_file.open("rb")
    except FileNotFoundError:
        return
    parser = StreamParser()
    with file:
        while chunk := file.read(_CHUNK):
            for event in parser.feed(chunk):
                recorder.on_event(event)
        for event in parser.close():
            recorder.on_event(event)
