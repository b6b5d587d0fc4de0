"""Tool calls that wait for a person, and the answers. Does I/O. Called from ``guard``, ``climb``, ``cli`` and ``web``.

An approval is bound to one call with one exact input. It is used by compare-and-set, once: a deferred session can be
forked twice, and the CLI would then run the call twice.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import CTE, Connection, RowMapping, select, update

from supervisor.errors import Conflict, NotFound
from supervisor.model.guarding import Approval, ApprovalStatus, NewApproval
from supervisor.store.engine import Database
from supervisor.store.guard_tables import APPROVALS
from supervisor.store.mapping import Values
from supervisor.store.statements import changed, inserted
from supervisor.store.tables import SESSIONS


class Approvals:
    """The approvals of a ``Store``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def request_approval(self, new: NewApproval) -> Approval:
        """Put a call before a person. One that this session has put there already is given back as it stands.

        The same question of a session that this one continues is withdrawn. ``Conflict`` when this session's call then
        had another input.
        """
        older = (
            APPROVALS.c.session_id.in_(select(_conversation(new.session_id).c.id)),
            APPROVALS.c.session_id != new.session_id,
            APPROVALS.c.tool_use_id == new.tool_use_id,
            APPROVALS.c.status == ApprovalStatus.WAITING,
        )
        withdrawn: Values = {"status": ApprovalStatus.EXPIRED, "decided_at": new.created_at, "reason": "asked again"}
        try:
            with self._database.writing() as connection:
                connection.execute(update(APPROVALS).where(*older).values(withdrawn))
                return _approval_of(inserted(connection, APPROVALS, _values(new)))
        except Conflict:
            same_call = APPROVALS.c.session_id == new.session_id, APPROVALS.c.tool_use_id == new.tool_use_id
            with self._database.reading() as connection:
                row = connection.execute(select(APPROVALS).where(*same_call)).mappings().one()
            if row["input_hash"] != new.input_hash:
                raise _other_input(row) from None
            return _approval_of(row)

    def approval(self, approval_id: int) -> Approval:
        with self._database.reading() as connection:
            return _approval_of(_by_id(connection, approval_id))

    def pending_approvals(self, now: datetime) -> list[Approval]:
        """The calls that wait for a person, the oldest first."""
        waiting = APPROVALS.c.status == ApprovalStatus.WAITING, APPROVALS.c.expires_at > now
        with self._database.reading() as connection:
            rows = connection.execute(select(APPROVALS).where(*waiting).order_by(APPROVALS.c.id)).mappings()
            return [_approval_of(row) for row in rows]

    def approval_of_call(self, session: int, tool_use_id: str) -> Approval | None:
        """What a person was asked about this call, by this session or by one that it continues."""
        with self._database.reading() as connection:
            row = _of_call(connection, session, tool_use_id)
        return None if row is None else _approval_of(row)

    def approval_of_session(self, session: int) -> Approval | None:
        """The newest question that this session put before a person."""
        statement = select(APPROVALS).where(APPROVALS.c.session_id == session).order_by(APPROVALS.c.id.desc()).limit(1)
        with self._database.reading() as connection:
            row = connection.execute(statement).mappings().one_or_none()
        return None if row is None else _approval_of(row)

    def decide_approval(
        self, approval_id: int, *, approved: bool, by: str, reason: str | None, now: datetime
    ) -> Approval:
        """Keep a person's answer. ``Conflict`` when there is one already, or it comes too late."""
        values: Values = {
            "status": ApprovalStatus.APPROVED if approved else ApprovalStatus.DENIED,
            "decided_at": now,
            "decided_by": by,
            "reason": reason,
        }
        with self._database.writing() as connection:
            row = _by_id(connection, approval_id)
            if row["status"] == ApprovalStatus.WAITING and row["expires_at"] <= now:
                raise Conflict(f"The approval {approval_id} had to be given by {row['expires_at']:%Y-%m-%dT%H:%M:%SZ}.")
            return _approval_of(changed(connection, APPROVALS, approval_id, {ApprovalStatus.WAITING}, values))

    def expire_approvals(self, now: datetime) -> list[Approval]:
        """End the waiting of those that nobody answered in time, and say which."""
        overdue = APPROVALS.c.status == ApprovalStatus.WAITING, APPROVALS.c.expires_at <= now
        statement = update(APPROVALS).where(*overdue).values(status=ApprovalStatus.EXPIRED, decided_at=now)
        with self._database.writing() as connection:
            rows = connection.execute(statement.returning(APPROVALS)).mappings().all()
        return sorted(map(_approval_of, rows), key=lambda approval: approval.id)

    def use_approval(self, *, session: int, tool_use_id: str, input_hash: str, now: datetime) -> Approval:
        """Use up the approval of a call that this session, or one it continues, asked for.

        Only who gets an answer may let the call through. ``NotFound`` when nobody was asked; ``Conflict`` when the
        input is not the one that was approved, or the approval is not, or no longer, to be used.
        """
        values: Values = {"status": ApprovalStatus.USED, "used_at": now, "used_by": session}
        with self._database.writing() as connection:
            row = _of_call(connection, session, tool_use_id)
            if row is None:
                raise NotFound(f"No approval was asked for the tool call {tool_use_id}.")
            if row["input_hash"] != input_hash:
                raise _other_input(row)
            return _approval_of(changed(connection, APPROVALS, row["id"], {ApprovalStatus.APPROVED}, values))


def withdraw_questions(connection: Connection, cycles: Sequence[int], now: datetime) -> None:
    """End the waiting of what cycles asked that are over: nobody would act on an answer."""
    waiting = APPROVALS.c.cycle_id.in_(cycles), APPROVALS.c.status == ApprovalStatus.WAITING
    withdrawn: Values = {"status": ApprovalStatus.EXPIRED, "decided_at": now, "reason": "its cycle is over"}
    connection.execute(update(APPROVALS).where(*waiting).values(withdrawn))


def _by_id(connection: Connection, approval_id: int) -> RowMapping:
    row = connection.execute(select(APPROVALS).where(APPROVALS.c.id == approval_id)).mappings().one_or_none()
    if row is None:
        raise NotFound(f"There is no approval {approval_id}.")
    return row


def _of_call(connection: Connection, session: int, tool_use_id: str) -> RowMapping | None:
    """The newest approval of a call in a session or above it: ids of calls are unique only within one conversation."""
    of_conversation = APPROVALS.c.session_id.in_(select(_conversation(session).c.id))
    statement = select(APPROVALS).where(of_conversation, APPROVALS.c.tool_use_id == tool_use_id)
    return connection.execute(statement.order_by(APPROVALS.c.id.desc()).limit(1)).mappings().one_or_none()


def _conversation(session: int) -> CTE:
    """The ids of a session and of those it continues."""
    start = select(SESSIONS.c.id, SESSIONS.c.parent_session_id).where(SESSIONS.c.id == session)
    up = start.cte("conversation", recursive=True)
    parent = select(SESSIONS.c.id, SESSIONS.c.parent_session_id).where(SESSIONS.c.id == up.c.parent_session_id)
    return up.union(parent)


def _other_input(row: RowMapping) -> Conflict:
    return Conflict(f"The approval {row['id']} is for another input of the tool call {row['tool_use_id']}.")


def _values(new: NewApproval) -> Values:
    return {
        "session_id": new.session_id,
        "cycle_id": new.cycle_id,
        "tier": new.tier,
        "tool_use_id": new.tool_use_id,
        "tool": new.tool,
        "input": new.input,
        "input_hash": new.input_hash,
        "text": new.text,
        "rule": new.rule,
        "sentence": new.sentence,
        "services": new.services,
        "status": ApprovalStatus.WAITING,
        "created_at": new.created_at,
        "expires_at": new.expires_at,
    }


def _approval_of(row: RowMapping) -> Approval:
    return Approval(
        id=row["id"],
        session_id=row["session_id"],
        cycle_id=row["cycle_id"],
        tier=row["tier"],
        tool_use_id=row["tool_use_id"],
        tool=row["tool"],
        input=row["input"],
        input_hash=row["input_hash"],
        text=row["text"],
        rule=row["rule"],
        sentence=row["sentence"],
        services=tuple(row["services"]),
        status=ApprovalStatus(row["status"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        decided_at=row["decided_at"],
        decided_by=row["decided_by"],
        reason=row["reason"],
        used_at=row["used_at"],
        used_by=row["used_by"],
    )
