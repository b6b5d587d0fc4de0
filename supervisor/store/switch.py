"""The switch that keeps everything from running. Does I/O. Turned from ``cli`` and ``web``, asked by ``guard``.

Every turn stays on record: who, when and why.
"""

from datetime import datetime

from sqlalchemy import RowMapping, select

from supervisor.model.guarding import SwitchState
from supervisor.store.engine import Database
from supervisor.store.guard_tables import SWITCH
from supervisor.store.statements import inserted

_NEWEST = select(SWITCH).order_by(SWITCH.c.id.desc()).limit(1)


class Switch:
    """The switch of a ``Store``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def pause(self, *, by: str, reason: str | None, now: datetime) -> SwitchState:
        """Let nothing run from now on. Who pauses what is paused gives a newer reason."""
        return self._turn(paused=True, by=by, reason=reason, now=now)

    def unpause(self, *, by: str, now: datetime) -> SwitchState:
        """Let things run again."""
        return self._turn(paused=False, by=by, reason=None, now=now)

    def switch(self) -> SwitchState:
        """How the switch stands. Asked at every tool call: one row, found by its key."""
        with self._database.reading() as connection:
            row = connection.execute(_NEWEST).mappings().one_or_none()
        return SwitchState(paused=False) if row is None else _state_of(row)

    def _turn(self, *, paused: bool, by: str, reason: str | None, now: datetime) -> SwitchState:
        values = {"paused": paused, "turned_by": by, "reason": reason, "at": now}
        with self._database.writing() as connection:
            return _state_of(inserted(connection, SWITCH, values))


def _state_of(row: RowMapping) -> SwitchState:
    return SwitchState(paused=row["paused"], at=row["at"], by=row["turned_by"], reason=row["reason"])
