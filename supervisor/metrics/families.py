"""What was read, as families of metrics with their names, labels and help. No I/O. Used by ``metrics``.

The names are a contract with dashboards and rules. A label is a schedule, a tier, a model or one of a few words, never
a session, a cycle or an incident. A counter that can be named beforehand begins at 0, because Prometheus sees no
increase in one that appears with its first count; a gauge of which nothing is known is left out.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import product

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from supervisor import __version__
from supervisor.decide.continuity import OCCASIONS
from supervisor.decide.lifecycle import CYCLE_MOVES, SESSION_MOVES
from supervisor.metrics.snapshot import Snapshot
from supervisor.model.cycle import CycleStatus
from supervisor.model.outcome import Failure
from supervisor.model.permission import Verdict
from supervisor.model.session import UNFINISHED, ContinuityKind, Reason
from supervisor.settings import Settings
from supervisor.store.tallies import DURATION_BOUNDS, TOKEN_KINDS, Tally, TallyName

_PREFIX = "opsladder_"

Labels = tuple[str, ...]
Samples = dict[Labels, float]


def families(snapshot: Snapshot, settings: Settings, *, next_fires: Mapping[str, datetime | None]) -> Iterator[Metric]:
    """Every family, in the order in which it is shown."""
    known = _Known(settings)
    tallied = _Tallied(snapshot.tallies)
    yield from _counted(tallied, known)
    yield _durations(tallied, known)
    yield from _kept(tallied, known)
    yield from _at_this_moment(snapshot, settings, known, next_fires)


class _Known:
    """The labels that the configuration and the model name beforehand."""

    def __init__(self, settings: Settings) -> None:
        self.tiers = [str(number) for number in range(1, len(settings.tiers) + 1)]
        self.models = [tier.model for tier in settings.tiers]
        self.schedules = [schedule.name for schedule in settings.schedules]
        self.session_ends = sorted(frozenset().union(*(SESSION_MOVES[status] for status in UNFINISHED)) - UNFINISHED)
        self.cycle_ends = sorted((CYCLE_MOVES[CycleStatus.RUNNING] - {CycleStatus.PAUSED}) | {CycleStatus.SKIPPED})
        self.fallbacks = sorted(frozenset(Reason) - OCCASIONS)
        self.escalations = [
            (ContinuityKind.RESUME.value, Reason.NEXT_TIER.value),
            *product([ContinuityKind.HANDOFF.value], self.fallbacks),
            *product([CycleStatus.BLOCKED.value], ["dry_run", "handoff_invalid", "max_tier"]),
        ]


class _Tallied:
    """The tallies by name, then by the values of their labels."""

    def __init__(self, tallies: Iterable[Tally]) -> None:
        self._by_name: defaultdict[TallyName, list[Tally]] = defaultdict(list)
        for tally in tallies:
            self._by_name[tally.name].append(tally)

    def samples(self, name: TallyName, labels: Sequence[str]) -> Samples:
        return {tuple(tally.labels[label] for label in labels): tally.value for tally in self._by_name[name]}


def _durations(tallied: _Tallied, known: _Known) -> Metric:
    family = HistogramMetricFamily(
        f"{_PREFIX}session_duration_seconds", "How long sessions ran, from start to end.", labels=("tier",)
    )
    sums = tallied.samples(TallyName.DURATION_SUM, ("tier",))
    by_class = tallied.samples(TallyName.DURATION_CLASS, ("tier", "le"))
    for tier in sorted({*known.tiers, *(tier for (tier,) in sums)}, key=int):
        buckets = [
            # A class whose bound this version no longer has counts in the next one above it.
            (
                "+Inf" if math.isinf(bound) else str(bound),
                sum(count for (of_tier, le), count in by_class.items() if of_tier == tier and float(le) <= bound),
            )
            for bound in (*DURATION_BOUNDS, math.inf)
        ]
        family.add_metric((tier,), buckets=buckets, sum_value=sums.get((tier,), 0.0))
    return family


def _counted(tallied: _Tallied, known: _Known) -> Iterator[Metric]:
    wanted: tuple[tuple[TallyName, str, Labels, Iterable[tuple[str, ...]]], ...] = (
        (
            TallyName.CYCLES,
            "Cycles that ended, and firings that were skipped.",
            ("schedule", "status"),
            product(known.schedules, known.cycle_ends),
        ),
        (
            TallyName.SESSIONS,
            "Sessions that ended, each one process of the CLI.",
            ("tier", "status", "continuity"),
            product(known.tiers, known.session_ends, ContinuityKind),
        ),
        (
            TallyName.COST,
            "What sessions that ended have cost, in US dollars, as far as it is known.",
            ("tier", "model"),
            zip(known.tiers, known.models, strict=True),
        ),
        (
            TallyName.TOKENS,
            "Tokens that sessions that ended have used, all models together.",
            ("tier", "kind"),
            product(known.tiers, TOKEN_KINDS),
        ),
        (
            TallyName.FAILURES,
            "Sessions that did not complete, by what kept them from it.",
            ("tier", "failure"),
            product(known.tiers, Failure),
        ),
        (
            TallyName.ESCALATIONS,
            "Runs on a higher tier than the one they went on from, and climbs that were blocked.",
            ("from_tier", "decision", "reason"),
            ((tier, *decided) for tier in known.tiers[:-1] for decided in known.escalations),
        ),
        (
            TallyName.FALLBACKS,
            "Runs that got their context in writing, by what stood against resuming.",
            ("reason",),
            product(known.fallbacks),
        ),
        (
            TallyName.GUARD_DECISIONS,
            "Answers of the guard to tool calls.",
            ("tier", "decision"),
            product(known.tiers, Verdict),
        ),
        (
            TallyName.MISSED_FIRES,
            "Firings that passed without a cycle.",
            ("schedule",),
            product(known.schedules),
        ),
    )
    for name, says, labels, beforehand in wanted:
        yield _counter(name, says, labels, beforehand, tallied.samples(name, labels))


def _kept(tallied: _Tallied, known: _Known) -> Iterator[Metric]:
    """What was last. Not of what the configuration no longer names: nothing will come after it, however long it is."""
    for name, says, label, named in (
        (
            TallyName.CONTEXT_USED,
            "How full the context window was at the end of the tier's last session.",
            "tier",
            known.tiers,
        ),
        (TallyName.LAST_SUCCESS, "When a cycle last ended healthy or resolved.", "schedule", known.schedules),
        (TallyName.LAST_CYCLE, "When a cycle last ended, however that was.", "schedule", known.schedules),
    ):
        samples = tallied.samples(name, (label,))
        yield _gauge(name, says, (label,), {values: samples[values] for values in samples if values[0] in named})


def _at_this_moment(
    snapshot: Snapshot, settings: Settings, known: _Known, next_fires: Mapping[str, datetime | None]
) -> Iterator[Metric]:
    active: Samples = dict.fromkeys(product(known.tiers), 0.0)
    active |= {(str(tier),): float(count) for tier, count in snapshot.under_way.active_sessions.items()}
    yield _gauge("active_sessions", "Sessions whose process runs now.", ("tier",), active)
    yield _gauge(
        "approvals_pending",
        "Tool calls that wait for a person.",
        (),
        {(): float(snapshot.under_way.approvals_pending)},
    )
    yield _gauge(
        "budget_spent_usd",
        "What was spent today (UTC), in US dollars, with what runs now.",
        (),
        {(): snapshot.spent_usd},
    )
    limit = settings.budget.per_day_usd
    yield _gauge(
        "budget_limit_usd",
        "What may be spent in a day (UTC), in US dollars; left out where nothing limits it.",
        (),
        {} if limit is None else {(): float(limit)},
    )
    yield _gauge("paused", "1 while the switch is off and nothing runs.", (), {(): float(snapshot.paused)})
    yield _gauge(
        "next_fire_timestamp_seconds",
        "When the schedule fires next.",
        ("schedule",),
        {(schedule,): at.timestamp() for schedule, at in next_fires.items() if at is not None},
    )
    yield _gauge(
        "build_info",
        "The version of opsladder, and of the Claude CLI as it was last probed.",
        ("version", "claude_version"),
        {(__version__, snapshot.claude_version): 1.0},
    )


def _counter(
    name: str, says: str, labels: Labels, beforehand: Iterable[tuple[str, ...]], counted: Mapping[Labels, float]
) -> Metric:
    family = CounterMetricFamily(_PREFIX + name, says, labels=labels)
    samples = dict.fromkeys(beforehand, 0.0) | dict(counted)
    for values in sorted(samples):
        family.add_metric(values, samples[values])
    return family


def _gauge(name: str, says: str, labels: Labels, samples: Mapping[Labels, float]) -> Metric:
    family = GaugeMetricFamily(_PREFIX + name, says, labels=labels)
    for values in sorted(samples):
        family.add_metric(values, samples[values])
    return family
