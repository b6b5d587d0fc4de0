"""`opsladder metrics`: on stdout, or in a file that another user may read and that is never there by half."""

import stat
from pathlib import Path

import pytest
from test_metrics import climb

from supervisor.store import open_store
from tests.cli.command_line import CommandLine, command_line
from tests.web.prometheus import promtool

COST = 'opsladder_cost_usd_total{model="opus",tier="3"} 2.0\n'


@pytest.fixture
def opsladder(tmp_path: Path) -> CommandLine:
    return command_line(tmp_path)


@pytest.fixture
def with_records(opsladder: CommandLine) -> CommandLine:
    opsladder.state.mkdir(mode=0o700)
    with open_store(f"sqlite:///{opsladder.state}/opsladder.db") as store:
        climb(store)
    return opsladder


def test_it_prints_what_the_records_say(with_records: CommandLine) -> None:
    done = with_records.run("metrics")
    assert (done.exit_code, done.err) == (0, "")
    assert COST in done.out
    assert promtool("check", "metrics", given=done.out).returncode == 0


def test_where_nothing_has_run_everything_is_0_and_nothing_is_made(opsladder: CommandLine) -> None:
    done = opsladder.run("metrics")
    assert (done.exit_code, done.err) == (0, "")
    assert 'opsladder_cycles_total{schedule="default",status="healthy"} 0.0\n' in done.out
    assert not opsladder.state.exists()


def test_a_textfile_says_the_same_and_can_be_read_by_others(with_records: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "opsladder.prom"
    done = with_records.run("metrics", "--textfile", str(file))
    assert (done.exit_code, done.out, done.err) == (0, "", "")
    assert COST in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_a_textfile_is_replaced_and_nothing_else_is_left_beside_it(with_records: CommandLine, tmp_path: Path) -> None:
    directory = tmp_path / "textfiles"
    directory.mkdir()
    file = directory / "opsladder.prom"
    file.write_text("old")
    assert with_records.run("metrics", "--textfile", str(file)).exit_code == 0
    assert COST in file.read_text()
    assert list(directory.iterdir()) == [file]


def test_a_textfile_that_cannot_be_written_is_said_in_a_sentence(opsladder: CommandLine, tmp_path: Path) -> None:
    done = opsladder.run("metrics", "--textfile", str(tmp_path / "nowhere" / "opsladder.prom"))
    assert (done.exit_code, done.out) == (1, "")
    assert f"{tmp_path}/nowhere/opsladder.prom cannot be written: No such file or directory." in done.err


def test_a_store_that_cannot_be_read_is_said_in_a_sentence(opsladder: CommandLine) -> None:
    opsladder.state.mkdir()
    (opsladder.state / "opsladder.db").write_text("not a database, but long enough to be looked at " * 20)
    done = opsladder.run("metrics")
    assert (done.exit_code, done.out) == (1, "")
    assert "cannot be used" in done.err
