"""`opsladder pause` and `unpause`: the switch. Writes to the store. Called from ``app``."""

import datetime as dt
from pathlib import Path

from supervisor.cli.cycle import prepare_state
from supervisor.cli.person import who
from supervisor.settings import settings_from_process


def turn(config: Path | None, *, paused: bool, reason: str | None) -> None:
    """Turn the switch, and say what that means from now on."""
    settings = settings_from_process(config)
    prepare_state(settings)
    from supervisor.store import open_store

    now = dt.datetime.now(dt.UTC)
    with open_store(settings.database_url()) as store:
        before = store.switch()
        if paused:
            store.pause(by=who(), reason=reason, now=now)
        elif before.paused:
            store.unpause(by=who(), now=now)
        running = [cycle.id for cycle, _ in store.running_cycles()]
    if not paused:
        print("Runs and tool calls go through again." if before.paused else "Nothing was paused.")
        return
    print("Paused: no new run starts, and no tool call goes through, until `opsladder unpause`.")
    if running:
        print(f"Still running, without tools: cycle {', '.join(map(str, running))}.")
