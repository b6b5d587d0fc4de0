"""What people are told, and whether it has arrived. Does I/O. Called from ``notify`` and ``cli``.

Messages are made from the notices that are on record, so that nothing has to be sent while a cycle runs and nothing is
lost with a process. Each notice becomes one message at most, whoever collects it: that is decided under one lock, and
its event's id is unique.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, delete, func, insert, or_, select, text, update

from supervisor.decide.telling import HELD_BACK, Earlier, Message, judge, message, with_held_back
from supervisor.model.cycle import EventKind
from supervisor.model.delivery import Delivery, DeliveryStatus
from supervisor.model.report import Level
from supervisor.store.engine import Database
from supervisor.store.mapping import Values, event_of
from supervisor.store.service_tables import DELIVERIES, TALLIES
from supervisor.store.tables import CYCLES, EVENTS

# When somebody begins to use messages, the past is not told to them.
FIRST_USE = timedelta(hours=1)
# Ids are given before their transactions are committed, so PostgreSQL may show a lower one after a higher one. So what
# was looked through is looked through again, for so many events, as far as they are recent.
LOOK_BACK = 5_000
LATE = timedelta(minutes=10)
_FIRST_LOOK_BACK = 50_000
_BATCH = 200
_OF_TOPIC = 500
_AT_ONE_TIME = 1_000
_PRUNED_AT_ONCE = 200

_LOCK = text("SELECT pg_advisory_xact_lock(4712, 0)")
# Kept with the tallies: it counts events. Not one of those that are shown, and not an offset into anything else.
_LOOKED_THROUGH = "events_looked_through_for_notices"
_SET_LOOKED_THROUGH = text(
    "INSERT INTO tallies (name, labels, value) VALUES (:name, '{}', :value) "
    "ON CONFLICT (name, labels) DO UPDATE SET value = excluded.value"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """How many notices became messages, and how many were held back because the same was told a moment ago."""

    to_tell: int = 0
    held_back: int = 0


class Deliveries:
    """The messages of a ``Store``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def collect_notices(
        self, now: datetime, *, levels: Collection[Level], repeat: timedelta, group: timedelta
    ) -> Collected:
        """Make messages of the notices of these levels that have none yet. Without any it only reads.

        One that is told waits for ``group``, so that others can go with it; the same is told again after ``repeat``.
        """
        to_tell = held_back = 0
        while self._has_to_look(now, levels):
            with self._database.writing() as connection:
                if connection.dialect.name == "postgresql":
                    connection.execute(_LOCK)
                told, held, done = _collect(connection, now, levels, repeat, group)
            to_tell, held_back = to_tell + told, held_back + held
            if done:
                break
        return Collected(to_tell=to_tell, held_back=held_back)

    def _has_to_look(self, now: datetime, levels: Collection[Level]) -> bool:
        with self._database.reading() as connection:
            looked_through = _looked_through(connection)
            if looked_through is None or _newest_event(connection) - looked_through >= LOOK_BACK // 2:
                return True
            return connection.execute(_notices(looked_through, now, levels).limit(1)).first() is not None

    def waiting_deliveries(self, now: datetime) -> list[Delivery]:
        """What has not been told yet: first what is due, of that first what is critical, and then the oldest.

        There may be more than are looked at: what waits for a target that is down, or at its ceiling, must not keep
        what is critical from another one.
        """
        order = DELIVERIES.c.next_try_at > now, DELIVERIES.c.level != Level.CRITICAL, DELIVERIES.c.id
        statement = select(DELIVERIES).where(DELIVERIES.c.status == DeliveryStatus.WAITING)
        with self._database.reading() as connection:
            rows = connection.execute(statement.order_by(*order).limit(_AT_ONE_TIME)).mappings()
            return [_delivery_of(row) for row in rows]

    def told_since(self, since: datetime) -> set[tuple[Level, datetime]]:
        """When messages of each level were sent; those that went as one have the same time."""
        # By the time of the next try, which has an index: of what was sent that is when it was.
        sent = DELIVERIES.c.status == DeliveryStatus.SENT, DELIVERIES.c.next_try_at > since
        statement = select(DELIVERIES.c.level, DELIVERIES.c.next_try_at).where(*sent).distinct()
        with self._database.reading() as connection:
            return {(Level(row.level), row.next_try_at) for row in connection.execute(statement)}

    def claim_deliveries(self, wanted: Sequence[Delivery], *, until: datetime) -> list[Delivery]:
        """Take these for one attempt, and give back those that nobody else took first.

        Who does not record an outcome by ``until`` loses them: somebody else tries then.
        """
        claimed = []
        with self._database.writing() as connection:
            # In one order, so that two who want the same rows wait for each other in a line and not in a circle.
            for delivery in sorted(wanted, key=lambda d: d.id):
                values: Values = {"attempts": delivery.attempts + 1, "next_try_at": until}
                statement = update(DELIVERIES).where(_unchanged(delivery)).values(values).returning(DELIVERIES)
                row = connection.execute(statement).mappings().one_or_none()
                if row is not None:
                    claimed.append(_delivery_of(row))
        return claimed

    def settle_delivery(
        self,
        delivery: Delivery,
        *,
        status: DeliveryStatus,
        next_try_at: datetime,
        sent_at: datetime | None = None,
        error: str | None = None,
    ) -> bool:
        """Record how an attempt ended; not when somebody else has taken it over since."""
        values: Values = {"status": status, "next_try_at": next_try_at, "sent_at": sent_at, "error": error}
        statement = update(DELIVERIES).where(_unchanged(delivery)).values(values)
        with self._database.writing() as connection:
            return connection.execute(statement).rowcount == 1

    def deliveries(self, limit: int) -> list[Delivery]:
        """The newest messages first, whatever became of them."""
        statement = select(DELIVERIES).order_by(DELIVERIES.c.id.desc()).limit(limit)
        with self._database.reading() as connection:
            return [_delivery_of(row) for row in connection.execute(statement).mappings()]

    def prune_deliveries(self, *, over_since: datetime) -> int:
        """Remove some of the messages that were settled before then, and say how many. None is told again by that."""
        settled = sorted(frozenset(DeliveryStatus) - {DeliveryStatus.WAITING})
        # By the time of the next try, as in ``told_since``: of what is settled that is when it was.
        old = DELIVERIES.c.status.in_(settled), DELIVERIES.c.next_try_at < over_since
        some = select(DELIVERIES.c.id).where(*old).limit(_PRUNED_AT_ONCE)
        with self._database.writing() as connection:
            return connection.execute(delete(DELIVERIES).where(DELIVERIES.c.id.in_(some))).rowcount


def forget_events(connection: Connection, events: Collection[int]) -> None:
    """Keep no number of events that are being deleted: SQLite gives the highest to new ones, which nobody was told."""
    told = DELIVERIES.c.event_id.in_(events)
    connection.execute(update(DELIVERIES).where(told).values(event_id=None))
    newest = select(func.coalesce(func.max(EVENTS.c.id), 0)).scalar_subquery()
    ahead = TALLIES.c.name == _LOOKED_THROUGH, TALLIES.c.value > newest
    connection.execute(update(TALLIES).where(*ahead).values(value=newest))


def _collect(
    connection: Connection, now: datetime, levels: Collection[Level], repeat: timedelta, group: timedelta
) -> tuple[int, int, bool]:
    """One batch: how many are told, how many are held back, and whether nothing is left."""
    looked_through, newest = _looked_through(connection), _newest_event(connection)
    rows = connection.execute(_notices(looked_through, now, levels).limit(_BATCH)).mappings().all()
    told = 0
    for row in rows:
        event, schedule = event_of(row), row["schedule"]
        said = message(event, schedule)
        judged = judge(said.level, event.at, _of_topic(connection, said.topic), repeat=repeat, now=now)
        is_held = judged.telling in HELD_BACK
        told += not is_held
        values = _new_values(said, judged.held_back)
        values |= {"event_id": event.id, "cycle_id": event.cycle_id, "schedule": schedule, "created_at": now}
        values |= {"status": DeliveryStatus.HELD_BACK if is_held else DeliveryStatus.WAITING}
        connection.execute(insert(DELIVERIES).values(values | {"next_try_at": now if is_held else now + group}))
    done = len(rows) < _BATCH
    up_to = newest if done else rows[-1]["id"]
    connection.execute(_SET_LOOKED_THROUGH, {"name": _LOOKED_THROUGH, "value": float(max(looked_through or 0, up_to))})
    return told, len(rows) - told, done


def _notices(looked_through: int | None, now: datetime, levels: Collection[Level]) -> Select[tuple[object, ...]]:
    """The notices without a message, with the schedule of their cycle, in the order they were written."""
    statement = (
        select(EVENTS, CYCLES.c.schedule)
        .join(CYCLES, CYCLES.c.id == EVENTS.c.cycle_id)
        .outerjoin(DELIVERIES, DELIVERIES.c.event_id == EVENTS.c.id)
        .where(
            EVENTS.c.kind == EventKind.NOTICE,
            EVENTS.c.level.in_(sorted(levels)),
            DELIVERIES.c.id.is_(None),
        )
        .order_by(EVENTS.c.id)
    )
    if looked_through is None:
        newest = select(func.coalesce(func.max(EVENTS.c.id), 0)).scalar_subquery()
        return statement.where(EVENTS.c.id > newest - _FIRST_LOOK_BACK, EVENTS.c.at > now - FIRST_USE)
    new_or_late = or_(EVENTS.c.id > looked_through, EVENTS.c.at > now - LATE)
    return statement.where(EVENTS.c.id > looked_through - LOOK_BACK, new_or_late)


def _looked_through(connection: Connection) -> int | None:
    statement = select(TALLIES.c.value).where(TALLIES.c.name == _LOOKED_THROUGH, TALLIES.c.labels == "{}")
    kept = connection.execute(statement).scalar()
    return None if kept is None else int(kept)


def _newest_event(connection: Connection) -> int:
    return int(connection.execute(select(func.coalesce(func.max(EVENTS.c.id), 0))).scalar_one())


def _of_topic(connection: Connection, topic: str) -> list[Earlier]:
    columns = DELIVERIES.c.level, DELIVERIES.c.created_at, DELIVERIES.c.status
    statement = select(*columns).where(DELIVERIES.c.topic == topic).order_by(DELIVERIES.c.id.desc()).limit(_OF_TOPIC)
    told = {DeliveryStatus.WAITING, DeliveryStatus.SENT}
    return [
        Earlier(level=Level(row.level), at=row.created_at, told=row.status in told)
        for row in connection.execute(statement)
    ]


def _unchanged(delivery: Delivery) -> ColumnElement[bool]:
    """Nobody has tried or settled it since it was read."""
    same = (DELIVERIES.c.id == delivery.id) & (DELIVERIES.c.attempts == delivery.attempts)
    return same & (DELIVERIES.c.status == DeliveryStatus.WAITING)


def _new_values(said: Message, held_back: int) -> Values:
    return {
        "level": said.level,
        "topic": said.topic,
        "title": said.title,
        "body": with_held_back(said.body, held_back),
        "attempts": 0,
    }


def _delivery_of(row: RowMapping) -> Delivery:
    return Delivery(
        id=row["id"],
        level=Level(row["level"]),
        topic=row["topic"],
        title=row["title"],
        body=row["body"],
        status=DeliveryStatus(row["status"]),
        created_at=row["created_at"],
        next_try_at=row["next_try_at"],
        attempts=row["attempts"],
        event_id=row["event_id"],
        cycle_id=row["cycle_id"],
        schedule=row["schedule"],
        sent_at=row["sent_at"],
        error=row["error"],
    )
