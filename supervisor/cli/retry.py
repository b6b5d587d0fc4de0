"""`opsladder retry`: do a record's tier again and go on from there. Called from ``app``."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.cli import logs
from supervisor.cli.cycle import CycleOptions, climb_and_tell
from supervisor.cli.exits import exit_code
from supervisor.cli.person import who
from supervisor.cli.show import find, recorded
from supervisor.errors import UsageError
from supervisor.model.cycle import Cycle, Trigger
from supervisor.model.session import UNFINISHED
from supervisor.settings import settings_from_process

if TYPE_CHECKING:
    from supervisor.store import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """What the command line asks for."""

    record: int
    fresh_session: bool = False
    as_json: bool = False
    verbose: bool = False


def retry(config: Path | None, asked: Retry) -> int:
    """Run the record's tier again in a cycle of its own, and climb on from there."""
    logs.set_up(verbose=asked.verbose)
    settings = settings_from_process(config)
    logs.keep_secret(settings.masker())
    with recorded(settings) as store:
        session = find(store.session, asked.record)
        cycle = store.cycle(session.cycle_id)
        if session.status in UNFINISHED and _is_looked_after(store.running_cycles(), cycle.id):
            raise UsageError(
                f"Record {session.id} still runs.", remedy=f"`opsladder stop {session.id}` ends it; then retry."
            )
    if session.tier > len(settings.tiers):
        raise UsageError(f"Record {session.id} ran as tier {session.tier}, which the configuration no longer has.")
    options = CycleOptions(
        schedule=cycle.schedule,
        dry_run=cycle.dry_run,
        max_tier=cycle.max_tier,
        start_tier=session.tier,
        fresh_session=asked.fresh_session,
        retry_of=session.id,
        by=who(),
        as_json=asked.as_json,
        verbose=asked.verbose,
    )
    return exit_code(climb_and_tell(settings, options, Trigger.RETRY).cycle.status)


def _is_looked_after(running: list[tuple[Cycle, "Owner"]], cycle_id: int) -> bool:
    """Whether a living process runs this cycle; one that is gone is settled before the retry begins."""
    from supervisor.climb.owner import is_gone

    return any(cycle.id == cycle_id and not is_gone(owner) for cycle, owner in running)
