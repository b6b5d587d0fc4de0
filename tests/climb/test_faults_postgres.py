"""A PostgreSQL server that goes away in mid-run: what was said is written once it is back, each thing once."""

from collections.abc import Iterator

import pytest
from commit_cutter import CommitCutter
from cycles import Place, until
from postgres import ON_POSTGRES, Postgres, running_postgres

from supervisor.store import upgrade

pytestmark = list(ON_POSTGRES)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def database(postgres: Postgres) -> str:
    url = postgres.new_database()
    upgrade(url)
    return url


def test_a_server_that_crashes_and_comes_back_costs_no_record(tmp_path, standin, postgres, database):
    place = Place(tmp_path, standin, ways="chatters", database=database)
    started = place.start("--json")
    place.until_recorded()

    postgres.crash()
    place.go_on()
    until((place.work / "said").exists, what="the run ended")
    postgres.start()
    done = started.done()

    assert done.exit_code == 0, done.err
    [chain] = place.chains()
    assert place.words_said_once(chain.sessions[0]) == int((place.work / "said").read_text()) - 1
    place.assert_nothing_left()


def test_a_server_gone_for_good_is_a_sentence_and_back_again_the_cycle_goes_on(tmp_path, standin, postgres, database):
    place = Place(tmp_path, standin, ways="chatters", database=database)
    started = place.start(patience=0.5)
    place.until_recorded()

    postgres.crash()
    try:
        done = started.done()
        refused = place.cycle()
    finally:
        postgres.start()

    for failed in (done, refused):
        assert failed.exit_code == 1
        assert "Check that the server runs and that state.database_url is right." in failed.err
        assert "Traceback" not in failed.err
    assert place.processes() == []
    place.go_on()
    assert place.cycle().exit_code == 0
    [chain] = place.chains()
    cut_off, after = chain.sessions
    assert (chain.cycle.status, cut_off.status, after.status) == ("healthy", "interrupted", "completed")
    assert place.words_said_once(cut_off) == cut_off.messages - 1
    place.assert_nothing_left()


def test_a_commit_whose_answer_was_lost_is_not_made_twice(tmp_path, standin, postgres, database):
    place = Place(tmp_path, standin, ways="needs needs healthy", database=database)

    with CommitCutter(database, every=7) as cutter:
        done = place.cycle("--json", "--fresh-session", OPSLADDER_STATE__DATABASE_URL=cutter.url)

    assert cutter.cut > 3
    assert done.exit_code == 0, done.err
    [chain] = place.chains()
    assert [(s.tier, s.status) for s in chain.sessions] == [(1, "completed"), (2, "completed"), (3, "completed")]
    for session in chain.sessions:
        kinds = [e.kind for e in place.events(session) if e.kind != "prompt"]
        assert kinds == ["text", "tool_use", "tool_result"]
    place.assert_nothing_left()
