"""`opsladder sweep`: what it says and does, and what `opsladder session` says of an archived record."""

import datetime as dt
import fcntl
import os

from supervisor.model.cycle import CycleStatus
from supervisor.model.session import Session, SessionStatus
from supervisor.store import open_store
from tests.cli.command_line import OPSLADDER, CommandLine
from tests.cli.terminal import run_on_terminal
from tests.store.store_examples import add_session, begin, end, text_event

NOTHING = {
    "under_way": False,
    "expired": 0,
    "expired_approvals": 0,
    "archived_cycles": 0,
    "archived_bytes": 0,
    "pruned_cycles": 0,
    "removed_archives": 0,
    "removed_files": 0,
    "pruned_deliveries": 0,
}


def ran(opsladder: CommandLine, *, days_ago: int, status: SessionStatus = SessionStatus.COMPLETED) -> Session:
    """A session of a cycle that ended so many days ago and said something."""
    opsladder.state.mkdir(mode=0o700, exist_ok=True)
    at = dt.datetime.now(dt.UTC) - dt.timedelta(days=days_ago)
    with open_store(f"sqlite:///{opsladder.state}/opsladder.db") as store:
        cycle = begin(store, now=at)
        session = add_session(store, cycle, created_at=at)
        store.append_events(cycle.id, [text_event("what was said", session_id=session.id)])
        end(store, session, status, ended_at=at)
        store.finish_cycle(cycle.id, status=CycleStatus.HEALTHY, reason=None, detail=None, now=at)
        return store.session(session.id)


def test_before_anything_has_run_there_is_nothing_to_do_and_nothing_is_made(opsladder: CommandLine) -> None:
    done = opsladder.run("sweep")
    assert (done.exit_code, done.out, done.err) == (0, "Nothing to do.\n", "")
    assert not opsladder.state.exists()


def test_each_thing_that_was_done_has_a_line_and_the_second_time_there_is_nothing_left(
    opsladder: CommandLine,
) -> None:
    ran(opsladder, days_ago=400)
    ran(opsladder, days_ago=40)
    ran(opsladder, days_ago=2, status=SessionStatus.INTERRUPTED)
    (opsladder.state / "streams").mkdir()
    (opsladder.state / "streams" / "1.jsonl").write_text("{}")

    done = opsladder.run("sweep")

    assert (done.exit_code, done.err) == (0, "")
    expired, removed, archived, pruned = done.out.splitlines()
    assert expired == "1 session expired: nobody went on with what was cut off."
    assert removed == "1 file left behind removed."
    assert archived.startswith("Messages of 2 cycles archived (")
    assert pruned == "Records of 1 cycle pruned; their totals stay."
    assert opsladder.run("sweep").out == "Nothing to do.\n"


def test_with_json_the_counts_are_one_document(opsladder: CommandLine) -> None:
    ran(opsladder, days_ago=40)

    done = opsladder.run("sweep", "--json")

    assert (done.exit_code, done.err) == (0, "")
    document = done.document
    assert document.pop("archived_bytes") > 0
    assert {**document, "archived_bytes": 0} == {"schema": "opsladder.sweep/1", **NOTHING, "archived_cycles": 1}
    assert opsladder.run("sweep", "--json").document == {"schema": "opsladder.sweep/1", **NOTHING}


def test_while_another_is_under_way_it_says_so(opsladder: CommandLine) -> None:
    ran(opsladder, days_ago=40)
    descriptor = os.open(opsladder.state / "sweep.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        done = opsladder.run("sweep")
    finally:
        os.close(descriptor)
    assert (done.exit_code, done.out) == (0, "Another sweep is under way: it does what there is to do.\n")
    assert opsladder.run("sweep").out.startswith("Messages of 1 cycle archived")


def test_on_a_terminal_progress_is_drawn_and_gone_at_the_end(opsladder: CommandLine) -> None:
    ran(opsladder, days_ago=40)
    env = {**opsladder.environment(), "TERM": "xterm-256color"}

    seen = run_on_terminal([str(OPSLADDER), "sweep"], size=(80, 24), env=env, cwd=opsladder.work)

    assert seen.exit_code == 0
    assert "cycles archived, 0 pruned" in seen.raw
    assert "0 pruned" not in seen.screen
    assert seen.screen.strip().startswith("Messages of 1 cycle archived")


def test_retention_is_set_by_days(opsladder: CommandLine) -> None:
    ran(opsladder, days_ago=4)
    assert opsladder.run("sweep").out == "Nothing to do.\n"
    done = opsladder.run("sweep", OPSLADDER_RETENTION__MESSAGES_DAYS="3")
    assert done.out.startswith("Messages of 1 cycle archived")


def test_less_than_a_day_is_refused_by_name(opsladder: CommandLine) -> None:
    done = opsladder.run("sweep", OPSLADDER_RETENTION__RECORDS_DAYS="0.5")
    assert done.exit_code == 2
    assert "OPSLADDER_RETENTION__RECORDS_DAYS" in done.err


def test_a_record_whose_messages_are_archived_says_where_they_are(opsladder: CommandLine) -> None:
    session = ran(opsladder, days_ago=40)
    assert "archive" not in opsladder.run("session", str(session.id)).out
    assert opsladder.run("session", str(session.id), "--json").document["archive"] is None
    opsladder.run("sweep")
    [file] = opsladder.state.glob("archive/*/cycle-1.jsonl.gz")

    shown = opsladder.run("session", str(session.id))
    assert "Its messages and tool calls were archived:" in shown.out
    assert str(file) in shown.out.splitlines()
    assert opsladder.run("session", str(session.id), "--json").document["archive"] == str(file)
    file.unlink()
    assert f"{file} (not here)" in opsladder.run("session", str(session.id)).out
