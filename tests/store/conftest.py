"""Real databases for the store's tests: a SQLite file and a PostgreSQL server."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from supervisor.store import Store, open_store, upgrade
from supervisor.store.declared import declared_schema
from tests.postgres import ON_POSTGRES, Postgres, running_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def migrated_in_postgres(postgres: Postgres) -> str:
    """The URL of a migrated database for many tests: making one takes PostgreSQL longer than most tests."""
    url = postgres.new_database()
    upgrade(url)
    return url


@pytest.fixture(scope="session")
def migrated_in_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("migrated") / "opsladder.db"
    upgrade(f"sqlite:///{file}")
    return file


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=ON_POSTGRES)])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a file that is not there yet."""
    return f"sqlite:///{tmp_path}/state/opsladder.db"


@pytest.fixture
def empty_url(kind: str, sqlite_url: str, request: pytest.FixtureRequest) -> str:
    """The URL of a database without a schema."""
    if kind == "sqlite":
        return sqlite_url
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def url(kind: str, sqlite_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The URL of a migrated database without records."""
    if kind == "sqlite":
        (tmp_path / "state").mkdir()
        shutil.copy(request.getfixturevalue("migrated_in_sqlite"), tmp_path / "state" / "opsladder.db")
        return sqlite_url
    shared: str = request.getfixturevalue("migrated_in_postgres")
    with psycopg.connect(shared) as connection:
        connection.execute(f"TRUNCATE {', '.join(declared_schema().tables)} RESTART IDENTITY")
    return shared


@pytest.fixture
def own_url(empty_url: str) -> str:
    """The URL of a migrated database whose schema the test may change."""
    upgrade(empty_url)
    return empty_url


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened
