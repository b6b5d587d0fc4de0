"""`opsladder sweep`: expire, archive and prune what is past its time. Called from ``app``."""

import datetime as dt
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.cli import logs, words
from supervisor.cli.show import existing_store
from supervisor.climb.outfit import prepare_state
from supervisor.settings import settings_from_process

if TYPE_CHECKING:
    from supervisor.climb.sweep import SweepSummary, Tell


def run_sweep(config: Path | None, *, as_json: bool) -> None:
    """Sweep once, and say what was done."""
    logs.set_up(verbose=False)
    settings = settings_from_process(config)
    logs.keep_secret(settings.masker())
    from supervisor.climb.sweep import SweepSummary, sweep

    store = existing_store(settings)
    if store is None:
        done = SweepSummary()
    else:
        prepare_state(settings)
        with store, _progress() as tell:
            done = sweep(settings, store, now=dt.datetime.now(dt.UTC), tell=tell)
    if as_json:
        print(json.dumps({"schema": "opsladder.sweep/1", **asdict(done)}))
        return
    for line in _lines(done):
        print(line)


def _lines(done: "SweepSummary") -> Iterator[str]:
    if done.under_way:
        yield "Another sweep is under way: it does what there is to do."
        return
    lines = []
    if done.expired_approvals:
        lines.append(f"{words.several(done.expired_approvals, 'approval')} expired: nobody answered in time.")
    if done.expired:
        lines.append(f"{words.several(done.expired, 'session')} expired: nobody went on with what was cut off.")
    if done.removed_files:
        lines.append(f"{words.several(done.removed_files, 'file')} left behind removed.")
    if done.removed_archives:
        lines.append(f"{words.several(done.removed_archives, 'archive')} removed.")
    if done.archived_cycles:
        from rich.filesize import decimal

        cycles = words.several(done.archived_cycles, "cycle")
        lines.append(f"Messages of {cycles} archived ({decimal(done.archived_bytes)} written).")
    if done.pruned_cycles:
        lines.append(f"Records of {words.several(done.pruned_cycles, 'cycle')} pruned; their totals stay.")
    if done.pruned_deliveries:
        lines.append(f"{words.several(done.pruned_deliveries, 'notification')} of long ago forgotten.")
    yield from lines or ["Nothing to do."]


@contextmanager
def _progress() -> Iterator["Tell"]:
    """Show a person how far it is. Not part of the output, so never on stdout."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("Sweeping…") as status:
        yield lambda done: status.update(f"{done.archived_cycles:,} cycles archived, {done.pruned_cycles:,} pruned…")
