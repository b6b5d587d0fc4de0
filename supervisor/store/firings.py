"""How far the firings of schedules have been dealt with, how many were missed, what became of the last. Does I/O.

Called from ``service`` and ``cli``. A firing itself is claimed by the cycle that it became, run or skipped, in
``writes``: what is kept here only saves looking for firings that were claimed long ago, and tells which were missed.
"""

import json
from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import bindparam, select, text, update

from supervisor.model.cycle import Cycle
from supervisor.store.columns import AnyText, UtcDateTime
from supervisor.store.engine import Database
from supervisor.store.mapping import cycle_of
from supervisor.store.service_tables import FIRINGS, TALLIES
from supervisor.store.tables import CYCLES
from supervisor.store.tallies import TallyName, count_missed

# Fewer than the variables that any database takes in one statement.
_AT_ONCE = 500

# In SQL, as in ``cooldowns``: SQLAlchemy has a statement of its own for each dialect, and loading both takes long.
_REGISTER = text(
    "INSERT INTO firings (schedule, dealt_until) VALUES (:schedule, :now) ON CONFLICT (schedule) DO NOTHING"
).bindparams(bindparam("schedule", type_=AnyText()), bindparam("now", type_=UtcDateTime()))


class Firings:
    """The firings of a ``Store``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def register(self, schedules: Collection[str], now: datetime) -> None:
        """Begin to keep track of schedules that were not known before: nothing was due before now."""
        if schedules:
            with self._database.writing() as connection:
                connection.execute(_REGISTER, [{"schedule": name, "now": now} for name in sorted(schedules)])

    def dealt_until(self, schedules: Collection[str]) -> dict[str, datetime]:
        """Up to which time the firings of each schedule have been dealt with, of those that are registered."""
        found: dict[str, datetime] = {}
        with self._database.reading() as connection:
            for names in _portions(sorted(schedules)):
                rows = connection.execute(select(FIRINGS).where(FIRINGS.c.schedule.in_(names)))
                found |= {row.schedule: row.dealt_until for row in rows}
        return found

    def deal(self, schedule: str, until: datetime, *, expected: datetime, missed: int = 0) -> bool:
        """Say that the firings of a schedule have been dealt with, by compare-and-set, and how many were missed.

        Of two supervisors that found the same one is told yes, and the other has to look again: what was missed is
        counted by the first, and once.
        """
        as_expected = (FIRINGS.c.schedule == schedule) & (FIRINGS.c.dealt_until == expected)
        with self._database.writing() as connection:
            is_ours = connection.execute(update(FIRINGS).where(as_expected).values(dealt_until=until)).rowcount == 1
            if is_ours and missed:
                count_missed(connection, schedule, missed)
        return is_ours

    def missed_fires(self) -> dict[str, int]:
        """How many firings of each schedule were missed, of those of which any were."""
        labels_and_counts = select(TALLIES.c.labels, TALLIES.c.value).where(TALLIES.c.name == TallyName.MISSED_FIRES)
        with self._database.reading() as connection:
            rows = connection.execute(labels_and_counts).all()
        return {json.loads(labels)["schedule"]: int(count) for labels, count in rows}

    def last_cycles(self, schedules: Collection[str]) -> dict[str, Cycle]:
        """The newest cycle of each schedule that has one, whatever started it. One look into an index for each."""
        newest = select(CYCLES).order_by(CYCLES.c.started_at.desc(), CYCLES.c.id.desc()).limit(1)
        found: dict[str, Cycle] = {}
        with self._database.reading() as connection:
            for name in schedules:
                row = connection.execute(newest.where(CYCLES.c.schedule == name)).mappings().one_or_none()
                if row is not None:
                    found[name] = cycle_of(row)
        return found


def _portions(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[start : start + _AT_ONCE] for start in range(0, len(names), _AT_ONCE)]
