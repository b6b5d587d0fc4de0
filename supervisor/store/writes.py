"""Every change of a record, each in one short transaction. Does I/O. Called from ``climb`` and ``service`` in threads.

A status changes by compare-and-set: the statement names the statuses it expects, so of two processes that want to end
one record the later one gets a ``Conflict`` and not a record that was written twice.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, insert, select, update

from supervisor.errors import Conflict, PausedFirst
from supervisor.model.cycle import Cycle, CycleStatus, NewEvent, Trigger
from supervisor.model.session import UNFINISHED, WAITING, CostBasis, Session, SessionStatus, Tokens
from supervisor.store.approvals import withdraw_questions
from supervisor.store.clock import database_now
from supervisor.store.engine import Database
from supervisor.store.history import Move, begun, moved, moved_all
from supervisor.store.ledger import enter_cycle, enter_sessions
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
from supervisor.store.records import CycleEnd, NewSession, Owner, SessionEnd
from supervisor.store.tables import CYCLES, EVENTS, RUNNING, SESSIONS
from supervisor.store.tallies import count_created, count_cycle_ended, count_ended


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
        request: Mapping[str, object] | None = None,
        retry_of: int | None = None,
        by: str | None = None,
    ) -> Cycle:
        """Take the schedule's lock and, with a key, claim the firing. ``Conflict`` when another process has either.

        ``PausedFirst`` when a cycle of the schedule waits: it may have been paused a moment after the caller looked.
        What is below the session record that is retried is outdated from here on.
        """
        values: Values = {
            "schedule": schedule,
            "trigger": trigger,
            "status": CycleStatus.RUNNING,
            "dry_run": dry_run,
            "fire_key": fire_key,
            "max_tier": max_tier,
            "request": request,
            "started_at": now,
        }
        try:
            with self._database.writing() as connection:
                values |= _owned(owner, database_now(connection))
                if retry_of is not None:
                    _outdate_below(connection, retry_of)
                row = begun(connection, CYCLES, values, at=now, why=trigger.value, by=by)
                # Only now, under the schedule's lock: whoever pauses a cycle had that lock until the pause was written.
                _refuse_beside_paused(connection, schedule)
                return cycle_of(row)
        except PausedFirst:
            raise
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

    def reopen_cycle(
        self,
        cycle_id: int,
        *,
        owner: Owner,
        now: datetime,
        why: str | None = None,
        by: str | None = None,
        request: Mapping[str, object] | None = None,
    ) -> Cycle:
        """Go on with a paused cycle under the schedule's lock. ``Conflict`` when somebody else does, or it is over.

        With ``request``, that is what was asked for from here on.
        """
        values: Values = {"reason": None, "detail": None, "ended_at": None, "stop_asked_by": None}
        if request is not None:
            values["request"] = request
        with self._database.writing() as connection:
            values |= _owned(owner, database_now(connection))
            return cycle_of(moved(connection, CYCLES, cycle_id, CycleStatus.RUNNING, values, at=now, why=why, by=by))

    def beat(self, cycle_id: int, *, owner: Owner) -> Cycle:
        """Say that the owner of a cycle lives. ``Conflict`` when the cycle is no longer its own.

        By the database's clock, which is the same for everyone who may judge by it.
        """
        # Also once it is over: a beat may come a moment after we have ended it ourselves.
        mine = (CYCLES.c.id == cycle_id) & _is_owner(owner)
        with self._database.writing() as connection:
            statement = update(CYCLES).where(mine).values(heartbeat_at=database_now(connection)).returning(CYCLES)
            row = connection.execute(statement).mappings().one_or_none()
        return _owned_cycle(cycle_id, row)

    def owned_cycle(self, cycle_id: int, *, owner: Owner) -> Cycle:
        """The same without saying it: a cycle as it is. ``Conflict`` when it is no longer its owner's own."""
        statement = select(CYCLES).where(CYCLES.c.id == cycle_id, _is_owner(owner))
        with self._database.reading() as connection:
            row = connection.execute(statement).mappings().one_or_none()
        return _owned_cycle(cycle_id, row)

    def take_over(self, *, gone: Owner, owner: Owner) -> list[Cycle]:
        """Own all running cycles of an owner that is gone. Whoever comes second gets none."""
        lost = RUNNING & _is_owner(gone)
        with self._database.writing() as connection:
            values = _owned(owner, database_now(connection))
            rows = connection.execute(update(CYCLES).where(lost).values(values).returning(CYCLES)).mappings().all()
        return sorted(map(cycle_of, rows), key=lambda cycle: cycle.id)

    def ask_to_stop(self, cycle_id: int, *, by: str) -> Cycle:
        """Ask whoever runs a cycle to stop it. ``Conflict`` when nobody does."""
        running = (CYCLES.c.id == cycle_id) & RUNNING
        with self._database.writing() as connection:
            statement = update(CYCLES).where(running).values(stop_asked_by=by).returning(CYCLES)
            row = connection.execute(statement).mappings().one_or_none()
        if row is None:
            raise Conflict(f"Cycle {cycle_id} is not running.")
        return cycle_of(row)

    def skip_cycle(
        self,
        *,
        schedule: str,
        trigger: Trigger,
        dry_run: bool,
        reason: str,
        detail: str,
        now: datetime,
        fire_key: str | None = None,
    ) -> Cycle:
        """Record a firing that does not run, with the reason. With a key it is claimed, or ``Conflict`` if it was."""
        values: Values = {
            "schedule": schedule,
            "trigger": trigger,
            "status": CycleStatus.SKIPPED,
            "dry_run": dry_run,
            "fire_key": fire_key,
            "reason": reason,
            "detail": detail,
            "started_at": now,
            "ended_at": now,
        }
        with self._database.writing() as connection:
            row = begun(connection, CYCLES, values, at=now, why=reason)
            enter_cycle(connection, row)
            count_cycle_ended(connection, row)
            return cycle_of(row)

    def finish_cycle(
        self,
        cycle_id: int,
        *,
        status: CycleStatus,
        reason: str | None,
        detail: str | None,
        now: datetime,
        by: str | None = None,
        event: NewEvent | None = None,
        expect: CycleStatus | None = None,
    ) -> Cycle:
        """End a cycle or let it wait, which frees its schedule's lock. ``event`` says why, on the cycle's record.

        ``Conflict`` when it is not what the caller expects.
        """
        end = CycleEnd(
            cycle_id=cycle_id, status=status, reason=reason, detail=detail, at=now, by=by, event=event, expect=expect
        )
        return self.finish_cycles([end])[0]

    def finish_cycles(self, ends: Sequence[CycleEnd]) -> list[Cycle]:
        """The same for several cycles: all of them or none."""
        events = [event_values(end.cycle_id, end.event) for end in ends if end.event is not None]
        with self._database.writing() as connection:
            if events:
                connection.execute(insert(EVENTS), events)
            rows = moved_all(connection, CYCLES, [_move_of(end) for end in ends])
            over = [row for row in rows if row["status"] != CycleStatus.PAUSED]
            for row in over:
                enter_cycle(connection, row)
                count_cycle_ended(connection, row)
            if over:
                withdraw_questions(connection, [row["id"] for row in over], over[0]["ended_at"])
            return [cycle_of(row) for row in rows]

    def create_session(self, new: NewSession) -> Session:
        """Record the intent to start a process."""
        with self._database.writing() as connection:
            why = f"{new.continuity}: {new.reason}"
            row = begun(connection, SESSIONS, new_session_values(new), at=new.created_at, why=why)
            count_created(connection, row)
            return session_of(row)

    def activate_session(self, record: int, *, pid: int, pid_started: float, now: datetime) -> Session:
        """The process runs."""
        values: Values = {"pid": pid, "pid_started": pid_started, "started_at": now}
        with self._database.writing() as connection:
            return session_of(
                moved(connection, SESSIONS, record, SessionStatus.ACTIVE, values, at=now, why=f"pid {pid}")
            )

    def capture_session_id(self, record: int, session_id: str) -> Session:
        """Keep the id a CLI minted for itself."""
        with self._database.writing() as connection:
            unfinished = (SESSIONS.c.id == record) & SESSIONS.c.status.in_(sorted(UNFINISHED))
            statement = update(SESSIONS).where(unfinished).values(session_id=session_id).returning(SESSIONS)
            row = connection.execute(statement).mappings().one_or_none()
        if row is None:
            raise Conflict(f"The session {record} is over, or there is none.")
        return session_of(row)

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

    def finish_session(self, record: int, end: SessionEnd) -> Session:
        """Record how a session ended."""
        return self.finish_sessions({record: end})[0]

    def finish_sessions(self, ends: Mapping[int, SessionEnd]) -> list[Session]:
        """The same for several sessions: all of them or none."""
        moves = [
            Move(
                record=record,
                to=end.status,
                values=session_end_values(end),
                at=end.ended_at,
                why=end.failure or end.stop_reason,
                expect=UNFINISHED,
            )
            for record, end in ends.items()
        ]
        with self._database.writing() as connection:
            rows = moved_all(connection, SESSIONS, moves)
            enter_sessions(connection, rows)
            count_ended(connection, rows)
            return [session_of(row) for row in rows]

    def leave(self, record: int, to: SessionStatus, *, why: str, now: datetime, by: str | None = None) -> Session:
        """End the waiting of a session that was cut off. When its process ended stays: the day its cost belongs to."""
        with self._database.writing() as connection:
            return session_of(moved(connection, SESSIONS, record, to, {}, at=now, why=why, by=by, expect=WAITING))

    def append_events(self, cycle_id: int, events: Sequence[NewEvent]) -> None:
        """Append to a cycle's record: all of the events or none."""
        self.append_to_all({cycle_id: events})

    def append_to_all(self, events: Mapping[int, Sequence[NewEvent]]) -> None:
        """The same for several cycles."""
        rows = [event_values(cycle_id, event) for cycle_id, some in events.items() for event in some]
        if rows:
            with self._database.writing() as connection:
                connection.execute(insert(EVENTS), rows)


def _refuse_beside_paused(connection: Connection, schedule: str) -> None:
    waits = (CYCLES.c.schedule == schedule) & (CYCLES.c.status == CycleStatus.PAUSED)
    waiting = connection.execute(select(CYCLES.c.id).where(waits).limit(1)).scalar()
    if waiting is not None:
        raise PausedFirst(f"Cycle {waiting} of schedule {schedule} is paused and comes first.")


def _move_of(end: CycleEnd) -> Move:
    values: Values = {"reason": end.reason, "detail": end.detail, "ended_at": end.at}
    expect = None if end.expect is None else (end.expect,)
    return Move(record=end.cycle_id, to=end.status, values=values, at=end.at, why=end.reason, expect=expect, by=end.by)


def _owned(owner: Owner, now: datetime) -> Values:
    return {"owner_host": owner.host, "owner_pid": owner.pid, "owner_started": owner.started, "heartbeat_at": now}


def _owned_cycle(cycle_id: int, row: RowMapping | None) -> Cycle:
    if row is None:
        raise Conflict(f"Cycle {cycle_id} is no longer run by this process.")
    return cycle_of(row)


def _is_owner(owner: Owner) -> ColumnElement[bool]:
    return and_(
        CYCLES.c.owner_host == owner.host,
        CYCLES.c.owner_pid == owner.pid,
        CYCLES.c.owner_started == owner.started,
    )


def _outdate_below(connection: Connection, record: int) -> None:
    """Move on the epoch of everything below a session, and of nothing else."""
    below = select(SESSIONS.c.id).where(SESSIONS.c.parent_session_id == record).cte("below", recursive=True)
    below = below.union(select(SESSIONS.c.id).where(SESSIONS.c.parent_session_id == below.c.id))
    outdated = SESSIONS.c.id.in_(select(below.c.id))
    connection.execute(update(SESSIONS).where(outdated).values(epoch=SESSIONS.c.epoch + 1))
