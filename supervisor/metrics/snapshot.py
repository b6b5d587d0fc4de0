"""Read what the metrics say. Does I/O: the store, and the cached probe of the CLI. Used by ``metrics``."""

from dataclasses import dataclass
from datetime import UTC, datetime

from supervisor.claude.probe import cached_runtime, find_binary
from supervisor.errors import ClaudeNotUsable
from supervisor.settings import Settings
from supervisor.store import Store
from supervisor.store.gauges import UnderWay
from supervisor.store.tallies import Tally

_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What was, and what is. ``spent_usd`` is today's, by UTC."""

    tallies: tuple[Tally, ...]
    under_way: UnderWay
    spent_usd: float
    paused: bool
    claude_version: str


def take_snapshot(store: Store | None, settings: Settings, *, now: datetime) -> Snapshot:
    """Everything, in as many queries for a million records as for one. Without a store, nothing of anything."""
    version = _claude_version(settings)
    if store is None:
        return Snapshot(
            tallies=(),
            under_way=UnderWay(active_sessions={}, approvals_pending=0),
            spent_usd=0.0,
            paused=False,
            claude_version=version,
        )
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return Snapshot(
        tallies=tuple(store.tallies()),
        under_way=store.under_way(now),
        # The same sum that the budget is held against.
        spent_usd=store.spent_since(midnight),
        paused=store.switch().paused,
        claude_version=version,
    )


def _claude_version(settings: Settings) -> str:
    """As the last probe found it. A scrape starts no CLI to ask."""
    path = settings.agent_env.get("PATH", "")
    try:
        binary = find_binary(settings.claude.bin, path_var=path, base_dir=settings.base_dir)
    except ClaudeNotUsable:
        return _UNKNOWN
    runtime = cached_runtime(binary, settings.probe_file)
    return _UNKNOWN if runtime is None else runtime.version
