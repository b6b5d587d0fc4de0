"""The records: SQLModel tables, Alembic migrations, writes by compare-and-set, reads for people. Does I/O.

The only truth about cycles, sessions, events and what the guard decided, and the only room that knows SQL. Others open
it with ``open_store`` and get model dataclasses back.
"""

from supervisor.store.archiving import ArchivedRow
from supervisor.store.records import CostBy, CostRow, CycleEnd, NewSession, Owner, SchemaState, SessionEnd
from supervisor.store.retention import Kind
from supervisor.store.schema import HEAD, check, upgrade
from supervisor.store.store import Store, open_store

__all__ = [
    "HEAD",
    "ArchivedRow",
    "CostBy",
    "CostRow",
    "CycleEnd",
    "Kind",
    "NewSession",
    "Owner",
    "SchemaState",
    "SessionEnd",
    "Store",
    "check",
    "open_store",
    "upgrade",
]
