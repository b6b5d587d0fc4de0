"""A database that cannot be used: what the operator is told, and that the store works again afterwards."""

import os
import pwd
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, event

from supervisor.errors import StoreError, StoreUnavailable
from supervisor.store import check, open_store, upgrade
from supervisor.store.engine import connect, locate
from tests.postgres import Postgres
from tests.store.store_examples import begin, text_event


@pytest.fixture
def file(tmp_path: Path) -> Path:
    upgrade(f"sqlite:///{tmp_path}/ops.db")
    return tmp_path / "ops.db"


def test_a_locked_sqlite_file_is_unavailable_after_the_timeout_and_works_again_later(file: Path) -> None:
    with open_store(f"sqlite:///{file}?timeout=0.05") as store, closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreUnavailable, match=r"ops\.db cannot be used: database is locked") as refused:
            begin(store)
        assert "Another process keeps it locked" in str(refused.value)
        other.rollback()
        begin(store)


def test_readers_do_not_wait_for_a_writer(file: Path) -> None:
    with open_store(f"sqlite:///{file}?timeout=0.05") as store, closing(sqlite3.connect(file)) as other:
        cycle = begin(store)
        other.execute("BEGIN IMMEDIATE")
        assert store.cycle(cycle.id) == cycle


def test_a_full_sqlite_file_is_unavailable_and_keeps_what_it_had(file: Path) -> None:
    def allow_little(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA max_page_count=40")

    event.listen(Engine, "connect", allow_little)
    try:
        with open_store(f"sqlite:///{file}") as store:
            cycle = begin(store)
            with pytest.raises(StoreUnavailable, match="database or disk is full") as refused:
                store.append_events(cycle.id, [text_event("x" * 1000)] * 1000)
            assert "Free some space" in str(refused.value)
            assert store.events(cycle_id=cycle.id) == []
    finally:
        event.remove(Engine, "connect", allow_little)


def test_a_file_that_vanished_is_unavailable_and_is_not_made_anew(file: Path) -> None:
    with open_store(f"sqlite:///{file}"):
        pass
    file.rename(file.with_suffix(".moved"))
    file.symlink_to("nowhere/at/all")
    with pytest.raises(StoreUnavailable, match="cannot be used"):
        open_store(f"sqlite:///{file}")


def test_a_file_that_is_no_database_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "ops.db").write_bytes(b"these are not the records you are looking for" * 100)
    for use in (open_store, upgrade, check):
        with pytest.raises(StoreUnavailable, match="file is not a database"):
            use(f"sqlite:///{tmp_path}/ops.db")


@pytest.fixture
def readable_directory() -> Iterator[Path]:
    """A directory with a database that this user may read and not write, whoever runs the tests."""
    directory = Path(tempfile.mkdtemp(prefix="opsladder-ro-"))
    upgrade(f"sqlite:///{directory}/ops.db")
    (directory / "ops.db").chmod(0o444)
    directory.chmod(0o555)
    was = os.geteuid()
    if was == 0:
        os.seteuid(pwd.getpwnam("nobody").pw_uid)
    try:
        yield directory
    finally:
        os.seteuid(was)
        directory.chmod(0o700)
        shutil.rmtree(directory)


def test_a_directory_that_may_not_be_written_is_unavailable_with_a_remedy(readable_directory: Path) -> None:
    for name in ("ops.db", "new.db", "deeper/new.db"):
        with pytest.raises(StoreUnavailable, match=f"{name} cannot be used") as refused:
            begin(open_store(f"sqlite:///{readable_directory}/{name}"))
        assert refused.value.remedy is not None
        assert "this user" in refused.value.remedy


def test_a_directory_that_may_not_be_entered_is_unavailable(tmp_path: Path, readable_directory: Path) -> None:
    # Under root's tests tmp_path is closed to the user that readable_directory switched to; else close one of our own.
    closed = tmp_path / "closed"
    if os.getuid() != 0:
        closed.mkdir(mode=0o000)
    for use in (open_store, upgrade, check):
        with pytest.raises(StoreUnavailable, match="Permission denied"):
            use(f"sqlite:///{closed}/ops.db")


def test_a_database_that_may_only_be_read_can_be_checked(readable_directory: Path) -> None:
    assert check(f"sqlite:///{readable_directory}/ops.db").ok


def test_a_server_that_does_not_answer_is_unavailable_and_no_password_is_told() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"postgresql://ops:hunter2@127.0.0.1:{unused.getsockname()[1]}/ops"
        for use in (open_store, upgrade, check):
            with pytest.raises(
                StoreUnavailable, match=r"PostgreSQL database ops at 127\.0\.0\.1:\d+ cannot"
            ) as refused:
                use(url)
            assert "hunter2" not in str(refused.value)
            assert "state.database_url" in str(refused.value)


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_after_a_server_crash_the_next_call_works_again(postgres: Postgres) -> None:
    url = postgres.new_database()
    upgrade(url)
    with open_store(url) as store:
        cycle = begin(store)
        postgres.crash()
        try:
            with pytest.raises(StoreUnavailable):
                store.cycle(cycle.id)
        finally:
            postgres.start()
        assert store.cycle(cycle.id) == cycle
        postgres.crash()
        postgres.start()
        store.append_events(cycle.id, [text_event("after a restart nobody noticed")])


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_a_record_locked_by_another_session_is_unavailable_after_the_timeout(postgres: Postgres) -> None:
    url = postgres.new_database()
    upgrade(url)
    with open_store(f"{url}&options=-c%20lock_timeout=50ms") as store, psycopg.connect(url) as other:
        begin(store)
        other.execute("LOCK TABLE cycles")
        with pytest.raises(StoreUnavailable, match="lock timeout") as refused:
            begin(store, "nightly")
        assert "keeps the record locked" in str(refused.value)
        other.rollback()
        begin(store, "nightly")


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_a_call_that_waits_for_a_host_that_is_gone_finds_out_unless_the_url_says_otherwise(postgres: Postgres) -> None:
    url = postgres.new_database()
    for given, idle in ((url, "15"), (f"{url}&keepalives_idle=60", "60")):
        database = connect(locate(given))
        with database.reading() as connection:
            line = connection.connection.driver_connection
            assert isinstance(line, psycopg.Connection)
            asked = line.info.get_parameters()
        database.close()
        assert (asked["keepalives_idle"], asked["keepalives_interval"], asked["keepalives_count"]) == (idle, "5", "3")


def test_secrets_in_values_do_not_get_into_errors(file: Path) -> None:
    with open_store(f"sqlite:///{file}") as store, pytest.raises(StoreError) as refused:
        store.append_events(1, [text_event("hunter2")])
    cause: BaseException | None = refused.value
    while cause is not None:
        assert "hunter2" not in str(cause)
        cause = cause.__cause__
