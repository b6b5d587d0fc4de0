"""The health of services from cycle to cycle. Does I/O. Called from ``climb`` at a cycle's end, and from ``cli``."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import RowMapping, select, update

from supervisor.decide.health import Found
from supervisor.model.guarding import ServiceRecord
from supervisor.model.permission import ServiceAction
from supervisor.model.report import Health
from supervisor.store.clock import database_now
from supervisor.store.columns import storable
from supervisor.store.cooldowns import Limits, Taken, lock_services, taken, use_of
from supervisor.store.engine import Database
from supervisor.store.guard_tables import OPEN, SERVICE_ACTIONS, SERVICES
from supervisor.store.mapping import Values

_CLEARED_AFTER_CYCLES = 2


class Services:
    """The services of a ``Store``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record_health(self, cycle: int, services: Mapping[str, Found], now: datetime) -> tuple[str, ...]:
        """Keep what a cycle found. Two healthy cycles in a row clear a service's cooldowns: returns those cleared.

        What a cycle says once more, after a later one, or after an action of its own can end a streak, but never
        lengthen it.
        """
        found = {storable(name): one for name, one in services.items()}
        if not found:
            return ()
        with self._database.writing() as connection:
            lock_services(connection, found)
            rows = connection.execute(select(SERVICES).where(SERVICES.c.name.in_(sorted(found)))).mappings().all()
            healed = []
            for row in rows:
                values = _after(row, cycle, found[row["name"]], now)
                connection.execute(update(SERVICES).where(SERVICES.c.name == row["name"]).values(values))
                if values["healthy_streak"] >= _CLEARED_AFTER_CYCLES:
                    healed.append(row["name"])
            clear = update(SERVICE_ACTIONS).where(SERVICE_ACTIONS.c.service.in_(healed), OPEN).values(cleared_at=now)
            cleared = connection.execute(clear.returning(SERVICE_ACTIONS.c.service)).scalars()
            return tuple(sorted(set(cleared)))

    def services(self, limits: Limits) -> list[ServiceRecord]:
        """Every service that was ever reported or acted on, by name, with its use of each limit."""
        with self._database.reading() as connection:
            found = taken(connection, limits, database_now(connection))
            rows = connection.execute(select(SERVICES).order_by(SERVICES.c.name)).mappings().all()
        return [_service_of(row, limits, found) for row in rows]


def _after(row: RowMapping, cycle: int, found: Found, now: datetime) -> Values:
    """The columns of a service after a cycle has reported it."""
    last: int | None = row["last_cycle"]
    is_news = last is None or cycle > last
    streak = row["healthy_streak"] + is_news if found.well_throughout else 0
    return {
        "status": found.status,
        "healthy_streak": streak,
        "since": row["since"] if row["status"] == found.status else now,
        "last_cycle": cycle if is_news else last,
    }


def _service_of(row: RowMapping, limits: Limits, found: Taken) -> ServiceRecord:
    actions = [ServiceAction(kind=kind, service=row["name"]) for kind in limits]
    return ServiceRecord(
        name=row["name"],
        status=None if row["status"] is None else Health(row["status"]),
        healthy_streak=row["healthy_streak"],
        since=row["since"],
        last_cycle=row["last_cycle"],
        cooldowns=tuple(use_of(action, limits[action.kind], found.get(action, ())) for action in actions),
    )
