"""What is recorded and shown of a cycle's end holds no secrets."""

import asyncio
import datetime as dt

from make import RUNTIME

from supervisor.climb.close import close
from supervisor.climb.ladder import Ladder
from supervisor.climb.owner import this_process
from supervisor.model.cycle import CycleStatus, Trigger
from supervisor.model.step import Finish
from supervisor.prompts import Prompts
from supervisor.settings import load_settings
from supervisor.store import open_store

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
KNOWN = "correct-horse-battery"


def test_why_a_cycle_is_over_is_recorded_and_shown_without_secrets(tmp_path):
    settings = load_settings(
        None, {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "ANTHROPIC_API_KEY": KNOWN}, cwd=tmp_path
    )
    settings.state.dir.mkdir()
    broken = Finish(status=CycleStatus.FAILED, reason="supervisor_error", detail=f"{KNOWN} was refused.", tell=True)
    with open_store(settings.database_url()) as store:
        ladder = Ladder(
            settings=settings,
            store=store,
            runtime=RUNTIME,
            prompts=Prompts(settings.prompt_dirs),
        )
        cycle = store.begin_cycle(
            schedule="default", trigger=Trigger.MANUAL, dry_run=False, owner=this_process(), now=NOW
        )

        shown = asyncio.run(close(ladder, cycle, broken))

        [event] = store.events(cycle_id=cycle.id)
        assert store.cycle(cycle.id).detail == event.text == shown.detail == "[masked] was refused."
