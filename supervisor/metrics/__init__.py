"""Counters and gauges for Prometheus, from the store. Does I/O through the store. Called from web and cli.

``snapshot`` reads, ``families`` names and labels what was read. Nothing is counted in this process, so it does not
matter which one is asked, nor how long it has been running.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from supervisor.metrics.families import families
from supervisor.metrics.snapshot import take_snapshot
from supervisor.settings import Settings
from supervisor.store import Store

__all__ = ["Exposition", "exposition"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposition:
    """All metrics as they were at one moment."""

    registry: CollectorRegistry

    def encoded(self, accept: str = "") -> tuple[bytes, str]:
        """The text in the format that an ``Accept`` header asks for, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type


def exposition(
    store: Store | None, settings: Settings, *, now: datetime, next_fires: Mapping[str, datetime | None]
) -> Exposition:
    """Read everything in a fixed number of queries. Without a store nothing has happened yet.

    ``next_fires`` is when each schedule fires next, as far as somebody knows. A store that cannot be read raises
    ``StoreError``.
    """
    registry = CollectorRegistry()
    registry.register(_Collected(families(take_snapshot(store, settings, now=now), settings, next_fires=next_fires)))
    return Exposition(registry=registry)


class _Collected(Collector):
    """Families that are complete already: what may fail is over before anything is encoded."""

    def __init__(self, collected: Iterable[Metric]) -> None:
        self._collected = tuple(collected)

    def collect(self) -> Iterable[Metric]:
        return self._collected
