"""Decide which waiting messages go to whom now, as one message each, and what becomes of them. Pure.

Called from ``notify.deliver``, which reads, sends and records. A target is one address; it is told apart by its key, so
that its address need not be kept.
"""

import datetime as dt
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from supervisor.decide.telling import AHEAD, rank
from supervisor.model.delivery import Delivery, DeliveryStatus
from supervisor.model.report import Level

# A day in all, then it is given up.
WAITS = tuple(dt.timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720))
HOUR = dt.timedelta(hours=1)
# Longer than any attempt may take: who has not recorded an outcome by then is gone.
LEASE = dt.timedelta(minutes=2)
SHOWN_TOGETHER = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An address, by its key, and the levels it is told of."""

    key: str
    levels: frozenset[Level]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far a message has come: when it reached which target, and why it has not reached others."""

    reached: Mapping[str, dt.datetime] = field(default_factory=dict)
    missed: Mapping[str, str] = field(default_factory=dict)

    def as_text(self) -> str:
        """For the record; nothing in it is an address."""
        reached = {key: at.isoformat() for key, at in self.reached.items()}
        return json.dumps({"reached": reached, "missed": dict(self.missed)}, ensure_ascii=False, sort_keys=True)


def standing_of(delivery: Delivery) -> Standing:
    """How far a message has come by now."""
    if delivery.error is None:
        return Standing()
    kept = json.loads(delivery.error)
    reached = {key: dt.datetime.fromisoformat(at) for key, at in kept["reached"].items()}
    return Standing(reached=reached, missed=kept["missed"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What goes to one target as one message. ``full_until``: it is the last one before the ceiling."""

    target: str
    deliveries: tuple[Delivery, ...]
    full_until: dt.datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is done now. ``nobody`` are messages for which there is no target any more."""

    envelopes: tuple[Envelope, ...] = ()
    nobody: tuple[Delivery, ...] = ()

    @property
    def deliveries(self) -> list[Delivery]:
        """What has to be claimed before anything is sent."""
        return sorted({d.id: d for e in self.envelopes for d in e.deliveries}.values(), key=lambda d: d.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What becomes of a message after an attempt."""

    status: DeliveryStatus
    next_try_at: dt.datetime
    sent_at: dt.datetime | None = None
    error: str | None = None


def plan(
    waiting: Sequence[Delivery],
    targets: Sequence[Target],
    told: Mapping[str, Collection[dt.datetime]],
    *,
    max_per_hour: int,
    at_once: bool,
    now: dt.datetime,
) -> Plan:
    """Which of the waiting messages go now. ``told`` has when each target got messages during the last hour.

    What is due takes along what still waits to be grouped; ``at_once`` waits for nothing more to group.
    """
    going = _going(waiting, targets, at_once=at_once, now=now)
    nobody = tuple(d for d in going if not any(d.level in target.levels for target in targets))
    envelopes = []
    for target in targets:
        times = sorted(at for at in told.get(target.key, ()) if now - HOUR < at <= now + AHEAD)
        room = max_per_hour - len(times)
        owed = [d for d in going if d.level in target.levels and target.key not in standing_of(d).reached]
        if room <= 0:
            owed = [d for d in owed if d.level is Level.CRITICAL]
        if owed:
            full_until = min(times, default=now) + HOUR if room == 1 else None
            envelopes.append(Envelope(target=target.key, deliveries=tuple(owed), full_until=full_until))
    return Plan(envelopes=tuple(envelopes), nobody=nobody)


def told_by_target(
    targets: Iterable[Target], sent: Collection[tuple[Level, dt.datetime]], waiting: Iterable[Delivery]
) -> dict[str, set[dt.datetime]]:
    """When each target got messages: those that reached everybody, and those that so far reached only some."""
    told = {target.key: {at for level, at in sent if level in target.levels} for target in targets}
    for delivery in waiting:
        for key, at in standing_of(delivery).reached.items():
            told.setdefault(key, set()).add(at)
    return told


def settle(
    delivery: Delivery, targets: Sequence[Target], results: Mapping[str, str | None], *, now: dt.datetime
) -> Settled:
    """What becomes of a claimed message. ``results`` says for each target it was sent to why that failed, if it did.

    A target that is owed it and was not sent to is at its ceiling: that is no failure, and is tried when there is room.
    """
    before = standing_of(delivery)
    reached = {**before.reached, **{key: now for key, why in results.items() if why is None}}
    failed = {key: why for key, why in results.items() if why is not None}
    ours = [target.key for target in targets if delivery.level in target.levels]
    full = [key for key in ours if key not in reached and key not in failed]
    missed = {**failed, **dict.fromkeys(full, "held back: it got as many messages in an hour as it may")}
    if not missed:
        return Settled(status=DeliveryStatus.SENT, next_try_at=now, sent_at=now)
    error = Standing(reached=reached, missed=missed).as_text()
    wait = wait_after(delivery.attempts)
    if failed and wait is None:
        return Settled(status=DeliveryStatus.FAILED, next_try_at=now, error=error)
    return Settled(
        status=DeliveryStatus.WAITING, next_try_at=now + (wait if failed and wait else WAITS[0]), error=error
    )


def wait_after(attempts: int) -> dt.timedelta | None:
    """How long to wait after so many attempts; ``None`` when that was the last one."""
    return WAITS[attempts - 1] if attempts <= len(WAITS) else None


def compose(envelope: Envelope) -> tuple[Level, str, str]:
    """Level, title and body of what goes to one target: the gravest first."""
    ordered = sorted(envelope.deliveries, key=lambda d: (-rank(d.level), d.id))
    first, *others = ordered
    title = f"[{first.level.value}] {first.title}"
    if not others:
        body = first.body
    else:
        title += f" (and {len(others)} more)"
        parts = [f"[{d.level.value}] {d.title}\n{d.body}" for d in ordered[:SHOWN_TOGETHER]]
        if len(ordered) > SHOWN_TOGETHER:
            parts.append(f"And {len(ordered) - SHOWN_TOGETHER} more: `opsladder notify list`.")
        body = "\n\n".join(parts)
    if envelope.full_until is not None:
        body += (
            "\n\nThis is the last message of this hour: others, unless they are critical, are held back until "
            f"{envelope.full_until.astimezone(dt.UTC):%H:%M} UTC. `opsladder notify list` shows them."
        )
    return first.level, title, body


def _going(
    waiting: Sequence[Delivery], targets: Sequence[Target], *, at_once: bool, now: dt.datetime
) -> list[Delivery]:
    def is_due(delivery: Delivery) -> bool:
        is_first = at_once and not delivery.attempts
        return delivery.next_try_at <= now or is_first or _clock_was_ahead(delivery, now)

    due = [d for d in waiting if is_due(d)]
    levels = {d.level for d in due}
    busy = [target for target in targets if target.levels & levels]
    # One that was tried before waits for its own time: its target may still be down.
    along = [
        d for d in waiting if not is_due(d) and not d.attempts and any(d.level in target.levels for target in busy)
    ]
    return sorted([*due, *along], key=lambda d: d.id)


def _clock_was_ahead(delivery: Delivery, now: dt.datetime) -> bool:
    """Whether its time was set by a clock that was put back since: else it would wait until that time comes again."""
    if not delivery.attempts:
        return delivery.created_at > now + AHEAD
    return delivery.next_try_at > now + AHEAD + max(LEASE, wait_after(delivery.attempts) or LEASE)
