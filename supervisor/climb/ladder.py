"""What a climb needs at hand, and what was asked for. No I/O itself. Made by cli (and later the daemon)."""

import datetime as dt
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from supervisor.model.cycle import Trigger
from supervisor.model.progress import Progress, Watch
from supervisor.model.runtime import Runtime
from supervisor.prompts import Prompts
from supervisor.settings import Settings
from supervisor.store import Store

logger = logging.getLogger(__name__)

# How long a run goes on while its records cannot be written, before it is stopped.
STORE_PATIENCE_SECONDS = 60.0


def utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def nobody_watches(_: Progress) -> None:
    """The watcher of a cycle that nobody watches."""


def unfailing(watch: Watch) -> Watch:
    """The watcher without its failures: a closed terminal must not break off the work that it showed."""
    failed = False

    def tell(progress: Progress) -> None:
        nonlocal failed
        try:
            watch(progress)
        except Exception as error:
            if not failed:
                logger.warning("The watcher of the cycle failed", exc_info=error)
            failed = True

    return tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The tools of a climb."""

    settings: Settings
    store: Store
    runtime: Runtime
    prompts: Prompts
    watch: Watch = nobody_watches
    clock: Callable[[], dt.datetime] = utc_now
    store_patience_seconds: float = STORE_PATIENCE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleRequest:
    """One cycle as someone asked for it.

    ``paused_cycle`` is one to go on with, instead of beginning another; ``retry_of`` a session record to do again.
    ``began_fresh`` is what was asked for when a cycle began that goes on now.
    """

    schedule: str
    trigger: Trigger
    dry_run: bool
    max_tier: int
    start_tier: int = 1
    instructions: str = ""
    force_fresh: bool = False
    began_fresh: bool = False
    approve_budget: bool = False
    paused_cycle: int | None = None
    retry_of: int | None = None
    by: str | None = None
    fire_key: str | None = field(default=None)
