"""Which calls a run is told of, because nobody knows how they ended."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from make import RUNTIME

from supervisor.climb.cycle import _unfinished
from supervisor.climb.ladder import Ladder
from supervisor.model.outcome import Failure
from supervisor.model.permission import Decision, ToolCall, Verdict
from supervisor.model.session import Session, SessionStatus
from supervisor.prompts import Prompts
from supervisor.settings import load_settings
from supervisor.store import open_store
from tests.store.store_examples import NOON, add_session, begin, end

ALLOWED = Decision(verdict=Verdict.ALLOW, rule="restart", sentence="")


@pytest.fixture
def ladder(tmp_path: Path) -> Iterator[Ladder]:
    settings = load_settings(None, {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}, cwd=tmp_path)
    settings.state.dir.mkdir()
    with open_store(settings.database_url()) as store:
        yield Ladder(settings=settings, store=store, runtime=RUNTIME, prompts=Prompts(settings.prompt_dirs))


def cut_off_in_a_call(ladder: Ladder, status: SessionStatus, failure: Failure | None) -> Session:
    session = add_session(ladder.store, begin(ladder.store))
    call = ToolCall(tool_use_id="toolu_1", tool="Bash", input={})
    ladder.store.record_call(
        session=session.id, cycle=session.cycle_id, call=call, text="webctl restart", decision=ALLOWED, now=NOON
    )
    return end(ladder.store, session, status, failure=failure)


def test_a_paused_run_is_gone_on_from_a_second_time_with_the_call_it_was_stopped_in(ladder: Ladder) -> None:
    """Its supervisor died when it had recorded that it goes on, and before the CLI did anything."""
    paused = cut_off_in_a_call(ladder, SessionStatus.PAUSED, Failure.BUDGET)
    assert _unfinished(ladder, paused) == ["Bash: webctl restart"]

    left = ladder.store.leave(paused.id, SessionStatus.COMPLETED, why="gone on", now=NOON)

    assert _unfinished(ladder, left) == ["Bash: webctl restart"]


def test_a_run_that_came_to_its_end_left_nothing_open(ladder: Ladder) -> None:
    assert _unfinished(ladder, cut_off_in_a_call(ladder, SessionStatus.COMPLETED, None)) == []
