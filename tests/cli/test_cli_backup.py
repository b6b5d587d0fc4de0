"""`opsladder backup` and `opsladder restore`, as a person or a script uses them."""

import gzip
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from supervisor.store import HEAD
from tests.cli.command_line import OPSLADDER, CommandLine, as_ordinary_user, command_line
from tests.cli.terminal import run_on_terminal


@pytest.fixture
def elsewhere(tmp_path: Path) -> CommandLine:
    """`opsladder` in a place where nothing was ever recorded."""
    return command_line(tmp_path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "records.gz"


def test_what_was_backed_up_is_there_after_the_restore(
    recorded: CommandLine, elsewhere: CommandLine, file: Path
) -> None:
    done = recorded.run("backup", str(file))
    assert (done.exit_code, done.err) == (0, "")
    assert done.out.startswith(f"The SQLite database {recorded.state}/opsladder.db is backed up.\n{file}: ")
    assert f" of schema {HEAD}, verified\n" in done.out
    assert ["cycles", "4"] in [line.split() for line in done.out.splitlines()]

    restored = elsewhere.run("restore", str(file))

    assert (restored.exit_code, restored.err) == (0, "")
    assert restored.out.startswith(f"The SQLite database {elsewhere.state}/opsladder.db is restored as it was on ")
    assert restored.out.splitlines()[1:] == done.out.splitlines()[1:]
    for question in (("chains", "--json"), ("chain", "1", "--json"), ("session", "3", "--json"), ("cost", "--json")):
        assert elsewhere.run(*question).document == recorded.run(*question).document


def test_a_script_gets_one_document(recorded: CommandLine, elsewhere: CommandLine, file: Path) -> None:
    written = recorded.run("backup", "--json", str(file)).document
    restored = elsewhere.run("restore", "--json", str(file)).document

    assert (written["schema"], written["action"]) == ("opsladder.backup-summary/1", "backup")
    assert (written["rows"]["cycles"], written["rows"]["sessions"], written["verified"]) == (4, 4, True)
    assert written["total_rows"] == sum(written["rows"].values())
    assert (written["file"], written["bytes"]) == (str(file), file.stat().st_size)
    assert written["written_at"].endswith("Z")
    assert json.loads(gzip.decompress(file.read_bytes()).splitlines()[-1])["sha256"] == written["sha256"]
    other = {"action": "restore", "database": f"SQLite database {elsewhere.state}/opsladder.db"}
    assert restored == written | other


def test_a_file_is_named_from_where_the_command_is_run(elsewhere: CommandLine) -> None:
    elsewhere.run("db", "upgrade")

    done = elsewhere.run("backup", "records.gz", "--json")

    assert done.exit_code == 0, done.err
    assert done.document["file"] == str(elsewhere.work / "records.gz")
    assert (elsewhere.work / "records.gz").exists()


def test_a_second_backup_under_the_same_name_is_refused_and_the_first_stays(recorded: CommandLine, file: Path) -> None:
    recorded.run("backup", str(file))
    first = file.read_bytes()

    again = recorded.run("backup", str(file), "--json")

    assert (again.exit_code, again.out) == (2, "")
    assert again.err == (
        f"opsladder: {file} already exists. Give another name: a backup never takes another file's place.\n"
    )
    assert file.read_bytes() == first


def test_a_restore_over_records_is_refused_and_they_stay(recorded: CommandLine, file: Path) -> None:
    recorded.run("backup", str(file))
    before = recorded.run("chains", "--json").document

    done = CommandLine(directory=recorded.directory, env=recorded.env).run("restore", str(file))

    assert (done.exit_code, done.out) == (1, "")
    assert "already holds records (" in done.err
    assert "Set state.database_url to a new database, or move a SQLite file away" in done.err
    assert CommandLine.run(recorded, "chains", "--json").document == before


def test_a_damaged_file_is_refused_and_makes_no_database(
    recorded: CommandLine, elsewhere: CommandLine, file: Path
) -> None:
    recorded.run("backup", str(file))
    file.write_bytes(file.read_bytes()[:-20])

    done = elsewhere.run("restore", str(file))

    assert (done.exit_code, done.out) == (1, "")
    assert done.err == f"opsladder: The backup {file} is damaged: its end is missing. Use another backup.\n"
    assert not elsewhere.state.exists()


def test_where_nothing_was_recorded_there_is_nothing_to_back_up(elsewhere: CommandLine, file: Path) -> None:
    done = elsewhere.run("backup", str(file))

    assert (done.exit_code, done.out) == (1, "")
    assert "has not been set up yet" in done.err
    assert not file.exists()
    assert not elsewhere.state.exists()


def test_a_directory_that_may_not_be_written_is_named(recorded: CommandLine, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)

    done = recorded.run("backup", str(closed / "records.gz"), by=as_ordinary_user())

    assert done.exit_code == 1
    assert f"The backup {closed}/records.gz cannot be written: Permission denied. Nothing of it is kept." in done.err
    assert "Traceback" not in done.err


def test_a_person_sees_how_far_it_is_and_in_the_end_only_the_result(elsewhere: CommandLine, file: Path) -> None:
    elsewhere.run("pause")
    with closing(sqlite3.connect(elsewhere.state / "opsladder.db")) as connection:
        connection.executemany(
            "INSERT INTO switch (paused, at, turned_by) VALUES (0, '2026-03-01 12:00:00.000000', ?)",
            [(str(number),) for number in range(30_000)],
        )
        connection.commit()

    seen = run_on_terminal(
        [str(OPSLADDER), "backup", str(file)],
        size=(300, 40),
        env=elsewhere.environment(TERM="xterm-256color", COLUMNS=""),
        cwd=elsewhere.work,
    )

    assert seen.exit_code == 0, seen.screen
    assert re.search(r"\d,000 rows (written|checked)…", seen.raw)
    assert "…" not in seen.screen
    assert "30001 rows of schema" in seen.screen
