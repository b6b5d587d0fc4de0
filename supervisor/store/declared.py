"""The whole declared schema, for creating and comparing. No I/O. Used by ``migrate`` and ``migrations``."""

from sqlalchemy import MetaData

import supervisor.store.lifecycle_tables
import supervisor.store.service_tables  # noqa: F401 (declares its tables)
from supervisor.store.base import Record
from supervisor.store.guard_tables import OPEN, SERVICE_ACTIONS
from supervisor.store.tables import CYCLES, RUNNING, UNARCHIVED

_PARTIAL = (
    (CYCLES, "uq_cycles_running", RUNNING),
    (CYCLES, "ix_cycles_unarchived", UNARCHIVED),
    (SERVICE_ACTIONS, "ix_service_actions_open", OPEN),
)


def declared_schema() -> MetaData:
    """Every table.

    PostgreSQL's half of the partial indexes is added here, not beside the tables: naming it loads that dialect, which a
    process that only reads and writes SQLite should not have to wait for (a tenth of this package's import time).
    """
    for table, name, condition in _PARTIAL:
        index = next(index for index in table.indexes if index.name == name)
        index.dialect_options["postgresql"]["where"] = condition
    return Record.metadata
