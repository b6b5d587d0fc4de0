"""A database that goes away in mid-run: what was said is written once it is back, each thing once."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from cycles import Place, until


@contextmanager
def locked(place: Place) -> Iterator[None]:
    """Keep everyone else from writing."""
    with closing(sqlite3.connect(place.state / "opsladder.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def impatient_sqlite(place: Place) -> dict[str, str]:
    return {"OPSLADDER_STATE__DATABASE_URL": f"sqlite:///{place.state}/opsladder.db?timeout=0.1"}


def test_a_database_locked_for_a_while_costs_no_record(tmp_path, standin):
    place = Place(tmp_path, standin, ways="chatters")
    started = place.start("--json")
    place.until_recorded()

    with locked(place):
        stream = Path(place.files_left()[0])
        longer = stream.stat().st_size + 200_000
        until(lambda: stream.stat().st_size > longer, what="records wait for the lock")
        place.go_on()
        until(lambda: not [p for p in place.processes() if "standin" in p], what="the CLI is gone")
    done = started.done()

    assert done.exit_code == 0, done.err
    [chain] = place.chains()
    assert place.words_said_once(chain.sessions[0]) == int((place.work / "said").read_text()) - 1
    place.assert_nothing_left()


def test_a_database_locked_beyond_the_patience_ends_the_run_and_the_next_cycle_catches_up(tmp_path, standin):
    place = Place(tmp_path, standin, ways="chatters")
    started = place.start(patience=0.5, **impatient_sqlite(place))
    place.until_recorded()

    with locked(place):
        done = started.done()
        assert place.processes() == []
        assert len(place.files_left()) == 1

    assert done.exit_code == 1
    assert "Another process keeps it locked" in done.err
    assert "Traceback" not in done.err
    place.go_on()
    again = place.cycle()
    assert again.exit_code == 0, again.err
    [chain] = place.chains()
    session, after = chain.sessions
    assert (chain.cycle.status, after.status) == ("healthy", "completed")
    assert (session.status, session.cost_basis) == ("interrupted", "estimated")
    assert place.words_said_once(session) == session.messages - 1
    place.assert_nothing_left()


def test_a_lock_that_outlasts_the_run_s_patience_and_ends_then_is_named_as_the_reason(tmp_path, standin):
    place = Place(tmp_path, standin, ways="chatters")
    started = place.start("--json", patience=1.5, **impatient_sqlite(place))
    place.until_recorded()

    with locked(place):
        until(lambda: not [p for p in place.processes() if "standin" in p], what="the run was stopped")
    done = started.done()

    assert done.exit_code == 4, done.err
    [session] = done.document["sessions"]
    assert (session["status"], session["failure"]) == ("interrupted", "store_unavailable")
    assert "could no longer be written" in session["detail"]
    [chain] = place.chains()
    assert place.words_said_once(chain.sessions[0])
    place.assert_nothing_left()


def test_a_database_that_refuses_what_was_said_stops_the_run_and_says_so(tmp_path, standin):
    place = Place(tmp_path, standin, ways="chatters")
    started = place.start("--json")
    place.until_recorded()

    with closing(sqlite3.connect(place.state / "opsladder.db")) as other:
        refusal = "SELECT RAISE(ABORT, 'no more words')"
        other.execute(f"CREATE TRIGGER t BEFORE INSERT ON events WHEN NEW.kind = 'text' BEGIN {refusal}; END")
    done = started.done()

    assert done.exit_code == 4, done.err
    assert "no more words" in done.err
    [session] = done.document["sessions"]
    assert (session["status"], session["failure"]) == ("interrupted", "store_unavailable")
    assert (done.document["cycle"]["status"], done.document["cycle"]["reason"]) == ("paused", "interrupted")
    place.assert_nothing_left()
