"""Settle what a dead supervisor left behind. Ends processes, reads streams, writes records. Called from climb.cycle.

A cycle belongs to the process that began it, known by host, pid and start time. When that process is gone, the CLI it
started is ended with its whole tree, the records catch up from the raw stream the CLI had written, and the cycle is
closed, so that its schedule is free again. The session ids stay: the work can be resumed.
"""

import asyncio
import logging
import os
import socket
from functools import cache
from pathlib import Path

import psutil

from supervisor.claude.process import end_tree
from supervisor.claude.stream import StreamParser
from supervisor.climb.conclude import Departure, conclude
from supervisor.climb.ladder import Ladder
from supervisor.climb.recorder import STREAM_KINDS, Recorder
from supervisor.climb.run import inherited_usage, price_table, stream_path
from supervisor.errors import Conflict
from supervisor.model.cycle import CycleStatus, EventKind, NewEvent
from supervisor.model.outcome import Ended
from supervisor.model.progress import Notice
from supervisor.model.report import Level
from supervisor.model.session import Session
from supervisor.store import Owner

logger = logging.getLogger(__name__)

_CHUNK = 1 << 20


@cache
def this_process() -> Owner:
    """Who owns the cycles begun here."""
    return Owner(host=socket.gethostname(), pid=os.getpid(), started=psutil.Process().create_time())


def is_gone(owner: Owner) -> bool:
    """Whether an owner is known to be dead. An owner on another host cannot be judged from here."""
    if owner.host != socket.gethostname():
        return False
    try:
        return psutil.Process(owner.pid).create_time() != owner.started
    except psutil.NoSuchProcess:
        return True


async def recover(ladder: Ladder) -> None:
    """Settle every running cycle whose owner is gone."""
    for cycle, owner in await asyncio.to_thread(ladder.store.running_cycles):
        if not is_gone(owner):
            continue
        logger.warning("A cycle lost its supervisor", extra={"cycle": cycle.id, "pid": owner.pid})
        for session in await asyncio.to_thread(ladder.store.unfinished_sessions, cycle.id):
            await _settle(ladder, session)
        detail = f"The supervisor of cycle {cycle.id} (pid {owner.pid}) died in the middle of it."
        notice = NewEvent(kind=EventKind.NOTICE, at=ladder.clock(), level=Level.CRITICAL, text=detail)
        try:
            await asyncio.to_thread(
                ladder.store.finish_cycle,
                cycle.id,
                status=CycleStatus.STOPPED,
                reason="interrupted",
                detail=detail,
                now=ladder.clock(),
            )
        except Conflict:
            # Another supervisor that started at the same moment has settled it.
            continue
        await asyncio.to_thread(ladder.store.append_events, cycle.id, [notice])
        ladder.watch(Notice(text=detail))


async def _settle(ladder: Ladder, session: Session) -> None:
    if session.pid is not None and session.pid_started is not None:
        await end_tree(
            session.pid,
            session.pid_started,
            marker=session.session_id,
            grace_seconds=ladder.settings.claude.end_grace_seconds,
        )
    recorder = Recorder(
        ladder.store,
        session,
        price=price_table(ladder),
        watch=lambda _: None,
        clock=ladder.clock,
        patience_seconds=ladder.store_patience_seconds,
    )
    stream_file = stream_path(ladder.settings.state.dir, session.id)
    await asyncio.to_thread(_replay, stream_file, recorder)
    written = await asyncio.to_thread(ladder.store.events, session_id=session.id, kinds=STREAM_KINDS)
    del recorder.unwritten[: len(written)]
    parent = None
    if session.parent_session_id is not None:
        parent = await asyncio.to_thread(ladder.store.session, session.parent_session_id)
    end = conclude(
        session,
        recorder.gatherer.transcript(),
        Departure(ended=Ended.INTERRUPTED, exit_code=None),
        inherited=inherited_usage(session, parent),
        version=ladder.runtime.version,
        price=price_table(ladder),
        configured_window=ladder.settings.models.window(session.model),
        last_message_at=recorder.last_message_at or session.last_message_at,
        now=ladder.clock(),
    )
    try:
        await recorder.insist(lambda: ladder.store.finish_session(session.id, end))
    except Conflict:
        logger.info("The session was settled by another supervisor", extra={"session": session.id})
        return
    stream_file.unlink(missing_ok=True)


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
