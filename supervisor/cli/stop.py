"""`opsladder stop`: end a running record and its whole process tree. Called from ``app``.

Whoever runs the record does the stopping, because only that process can end its children and write down how: it is
asked through the store. Where it is gone, this command does what it left undone.
"""

import asyncio
import datetime as dt
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.cli import logs
from supervisor.cli.person import who
from supervisor.cli.show import find, recorded
from supervisor.climb.outfit import find_runtime, make_ladder
from supervisor.errors import Conflict, OpsladderError
from supervisor.model.cycle import Chain, CycleStatus
from supervisor.model.session import Session, SessionStatus
from supervisor.settings import Settings, settings_from_process

if TYPE_CHECKING:
    from supervisor.store import Store

_POLL_SECONDS = 0.2
# Beside the grace that the CLI gets: for the next heartbeat, and for writing it all down.
_ALLOWANCE_SECONDS = 20.0


def stop(config: Path | None, record: int, *, as_json: bool) -> None:
    """End the record, and say what it ended as."""
    logs.set_up(verbose=False)
    settings = settings_from_process(config)
    logs.keep_secret(settings.masker())
    with recorded(settings) as store:
        session = find(store.session, record)
        try:
            _end(settings, store, session)
        except Conflict:
            if store.cycle(session.cycle_id).status is not CycleStatus.RUNNING:
                raise
            # It waited, and somebody went on with it at this very moment.
            _end(settings, store, session)
        ended = store.session(record)
        settled = store.cycle(session.cycle_id)
    if as_json:
        document = {
            "schema": "opsladder.stop/1",
            "session": {"id": ended.id, "status": ended.status.value},
            "cycle": {"id": settled.id, "status": settled.status.value},
        }
        print(json.dumps(document))
    else:
        print(f"Record {ended.id} is {ended.status.value}; cycle {settled.id} is {settled.status.value}.")


def _end(settings: Settings, store: "Store", session: Session) -> None:
    """End the record's cycle, whether it runs or waits."""
    cycle = store.cycle(session.cycle_id)
    if cycle.status is CycleStatus.RUNNING:
        store.ask_to_stop(cycle.id, by=who())
        _wait(settings, store, cycle.id)
    elif cycle.status is not CycleStatus.PAUSED:
        is_over = cycle.status.value
        raise Conflict(f"Record {session.id} is {session.status.value}, and its cycle {cycle.id} {is_over}.")
    # Whoever ran it may have let it wait meanwhile.
    chain = store.chain(cycle.id)
    if chain.cycle.status is CycleStatus.PAUSED:
        _give_up(store, chain)


def _wait(settings: Settings, store: "Store", cycle_id: int) -> None:
    from supervisor.climb.owner import is_gone

    deadline = time.monotonic() + settings.claude.end_grace_seconds + _ALLOWANCE_SECONDS
    while store.cycle(cycle_id).status is CycleStatus.RUNNING:
        if any(cycle.id == cycle_id and is_gone(owner) for cycle, owner in store.running_cycles()):
            asyncio.run(_settle_what_was_left(settings))
        elif time.monotonic() >= deadline:
            raise OpsladderError(
                f"Cycle {cycle_id} was asked to stop and still runs.",
                remedy="Look at the process that runs it: it may be waiting for its database.",
            )
        else:
            time.sleep(_POLL_SECONDS)


async def _settle_what_was_left(settings: Settings) -> None:
    from supervisor.climb.recovery import recover

    ladder = make_ladder(settings, await find_runtime(settings), lambda _: None)
    with ladder.store:
        await recover(ladder)


def _give_up(store: "Store", chain: Chain) -> None:
    """End a cycle that waits, and the session it waits with."""
    now, by = dt.datetime.now(dt.UTC), who()
    store.finish_cycle(
        chain.cycle.id,
        status=CycleStatus.STOPPED,
        reason="stopped",
        detail=f"The cycle was stopped by {by} while it waited.",
        now=now,
        by=by,
        expect=CycleStatus.PAUSED,
    )
    for session in chain.sessions:
        if session.status is SessionStatus.PAUSED:
            store.leave(session.id, SessionStatus.STOPPED, why="stopped", now=now, by=by)
