"""An older database that holds records is brought up to date, and everything in it can still be read."""

import pytest
from alembic import command
from sqlalchemy import insert, inspect

from supervisor.errors import SchemaOutdated
from supervisor.model.cycle import Cycle, CycleStatus, Trigger
from supervisor.model.permission import Decision, ToolCall, Verdict
from supervisor.model.session import SessionStatus
from supervisor.store import HEAD, Store, check, open_store, upgrade
from supervisor.store.declared import declared_schema
from supervisor.store.engine import SqliteFile, connect, locate, prepare_file
from supervisor.store.mapping import event_values, new_session_values
from supervisor.store.migrate import configuration
from supervisor.store.tables import CYCLES, EVENTS, SESSIONS
from tests.store.ledger import LIMITS, restart
from tests.store.store_examples import NOON, OWNER, new_session, text_event

CYCLE = Cycle(
    id=1, schedule="default", trigger=Trigger.MANUAL, status=CycleStatus.RUNNING, dry_run=False, started_at=NOON
)


@pytest.fixture
def first_schema(empty_url: str) -> str:
    """A database as the first opsladder left it, in the middle of a cycle."""
    location = locate(empty_url)
    if isinstance(location, SqliteFile):
        prepare_file(location)
    database = connect(location)
    with database.writing() as connection:
        command.upgrade(configuration(connection), "0001")
        assert set(inspect(connection).get_table_names()) == {"alembic_version", "cycles", "events", "sessions"}
        cycle = {
            "schedule": CYCLE.schedule,
            "trigger": CYCLE.trigger,
            "status": CYCLE.status,
            "dry_run": CYCLE.dry_run,
            "started_at": CYCLE.started_at,
            "owner_host": OWNER.host,
            "owner_pid": OWNER.pid,
            "owner_started": OWNER.started,
        }
        connection.execute(insert(CYCLES).values(cycle))
        known = {column["name"] for column in inspect(connection).get_columns("sessions")}
        session = {name: value for name, value in new_session_values(new_session(CYCLE)).items() if name in known}
        connection.execute(insert(SESSIONS).values(session))
        connection.execute(insert(EVENTS).values(event_values(1, text_event("Hello.", session_id=1))))
    database.close()
    return empty_url


def assert_all_is_there(store: Store) -> None:
    assert store.running_cycles() == [(CYCLE, OWNER)]
    (session,) = store.chain(1).sessions
    assert session.status is SessionStatus.CREATED
    assert [event.text for event in store.events(session_id=1)] == ["Hello."]


def test_a_database_with_records_is_upgraded_and_keeps_them(first_schema: str) -> None:
    assert (check(first_schema).current, check(first_schema).ok) == ("0001", False)
    upgrade(first_schema)
    assert (check(first_schema).current, check(first_schema).ok) == (HEAD, True)
    with open_store(first_schema) as store:
        assert_all_is_there(store)
        call = ToolCall(tool_use_id="toolu_1", tool="Bash", input={})
        decision = Decision(verdict=Verdict.ALLOW, rule="r", sentence="s")
        store.record_call(session=1, cycle=1, call=call, text="", decision=decision, now=NOON)
        store.take_slot(actions=restart("web"), limits=LIMITS, session=1, tool_use_id="toolu_1")
        assert store.allowed(1, "toolu_1")
        assert not store.switch().paused
        assert_all_is_there(store)


def test_opening_an_older_sqlite_file_upgrades_it_and_a_server_is_left_to_its_operator(
    first_schema: str, kind: str
) -> None:
    if kind == "sqlite":
        with open_store(first_schema) as store:
            assert_all_is_there(store)
    else:
        with pytest.raises(SchemaOutdated, match=f"has schema 0001, and {HEAD} is needed"):
            open_store(first_schema)
        assert check(first_schema).current == "0001"


def test_every_table_is_made_by_the_migrations(own_url: str) -> None:
    database = connect(locate(own_url))
    with database.reading() as connection:
        assert set(declared_schema().tables) <= set(inspect(connection).get_table_names())
    database.close()
