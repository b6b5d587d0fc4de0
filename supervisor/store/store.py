"""The store as the other rooms see it. Does I/O. Opened once per process; safe to use from several threads."""

from types import TracebackType
from typing import Self

from supervisor.store.approvals import Approvals
from supervisor.store.archiving import Archiving
from supervisor.store.calls import Calls
from supervisor.store.cooldowns import Cooldowns
from supervisor.store.deliveries import Deliveries
from supervisor.store.expiry import Expiry
from supervisor.store.firings import Firings
from supervisor.store.gauges import Gauges
from supervisor.store.history import History
from supervisor.store.incidents import Incidents
from supervisor.store.kept_sessions import KeptSessions
from supervisor.store.reads import Reads
from supervisor.store.retention import Retention
from supervisor.store.schema import open_database
from supervisor.store.services import Services
from supervisor.store.switch import Switch
from supervisor.store.tallies import Tallies
from supervisor.store.writes import Writes


class Store(
    Reads,
    Writes,
    History,
    Incidents,
    KeptSessions,
    Calls,
    Cooldowns,
    Services,
    Approvals,
    Switch,
    Deliveries,
    Tallies,
    Gauges,
    Firings,
    Expiry,
    Retention,
    Archiving,
):
    """An open database of what ran and what the guard decided.

    Calls block briefly: use ``asyncio.to_thread`` around them.
    """

    @property
    def name(self) -> str:
        """Where the records are, without a password."""
        return self._database.name

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_store(url: str, *, create: bool = True) -> Store:
    """Open the database at ``url``.

    A SQLite file that is missing or outdated is made or migrated when ``create``; a PostgreSQL server's schema is
    changed only by ``upgrade``, since more than one host may be using it.
    """
    return Store(open_database(url, create=create))
