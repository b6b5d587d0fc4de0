"""`opsladder pause` and `unpause`: the switch. Writes to the store. Called from ``app``."""

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.cli import words
from supervisor.cli.person import who
from supervisor.climb.outfit import prepare_state
from supervisor.decide.cut_off import ANSWERS
from supervisor.model.cycle import Chain, CycleStatus
from supervisor.settings import settings_from_process

if TYPE_CHECKING:
    from supervisor.store import Store

_PAUSED_SHOWN = 20


def pause(config: Path | None, *, reason: str | None) -> None:
    """Turn the switch off, and say what that means from now on."""
    settings = settings_from_process(config)
    prepare_state(settings)
    from supervisor.store import open_store

    reason = None if reason is None else settings.masker().text(reason)
    with open_store(settings.database_url()) as store:
        state = store.pause(by=who(), reason=reason, now=dt.datetime.now(dt.UTC))
        running = [cycle for cycle, _ in store.running_cycles()]
    why = f" ({words.one_line(state.reason, 200)})" if state.reason else ""
    print(f"Paused by {state.by}{why}.")
    print("No new run starts and no tool call goes through, until `opsladder unpause`.")
    for cycle in running:
        print(f"Cycle {cycle.id} of {cycle.schedule} still runs, without tools from now on.")


def unpause(config: Path | None) -> None:
    """Turn the switch on again, and say which cycles were held up by it."""
    settings = settings_from_process(config)
    prepare_state(settings)
    from supervisor.store import open_store

    with open_store(settings.database_url()) as store:
        if not store.switch().paused:
            print("Nothing was paused.")
            return
        store.unpause(by=who(), now=dt.datetime.now(dt.UTC))
        held_up = [c.cycle for c in store.chains(_PAUSED_SHOWN, CycleStatus.PAUSED) if _was_held_up(store, c)]
    print("Runs and tool calls go through again.")
    for cycle in held_up:
        print(f"Cycle {cycle.id} was held up: `opsladder cycle {cycle.schedule}` goes on with it.")


def _was_held_up(store: "Store", chain: Chain) -> bool:
    """Whether nothing but the switch kept a paused cycle from going on."""
    if chain.cycle.reason != "approval" or not chain.sessions:
        return chain.cycle.reason == "switch"
    asked = store.approval_of_session(chain.sessions[-1].id)
    return asked is not None and asked.status in ANSWERS
