"""Beginning a cycle while others pause, go on with and begin cycles of the same schedule."""

import asyncio
import datetime as dt

from make import RUNTIME

from supervisor.climb.begin import begin
from supervisor.climb.ladder import CycleRequest, Ladder
from supervisor.climb.owner import this_process
from supervisor.model.cycle import Cycle, CycleStatus, Trigger
from supervisor.prompts import Prompts
from supervisor.settings import load_settings
from supervisor.store import Store, open_store

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def lose(store: Store) -> Cycle:
    """A cycle that was cut off, and that another supervisor has just settled."""
    cycle = store.begin_cycle(
        schedule="default", trigger=Trigger.SCHEDULE, dry_run=False, owner=this_process(), now=NOW
    )
    return store.finish_cycle(cycle.id, status=CycleStatus.PAUSED, reason="interrupted", detail=None, now=NOW)


def test_a_cycle_that_is_paused_after_we_looked_is_gone_on_with(tmp_path, monkeypatch):
    settings = load_settings(None, {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}, cwd=tmp_path)
    settings.state.dir.mkdir()
    with open_store(settings.database_url()) as store:
        ladder = Ladder(settings=settings, store=store, runtime=RUNTIME, prompts=Prompts(settings.prompt_dirs))
        request = CycleRequest(schedule="default", trigger=Trigger.SCHEDULE, dry_run=False, max_tier=3)
        look, lost = store.chains, []

        def look_too_early(*wanted):
            seen = look(*wanted)
            if not lost:
                lost.append(lose(store))
            return seen

        monkeypatch.setattr(store, "chains", look_too_early)
        begun = asyncio.run(begin(ladder, request))

        assert (begun.id, begun.status) == (lost[0].id, CycleStatus.RUNNING)
        assert [cycle.id for cycle, _ in store.running_cycles()] == [begun.id]
