"""Every change of a record, each in one short transaction. Does I/O. Called from ``climb`` and ``service`` in threads.

A status changes by compare-and-set: the statement names the statuses it expects, so of two processes that want to end
one record the later one gets a ``Conflict`` and not a record that was written twice.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import insert, select, update

from supervisor.errors import Conflict
from supervisor.model.cycle import Cycle, CycleStatus, NewEvent, Trigger
from supervisor.model.guarding import AFTER_PAUSED
from supervisor.model.session import UNFINISHED, CostBasis, Session, SessionStatus, Tokens
from supervisor.store.engine import Database
from supervisor.store.mapping import (
    Values,
    cost_values,
    cycle_of,
    event_values,
    new_session_values,
    session_end_values,
    session_of,
    token_values,
)
from supervisor.store.records import NewSession, Owner, SessionEnd
from supervisor.store.statements import changed, inserted
from supervisor.store.tables import CYCLES, EVENTS, RUNNING, SESSIONS


class Writes:
    """The writing half of a ``Store``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin_cycle(
        self,
        *,
        schedule: str,
        trigger: Trigger,
        dry_run: bool,
        owner: Owner,
        now: datetime,
        fire_key: str | None = None,
        max_tier: int | None = None,
    ) -> Cycle:
        """Take the schedule's lock and, with a key, claim the firing. ``Conflict`` when another process has either."""
        values: Values = {
            "schedule": schedule,
            "trigger": trigger,
            "status": CycleStatus.RUNNING,
            "dry_run": dry_run,
            "fire_key": fire_key,
            "max_tier": max_tier,
            "owner_host": owner.host,
            "owner_pid": owner.pid,
            "owner_started": owner.started,
            "started_at": now,
        }
        try:
            with self._database.writing() as connection:
                return cycle_of(inserted(connection, CYCLES, values))
        except Conflict as taken:
            raise self._why_taken(schedule, fire_key) from taken

    def _why_taken(self, schedule: str, fire_key: str | None) -> Conflict:
        same_schedule = select(CYCLES.c.id).where(CYCLES.c.schedule == schedule)
        with self._database.reading() as connection:
            running = connection.execute(same_schedule.where(RUNNING)).scalar()
            claimed = connection.execute(same_schedule.where(CYCLES.c.fire_key == fire_key)).scalar()
        if running is not None:
            return Conflict(f"Schedule {schedule} is already running as cycle {running}.")
        if claimed is not None:
            return Conflict(f"This firing of schedule {schedule} was already claimed by cycle {claimed}.")
        return Conflict(f"Schedule {schedule} was running in another cycle that has just ended.")

    def reopen_cycle(self, cycle_id: int, *, owner: Owner) -> Cycle:
        """Go on with a paused cycle under the schedule's lock. ``Conflict`` when somebody else does, or it is over."""
        values: Values = {
            "status": CycleStatus.RUNNING,
            "owner_host": owner.host,
            "owner_pid": owner.pid,
            "owner_started": owner.started,
            "reason": None,
            "detail": None,
            "ended_at": None,
        }
        with self._database.writing() as connection:
            return cycle_of(changed(connection, CYCLES, cycle_id, {CycleStatus.PAUSED}, values))

    def skip_cycle(
        self, *, schedule: str, trigger: Trigger, dry_run: bool, reason: str, detail: str, now: datetime
    ) -> Cycle:
        """Record a firing that does not run, with the reason."""
        values: Values = {
            "schedule": schedule,
            "trigger": trigger,
            "status": CycleStatus.SKIPPED,
            "dry_run": dry_run,
            "reason": reason,
            "detail": detail,
            "started_at": now,
            "ended_at": now,
        }
        with self._database.writing() as connection:
            return cycle_of(inserted(connection, CYCLES, values))

    def finish_cycle(
        self,
        cycle_id: int,
        *,
        status: CycleStatus,
        reason: str | None,
        detail: str | None,
        now: datetime,
        expect: CycleStatus = CycleStatus.RUNNING,
    ) -> Cycle:
        """End a cycle, which frees its schedule's lock."""
        values: Values = {"status": status, "reason": reason, "detail": detail, "ended_at": now}
        with self._database.writing() as connection:
            return cycle_of(changed(connection, CYCLES, cycle_id, {expect}, values))

    def create_session(self, new: NewSession) -> Session:
        """Record the intent to start a process."""
        with self._database.writing() as connection:
            return session_of(inserted(connection, SESSIONS, new_session_values(new)))

    def activate_session(self, record: int, *, pid: int, pid_started: float, now: datetime) -> Session:
        """The process runs."""
        values: Values = {
            "status": SessionStatus.ACTIVE,
            "pid": pid,
            "pid_started": pid_started,
            "started_at": now,
        }
        with self._database.writing() as connection:
            return session_of(changed(connection, SESSIONS, record, {SessionStatus.CREATED}, values))

    def capture_session_id(self, record: int, session_id: str) -> Session:
        """Keep the id a CLI minted for itself."""
        with self._database.writing() as connection:
            return session_of(changed(connection, SESSIONS, record, UNFINISHED, {"session_id": session_id}))

    def record_progress(
        self,
        record: int,
        *,
        messages: int,
        tools_executed: int,
        tokens: Tokens | None,
        cost_usd: float | None,
        cost_basis: CostBasis,
        now: datetime,
    ) -> None:
        """Keep the live figures of an active session. Late ones are dropped: the outcome is already recorded."""
        values: Values = {
            "messages": messages,
            "tools_executed": tools_executed,
            "last_message_at": now,
            **token_values(tokens),
            **cost_values(cost_usd, cost_basis),
        }
        active = (SESSIONS.c.id == record) & (SESSIONS.c.status == SessionStatus.ACTIVE)
        with self._database.writing() as connection:
            connection.execute(update(SESSIONS).where(active).values(values))

    def finish_session(self, record: int, end: SessionEnd, *, expect: frozenset[SessionStatus] = UNFINISHED) -> Session:
        """Record how a session ended."""
        with self._database.writing() as connection:
            return session_of(changed(connection, SESSIONS, record, expect, session_end_values(end)))

    def leave_paused(self, record: int, to: SessionStatus) -> Session:
        """End the waiting of a paused session. When its process ended stays: the day its cost belongs to."""
        if to not in AFTER_PAUSED:
            raise ValueError(f"a paused session does not become {to}")
        with self._database.writing() as connection:
            return session_of(changed(connection, SESSIONS, record, {SessionStatus.PAUSED}, {"status": to}))

    def append_events(self, cycle_id: int, events: Sequence[NewEvent]) -> None:
        """Append to a cycle's record: all of the events or none."""
        if not events:
            return
        with self._database.writing() as connection:
            connection.execute(insert(EVENTS), [event_values(cycle_id, event) for event in events])
