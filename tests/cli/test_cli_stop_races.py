"""A stop that meets somebody who goes on with the cycle at the same moment."""

from pathlib import Path

import pytest

from supervisor.cli.stop import stop
from supervisor.climb.owner import this_process
from supervisor.model.cycle import Cycle, CycleStatus
from supervisor.model.session import SessionStatus
from supervisor.settings import settings_from_process
from supervisor.store import Store, open_store
from tests.store.store_examples import NOON, add_session, begin, end

HOW = {"reason": "interrupted", "detail": None, "now": NOON}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """With one cycle, which waits; the configuration of this process is the one that names it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OPSLADDER_STATE__DIR", str(tmp_path / "state"))
    (tmp_path / "state").mkdir(mode=0o700)
    with open_store(settings_from_process(None).database_url()) as store:
        cycle = begin(store)
        end(store, add_session(store, cycle), SessionStatus.PAUSED)
        store.finish_cycle(cycle.id, status=CycleStatus.PAUSED, **HOW)
        yield store


def test_a_cycle_that_is_gone_on_with_meanwhile_is_asked_to_stop_and_not_ended_under_its_supervisor(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    finish, ask = Store.finish_cycle, Store.ask_to_stop
    asked: list[str] = []

    def finish_a_moment_late(self: Store, cycle_id: int, **how: object) -> Cycle:
        store.reopen_cycle(cycle_id, owner=this_process(), now=NOON)
        return finish(self, cycle_id, **how)

    def stop_when_asked(self: Store, cycle_id: int, *, by: str) -> None:
        asked.append(by)
        ask(self, cycle_id, by=by)
        finish(self, cycle_id, status=CycleStatus.STOPPED, **HOW)

    monkeypatch.setattr(Store, "finish_cycle", finish_a_moment_late)
    monkeypatch.setattr(Store, "ask_to_stop", stop_when_asked)

    stop(None, 1, as_json=False)

    assert len(asked) == 1
    assert "cycle 1 is stopped" in capsys.readouterr().out


def test_one_that_still_waits_is_ended_at_once(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    stop(None, 1, as_json=False)

    assert capsys.readouterr().out == "Record 1 is stopped; cycle 1 is stopped.\n"
