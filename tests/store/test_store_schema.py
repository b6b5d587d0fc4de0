"""The schema: migrated equals declared, who may change it, and what a look at it says."""

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, event, inspect, text

from supervisor.errors import ConfigError, SchemaOutdated
from supervisor.store import HEAD, check, open_store, upgrade
from supervisor.store.declared import declared_schema
from supervisor.store.engine import locate
from supervisor.store.migrate import configuration
from tests.postgres import Postgres
from tests.store.races import race
from tests.store.store_examples import begin


def run_sql(url: str, statement: str) -> None:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


def reflected(url: str) -> dict[str, object]:
    """Everything the database itself says about our tables."""
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    inspector = inspect(engine)
    found = {
        table: {
            "columns": [column | {"type": str(column["type"])} for column in inspector.get_columns(table)],
            "key": inspector.get_pk_constraint(table),
            "foreign keys": sorted(map(str, inspector.get_foreign_keys(table))),
            "unique": sorted(map(str, inspector.get_unique_constraints(table))),
            "checks": sorted(map(str, inspector.get_check_constraints(table))),
            "indexes": sorted(
                str(index | {"dialect_options": {k: str(v) for k, v in index["dialect_options"].items()}})
                for index in inspector.get_indexes(table)
            ),
        }
        for table in declared_schema().tables
    }
    engine.dispose()
    return found


def test_the_migrated_schema_is_the_declared_one(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if kind == "sqlite":
        migrated, declared = f"sqlite:///{tmp_path}/migrated.db", f"sqlite:///{tmp_path}/declared.db"
    else:
        server: Postgres = request.getfixturevalue("postgres")
        migrated, declared = server.new_database(), server.new_database()
    upgrade(migrated)
    engine = create_engine(declared.replace("postgresql://", "postgresql+psycopg://"))
    declared_schema().create_all(engine)
    engine.dispose()

    assert reflected(migrated) == reflected(declared)
    assert "running" in str(reflected(migrated)["cycles"])
    assert "cleared_at IS NULL" in str(reflected(migrated)["service_actions"])


def test_the_head_constant_is_alembics_head() -> None:
    assert ScriptDirectory.from_config(configuration()).get_current_head() == HEAD


def test_an_upgraded_database_is_found_up_to_date(url: str) -> None:
    state = check(url)
    assert (state.current, state.head, state.ok) == (HEAD, HEAD, True)
    assert "up to date" in state.detail


def test_upgrading_twice_changes_nothing(own_url: str) -> None:
    before = reflected(own_url)
    upgrade(own_url)
    assert reflected(own_url) == before


def test_a_missing_column_is_found(own_url: str) -> None:
    run_sql(own_url, "ALTER TABLE sessions DROP COLUMN epoch")
    state = check(own_url)
    assert not state.ok
    assert "sessions.epoch" in state.detail


def test_a_dropped_index_is_found(own_url: str) -> None:
    run_sql(own_url, "DROP INDEX uq_cycles_running")
    assert "uq_cycles_running" in check(own_url).detail


def test_tables_of_others_do_not_matter(own_url: str) -> None:
    run_sql(own_url, "CREATE TABLE theirs (id INTEGER PRIMARY KEY)")
    assert check(own_url).ok


def test_a_newer_schema_is_refused_by_everything(own_url: str) -> None:
    run_sql(own_url, "UPDATE alembic_version SET version_num = '9999'")
    for refuse in (open_store, upgrade):
        with pytest.raises(SchemaOutdated, match="newer opsladder") as refused:
            refuse(own_url)
        assert refused.value.remedy == "Upgrade opsladder."
    assert not check(own_url).ok


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_postgresql_is_never_migrated_by_opening_it(postgres: Postgres) -> None:
    url = postgres.new_database()
    with pytest.raises(SchemaOutdated) as refused:
        open_store(url)
    assert refused.value.remedy == "Run opsladder db upgrade."
    assert check(url).current is None
    upgrade(url)
    open_store(url).close()


def test_sqlite_is_made_by_opening_it_and_for_this_user_only(sqlite_url: str, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with open_store(sqlite_url) as store:
            begin(store)
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()}
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert modes == {"opsladder.db": 0o600, "opsladder.db-wal": 0o600, "opsladder.db-shm": 0o600}


def test_sqlite_is_not_made_when_the_caller_does_not_want_it(sqlite_url: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaOutdated) as refused:
        open_store(sqlite_url, create=False)
    assert refused.value.remedy == "Run opsladder db upgrade."
    assert list(tmp_path.iterdir()) == []


def test_an_empty_sqlite_file_is_migrated_by_opening_it(tmp_path: Path) -> None:
    (tmp_path / "touched.db").touch()
    open_store(f"sqlite:///{tmp_path}/touched.db").close()
    assert check(f"sqlite:///{tmp_path}/touched.db").ok


def test_sqlite_logs_ahead_waits_for_the_disk_and_keeps_references_intact(sqlite_url: str) -> None:
    open_store(sqlite_url).close()
    found: list[object] = []

    def look(connection: sqlite3.Connection, _record: object) -> None:
        for pragma in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout"):
            found.extend(connection.execute(f"PRAGMA {pragma}").fetchone())

    event.listen(Engine, "connect", look)
    try:
        open_store(sqlite_url).close()
    finally:
        event.remove(Engine, "connect", look)
    full = 2
    assert found == ["wal", full, 1, 5000]


def test_looking_at_a_missing_sqlite_file_makes_nothing(sqlite_url: str, tmp_path: Path) -> None:
    state = check(sqlite_url)
    assert (state.current, state.ok) == (None, False)
    assert list(tmp_path.iterdir()) == []


def test_looking_at_a_sqlite_file_changes_nothing(sqlite_url: str, tmp_path: Path) -> None:
    with open_store(sqlite_url) as store:
        begin(store)
    before = {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()}
    assert check(sqlite_url).ok
    assert {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()} == before


def test_looking_at_a_sqlite_file_in_use_sees_what_was_committed(sqlite_url: str) -> None:
    with open_store(sqlite_url) as store:
        begin(store)
        assert check(sqlite_url).ok


SET_UP_AT_A_SIGNAL = """
import sys
import supervisor.store.migrate
from supervisor.store import open_store, upgrade
print("ready", flush=True)
sys.stdin.readline()
if sys.argv[1].startswith("postgresql"):
    upgrade(sys.argv[1])
open_store(sys.argv[1]).close()
print("opened", flush=True)
"""


def test_processes_that_set_up_a_new_database_at_once_all_succeed(empty_url: str) -> None:
    assert race(SET_UP_AT_A_SIGNAL, empty_url) == ["opened"] * 4
    assert check(empty_url).ok


def test_opening_a_migrated_database_does_not_load_alembic(sqlite_url: str) -> None:
    open_store(sqlite_url).close()
    program = (
        "import sys; from supervisor.store import open_store; open_store(sys.argv[1]).close();"
        "print({'alembic', 'sqlalchemy.dialects.postgresql'} & set(sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", program, sqlite_url], capture_output=True, text=True, check=True)
    assert told.stdout == "set()\n"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        pytest.param("sqlite://", "names no file", id="memory"),
        pytest.param("sqlite:///:memory:", "names no file", id="named memory"),
        pytest.param("mysql://u:secret@h/d", "asks for mysql", id="another database"),
        pytest.param("secret", "cannot be read", id="not a URL"),
        pytest.param("postgresql://u:secret@h:port/d", "cannot be read", id="a port that is no number"),
    ],
)
def test_a_url_that_cannot_be_used_is_a_configuration_error_without_the_url(url: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        open_store(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_spelling_of_postgresql_means_the_same_driver(scheme: str) -> None:
    location = locate(f"{scheme}://user:secret@db.example:5433/ops")
    assert location.url.drivername == "postgresql+psycopg"
    assert location.name == "PostgreSQL database ops at db.example:5433"
