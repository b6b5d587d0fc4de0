"""The guard's answers to tool calls, and how the calls ended. Does I/O. Called from ``guard``, ``climb`` and ``cli``.

An answer is recorded before it is given, so a call that runs without one was never decided here.
"""

from collections.abc import Collection
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, bindparam, func, insert, select, update
from sqlalchemy.sql.dml import ReturningInsert

from supervisor.errors import Conflict, NotFound, StoreError
from supervisor.model.guarding import CallOutcome, RecordedCall
from supervisor.model.permission import Decision, ToolCall, Verdict
from supervisor.model.session import ToolCalls
from supervisor.store.engine import Database
from supervisor.store.guard_tables import TOOL_CALLS
from supervisor.store.mapping import Values
from supervisor.store.tallies import count_decision

# Asked all the time, so put together once.
_OF_SESSION = select(TOOL_CALLS).where(TOOL_CALLS.c.session_id == bindparam("session")).order_by(TOOL_CALLS.c.id)


class Calls:
    """The tool calls of a ``Store``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record_call(
        self, *, session: int, cycle: int, call: ToolCall, text: str, decision: Decision, now: datetime
    ) -> RecordedCall:
        """Record an answer that is about to be given. ``Conflict`` when the same call is asked about at the same time.

        Asking again later is a new answer. A deferred call that a forked session asks about is that session's own.
        """
        values: Values = {
            "session_id": session,
            "cycle_id": cycle,
            "tool_use_id": call.tool_use_id,
            "tool": call.tool,
            "input": call.input,
            "text": text,
            "verdict": decision.verdict,
            "rule": decision.rule,
            "sentence": decision.sentence,
            "at": now,
        }
        with self._database.writing() as connection:
            same_call = {"of_session": session, "of_call": call.tool_use_id}
            row = connection.execute(_ask_again(), {**values, **same_call}).mappings().one()
            count_decision(connection, session, decision.verdict)
            return _call_of(row)

    def end_call(self, *, session: int, tool_use_id: str, failed: bool, now: datetime) -> RecordedCall:
        """Record how a call ended that was let through. ``Conflict`` when it was not, or has ended already."""
        values: Values = {"outcome": CallOutcome.FAILED if failed else CallOutcome.SUCCEEDED, "ended_at": now}
        running = TOOL_CALLS.c.verdict == Verdict.ALLOW, TOOL_CALLS.c.outcome.is_(None)
        newest = _newest(session, tool_use_id).with_only_columns(TOOL_CALLS.c.id).scalar_subquery()
        statement = update(TOOL_CALLS).where(TOOL_CALLS.c.id == newest, *running).values(values).returning(TOOL_CALLS)
        with self._database.writing() as connection:
            row = connection.execute(statement).mappings().one_or_none()
            if row is None:
                raise _why_not_ended(connection, session, tool_use_id)
            return _call_of(row)

    def calls(self, session: int) -> list[RecordedCall]:
        """The answers a session got, in the order they were given."""
        with self._database.reading() as connection:
            return [_call_of(row) for row in connection.execute(_OF_SESSION, {"session": session}).mappings()]

    def calls_of_sessions(self, sessions: Collection[int]) -> dict[int, list[RecordedCall]]:
        """The same for several sessions, in one query."""
        calls: dict[int, list[RecordedCall]] = {session: [] for session in sessions}
        asked = TOOL_CALLS.c.session_id.in_(sorted(calls))
        with self._database.reading() as connection:
            rows = connection.execute(select(TOOL_CALLS).where(asked).order_by(TOOL_CALLS.c.id)).mappings()
            for row in rows:
                calls[row["session_id"]].append(_call_of(row))
        return calls

    def call_counts(self, session: int) -> ToolCalls:
        """How many answers of each kind a session got."""
        statement = select(TOOL_CALLS.c.verdict, func.count()).where(TOOL_CALLS.c.session_id == session)
        with self._database.reading() as connection:
            rows = connection.execute(statement.group_by(TOOL_CALLS.c.verdict)).all()
        counts = {Verdict(verdict): count for verdict, count in rows}
        return ToolCalls(
            allowed=counts.get(Verdict.ALLOW, 0),
            denied=counts.get(Verdict.DENY, 0),
            deferred=counts.get(Verdict.DEFER, 0),
        )

    def allowed(self, session: int, tool_use_id: str) -> bool:
        """Whether the newest answer to this call was to let it through: what has run without that is a breach."""
        statement = _newest(session, tool_use_id).with_only_columns(TOOL_CALLS.c.verdict)
        with self._database.reading() as connection:
            return connection.execute(statement).scalar() == Verdict.ALLOW


@cache
def _ask_again() -> ReturningInsert[Any]:
    """An answer with the next number of its call."""
    same_call = (
        TOOL_CALLS.c.session_id == bindparam("of_session"),
        TOOL_CALLS.c.tool_use_id == bindparam("of_call"),
    )
    asked = select(func.coalesce(func.max(TOOL_CALLS.c.ask), 0) + 1).where(*same_call)
    return insert(TOOL_CALLS).values(ask=asked.scalar_subquery()).returning(TOOL_CALLS)


def _newest(session: int, tool_use_id: str) -> Select[tuple[object, ...]]:
    same_call = TOOL_CALLS.c.session_id == session, TOOL_CALLS.c.tool_use_id == tool_use_id
    return select(TOOL_CALLS).where(*same_call).order_by(TOOL_CALLS.c.ask.desc()).limit(1)


def _why_not_ended(connection: Connection, session: int, tool_use_id: str) -> StoreError:
    row = connection.execute(_newest(session, tool_use_id)).mappings().one_or_none()
    if row is None:
        return NotFound(f"Session {session} never asked about the tool call {tool_use_id}.")
    if row["verdict"] != Verdict.ALLOW:
        return Conflict(f"The tool call {tool_use_id} of session {session} was not let through.")
    return Conflict(f"The tool call {tool_use_id} of session {session} has {row['outcome']} already.")


def _call_of(row: RowMapping) -> RecordedCall:
    return RecordedCall(
        id=row["id"],
        session_id=row["session_id"],
        cycle_id=row["cycle_id"],
        tool_use_id=row["tool_use_id"],
        ask=row["ask"],
        tool=row["tool"],
        input=row["input"],
        text=row["text"],
        verdict=Verdict(row["verdict"]),
        rule=row["rule"],
        sentence=row["sentence"],
        at=row["at"],
        outcome=None if row["outcome"] is None else CallOutcome(row["outcome"]),
        ended_at=row["ended_at"],
    )
