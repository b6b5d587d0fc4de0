"""A look into the cooldown ledger, and a way to let time pass in it. Does I/O.

The store counts by the database's clock, so a test makes the slots older instead of the time later.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from sqlalchemy import Connection, select, update

from supervisor.model.guarding import CooldownLimit
from supervisor.model.permission import ActionKind, ServiceAction
from supervisor.store.clock import database_now
from supervisor.store.engine import connect, locate
from supervisor.store.guard_tables import SERVICE_ACTIONS

LIMITS = {
    ActionKind.RESTART: CooldownLimit(max=2, window=timedelta(hours=4)),
    ActionKind.REDEPLOY: CooldownLimit(max=1, window=timedelta(hours=24)),
}


def restart(*services: str) -> list[ServiceAction]:
    return [ServiceAction(kind=ActionKind.RESTART, service=service) for service in services]


def redeploy(*services: str) -> list[ServiceAction]:
    return [ServiceAction(kind=ActionKind.REDEPLOY, service=service) for service in services]


@contextmanager
def _opened(url: str) -> Iterator[Connection]:
    database = connect(locate(url))
    try:
        with database.writing() as connection:
            yield connection
    finally:
        database.close()


def slots(url: str) -> list[tuple[str, str, datetime, datetime | None]]:
    """Kind, service, when it was taken and when it was cleared, in the order of taking."""
    columns = SERVICE_ACTIONS.c
    statement = select(columns.kind, columns.service, columns.at, columns.cleared_at).order_by(columns.id)
    with _opened(url) as connection:
        return [(row.kind, row.service, row.at, row.cleared_at) for row in connection.execute(statement)]


def clock(url: str) -> datetime:
    with _opened(url) as connection:
        return database_now(connection)


def let_pass(url: str, time: timedelta) -> None:
    """Make every slot older."""
    with _opened(url) as connection:
        for row in connection.execute(select(SERVICE_ACTIONS.c.id, SERVICE_ACTIONS.c.at)).all():
            older = update(SERVICE_ACTIONS).where(SERVICE_ACTIONS.c.id == row.id).values(at=row.at - time)
            connection.execute(older)
