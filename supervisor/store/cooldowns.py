"""The ledger of restarts and redeployments. Does I/O. Called from ``guard`` for every call that amounts to one.

A slot is taken before the call runs, so attempts count, also those that fail. Whoever takes or clears slots of a
service holds that service's row: of two that want the last one, the later sees that it is gone. SQLite's writers take
turns anyway.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, bindparam, insert, select, text, update

from supervisor.errors import Conflict, NotFound
from supervisor.model.guarding import CooldownLimit, CooldownUse, Granted, Refused, Slot
from supervisor.model.permission import ActionKind, ServiceAction
from supervisor.store.clock import database_now
from supervisor.store.columns import AnyText, storable
from supervisor.store.engine import Database
from supervisor.store.guard_tables import OPEN, SERVICE_ACTIONS, SERVICES
from supervisor.store.tables import SESSIONS

Limits = Mapping[ActionKind, CooldownLimit]
Taken = Mapping[ServiceAction, Sequence[datetime]]

_NEVER = datetime.max.replace(tzinfo=UTC)

# In SQL: SQLAlchemy has a statement of its own for each dialect, and loading both takes long. Changing nothing in a row
# that is there locks it.
_LOCK = text(
    "INSERT INTO services (name, healthy_streak) VALUES (:name, 0) "
    "ON CONFLICT (name) DO UPDATE SET name = excluded.name"
).bindparams(bindparam("name", type_=AnyText()))


class Cooldowns:
    """The cooldowns of a ``Store``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def take_slot(self, *, actions: Sequence[ServiceAction], limits: Limits, session: int, tool_use_id: str) -> Slot:
        """Take a slot for each action of a call, or for none of them. ``limits`` names every kind among the actions.

        A call of the same session that has its slots keeps them and takes no more; ``Conflict`` when it now amounts to
        something else than it did then.
        """
        wanted = Counter(ServiceAction(kind=action.kind, service=storable(action.service)) for action in actions)
        if not wanted:
            return Granted()
        with self._database.writing() as connection:
            cycle = connection.execute(select(SESSIONS.c.cycle_id).where(SESSIONS.c.id == session)).scalar()
            if cycle is None:
                raise NotFound(f"There is no session {session}.")
            services = {action.service for action in wanted}
            lock_services(connection, services)
            held = _held(connection, session, tool_use_id)
            if held == wanted:
                return Granted()
            if held:
                raise Conflict(f"The tool call {tool_use_id} of session {session} took slots for other actions before.")
            now = database_now(connection)
            refused = max(
                _refusals(wanted, limits, taken(connection, limits, now, services)),
                key=lambda refusal: refusal.next_at or _NEVER,
                default=None,
            )
            if refused is not None:
                return refused
            _take(connection, wanted, session, tool_use_id, now)
            _forget_good_health(connection, services, cycle)
            return Granted()

    def cooldowns(self, limits: Limits) -> list[CooldownUse]:
        """Each limit that is in use at all, by service."""
        with self._database.reading() as connection:
            found = taken(connection, limits, database_now(connection))
        uses = [use_of(action, limits[action.kind], times) for action, times in found.items()]
        return sorted(uses, key=lambda use: (use.service, use.kind))


def lock_services(connection: Connection, names: Collection[str]) -> None:
    """Hold the rows of these services until the transaction ends, making those that are missing.

    Always in the same order, so that no two transactions wait for each other.
    """
    for name in sorted(names):
        connection.execute(_LOCK, {"name": name})


def taken(
    connection: Connection, limits: Limits, now: datetime, services: Collection[str] | None = None
) -> dict[ServiceAction, list[datetime]]:
    """When the slots were taken that still count, oldest first. A time that lies ahead counts too."""
    longest = max((limit.window for limit in limits.values()), default=timedelta())
    ledger = SERVICE_ACTIONS.c
    statement = select(ledger.kind, ledger.service, ledger.at).where(OPEN, ledger.at > now - longest)
    if services is not None:
        statement = statement.where(ledger.service.in_(sorted(services)))
    found: dict[ServiceAction, list[datetime]] = defaultdict(list)
    for row in connection.execute(statement.order_by(ledger.at)):
        kind = ActionKind(row.kind)
        if kind in limits and row.at > now - limits[kind].window:
            found[ServiceAction(kind=kind, service=row.service)].append(row.at)
    return found


def use_of(action: ServiceAction, limit: CooldownLimit, times: Sequence[datetime]) -> CooldownUse:
    """How much of a limit these slots use up."""
    full = len(times) >= limit.max
    return CooldownUse(
        service=action.service,
        kind=action.kind,
        used=len(times),
        limit=limit,
        next_at=limit.free_from(times) if full else None,
    )


def _held(connection: Connection, session: int, tool_use_id: str) -> Counter[ServiceAction]:
    ledger = SERVICE_ACTIONS.c
    statement = select(ledger.kind, ledger.service).where(
        ledger.session_id == session, ledger.tool_use_id == tool_use_id
    )
    return Counter(
        ServiceAction(kind=ActionKind(row.kind), service=row.service) for row in connection.execute(statement)
    )


def _refusals(wanted: Counter[ServiceAction], limits: Limits, found: Taken) -> Iterator[Refused]:
    for action, count in wanted.items():
        limit, times = limits[action.kind], found.get(action, ())
        if len(times) + count > limit.max:
            next_at = limit.free_from(times, wanted=count)
            yield Refused(service=action.service, kind=action.kind, limit=limit, next_at=next_at)


def _take(
    connection: Connection, wanted: Counter[ServiceAction], session: int, tool_use_id: str, now: datetime
) -> None:
    call = {"session_id": session, "tool_use_id": tool_use_id, "at": now}
    slots = [
        {"kind": action.kind, "service": action.service, "number": number, **call}
        for number, action in enumerate(wanted.elements(), start=1)
    ]
    connection.execute(insert(SERVICE_ACTIONS), slots)


def _forget_good_health(connection: Connection, services: Collection[str], cycle: int) -> None:
    """Begin the streak anew: it is the health after the action that clears a cooldown, from the next cycle on.

    Else a service that is restarted in every cycle, and healthy at the end of each, would never reach its limit.
    """
    named = SERVICES.c.name.in_(sorted(services))
    connection.execute(update(SERVICES).where(named).values(healthy_streak=0))
    older = SERVICES.c.last_cycle.is_(None) | (SERVICES.c.last_cycle < cycle)
    connection.execute(update(SERVICES).where(named, older).values(last_cycle=cycle))
