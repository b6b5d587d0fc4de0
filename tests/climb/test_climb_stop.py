"""The wish to end a run, and the wish to end its cycle."""

import asyncio
from pathlib import Path

import pytest
from climber import CONFIG, climb

from supervisor.cli import stop as command
from supervisor.climb.owner import this_process
from supervisor.climb.stop import StopRequest
from supervisor.errors import Conflict
from supervisor.model.cycle import CycleStatus
from supervisor.model.outcome import Ended
from supervisor.model.progress import Progress, TierEnded
from supervisor.model.session import SessionStatus
from supervisor.settings import Settings, load_settings
from supervisor.store import Store, open_store
from tests.store.store_examples import NOON, OWNER, add_session, begin, end


def test_what_ends_a_run_leaves_its_cycle_be():
    async def ask() -> tuple[StopRequest, StopRequest]:
        cycle = StopRequest()
        run = cycle.for_run()
        run.ask(Ended.USAGE_LIMIT)
        return cycle, run

    cycle, run = asyncio.run(ask())
    assert run.event.is_set()
    assert not cycle.event.is_set()
    assert not cycle.for_run().event.is_set()


def test_what_ends_a_cycle_ends_the_run_of_now_and_any_later_one():
    async def ask() -> tuple[StopRequest, StopRequest]:
        cycle = StopRequest()
        run = cycle.for_run()
        cycle.ask(Ended.STORE_UNAVAILABLE)
        return cycle, run

    cycle, run = asyncio.run(ask())
    assert (run.event.is_set(), run.ended) == (True, Ended.STORE_UNAVAILABLE)
    later = cycle.for_run()
    assert (later.event.is_set(), later.ended) == (True, Ended.STORE_UNAVAILABLE)


def test_the_first_wish_counts():
    async def ask() -> StopRequest:
        cycle = StopRequest()
        run = cycle.for_run()
        run.ask(Ended.BUDGET)
        cycle.ask()
        return run

    assert asyncio.run(ask()).ended is Ended.BUDGET


def test_a_cycle_that_is_to_stop_does_not_wait_for_anything_either(tmp_path: Path, new_cli: Path) -> None:
    def ask_at_the_end_of_the_run(progress: Progress, settings: Settings) -> None:
        if isinstance(progress, TierEnded):
            with open_store(settings.database_url()) as store:
                store.ask_to_stop(progress.session.cycle_id, by="ada")

    config = CONFIG + "[budget]\nper_cycle_usd = 0.000001\n"
    climbed = asyncio.run(climb(tmp_path, new_cli, config=config, see=ask_at_the_end_of_the_run))

    cycle = climbed.chain.cycle
    assert (cycle.status, cycle.reason, cycle.detail) == (
        CycleStatus.STOPPED,
        "stopped",
        "The cycle was stopped by ada.",
    )


def test_a_cycle_that_is_paused_while_it_is_asked_to_stop_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/opsladder.db"
    settings = load_settings(None, {"HOME": str(tmp_path), "OPSLADDER_STATE__DATABASE_URL": url}, cwd=tmp_path)
    with open_store(url) as store:
        session = add_session(store, begin(store))

    def pauses(_: Settings, store: Store, cycle: int) -> None:
        end(store, session, status=SessionStatus.INTERRUPTED)
        store.finish_cycle(cycle, status=CycleStatus.PAUSED, reason="interrupted", detail=None, now=NOON)

    monkeypatch.setattr("supervisor.cli.stop.settings_from_process", lambda _: settings)
    monkeypatch.setattr("supervisor.cli.stop._wait", pauses)
    command.stop(None, session.id, as_json=False)

    assert capsys.readouterr().out == "Record 1 is interrupted; cycle 1 is stopped.\n"


def test_who_finds_its_cycle_in_other_hands_starts_no_further_tier_and_ends_nothing(
    tmp_path: Path, new_cli: Path
) -> None:
    def take_over_after_the_run(progress: Progress, settings: Settings) -> None:
        if isinstance(progress, TierEnded):
            with open_store(settings.database_url()) as store:
                store.take_over(gone=this_process(), owner=OWNER)
                theirs = add_session(store, store.cycle(progress.session.cycle_id), progress.session, tier=2)
                store.activate_session(theirs.id, pid=1, pid_started=1.0, now=NOON)

    with pytest.raises(Conflict):
        asyncio.run(climb(tmp_path, new_cli, see=take_over_after_the_run))

    with open_store(f"sqlite:///{tmp_path}/state/opsladder.db") as store:
        [chain] = store.chains(2)
        assert chain.cycle.status is CycleStatus.RUNNING
        assert [session.status for session in chain.sessions] == [SessionStatus.COMPLETED, SessionStatus.ACTIVE]
        assert store.owners() == [OWNER]
