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
_HELD_BACK = "held back: it got as many messages in an hour as it may"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An address, by its key, and the levels it is told of."""

    key: str
    levels: frozenset[Level]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far a message has come: when it reached which target, and why it has not reached others.

    ``failed`` is how often sending it to a target has failed, and ``again_at`` when that is tried the next time.
    """

    reached: Mapping[str, dt.datetime] = field(default_factory=dict)
    missed: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    again_at: Mapping[str, dt.datetime] = field(default_factory=dict)

    def as_text(self) -> str:
        """For the record; nothing in it is an address."""
        said = {"reached": _as_texts(self.reached), "missed": dict(self.missed)}
        tried = {"failed": dict(self.failed), "again_at": _as_texts(self.again_at)}
        return json.dumps({**said, **tried}, ensure_ascii=False, sort_keys=True)

    def is_owed(self, key: str, now: dt.datetime) -> bool:
        """Whether a target has to get it now: it has not, nor was it given up, nor does it wait to be tried again."""
        if key in self.reached or self.is_given_up(key):
            return False
        return key not in self.again_at or not _waits(self.again_at[key], self.failed.get(key, 0), now)

    def is_given_up(self, key: str) -> bool:
        return self.failed.get(key, 0) > len(WAITS)


def standing_of(delivery: Delivery) -> Standing:
    """How far a message has come by now."""
    if delivery.error is None:
        return Standing()
    kept = json.loads(delivery.error)
    return Standing(
        reached=_as_times(kept["reached"]),
        missed=kept["missed"],
        failed=kept["failed"],
        again_at=_as_times(kept["again_at"]),
    )


def _as_texts(times: Mapping[str, dt.datetime]) -> dict[str, str]:
    return {key: at.isoformat() for key, at in times.items()}


def _as_times(texts: Mapping[str, str]) -> dict[str, dt.datetime]:
    return {key: dt.datetime.fromisoformat(at) for key, at in texts.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What goes to one target as one message. ``full_until``: it is the last one before the ceiling."""

    target: str
    deliveries: tuple[Delivery, ...]
    full_until: dt.datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is done now. ``nobody`` are messages for which there is no target any more.

    ``over`` are those that wait for no target any more: the one they had not reached was taken away.
    """

    envelopes: tuple[Envelope, ...] = ()
    nobody: tuple[Delivery, ...] = ()
    over: tuple[Delivery, ...] = ()

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
    over = tuple(d for d in going if d not in nobody and not _is_open(d, targets))
    envelopes = []
    for target in targets:
        times = sorted(at for at in told.get(target.key, ()) if now - HOUR < at <= now + AHEAD)
        room = max_per_hour - len(times)
        owed = [d for d in going if d.level in target.levels and standing_of(d).is_owed(target.key, now)]
        if room <= 0:
            owed = [d for d in owed if d.level is Level.CRITICAL]
        if owed:
            full_until = min(times, default=now) + HOUR if room == 1 else None
            envelopes.append(Envelope(target=target.key, deliveries=tuple(owed), full_until=full_until))
    return Plan(envelopes=tuple(envelopes), nobody=nobody, over=over)


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

    Each target that failed waits for its own time, and is given up in the end. One that is owed it and was not sent to
    is at its ceiling: that is no failure, and is tried when there is room.
    """
    before = standing_of(delivery)
    ours = [target.key for target in targets if delivery.level in target.levels]
    reached = {**before.reached, **{key: now for key, why in results.items() if why is None}}
    failing = [key for key, why in results.items() if why is not None]
    failed = {**before.failed, **{key: before.failed.get(key, 0) + 1 for key in failing}}
    waits = {key: wait for key in failing if (wait := wait_after(failed[key])) is not None}
    again_at = {**before.again_at, **{key: now + wait for key, wait in waits.items()}}
    missed = {key: results.get(key) or _why_missed(before, key) for key in ours if key not in reached}
    standing = Standing(reached=reached, missed=missed, failed=failed, again_at=again_at)
    if not missed:
        return Settled(status=DeliveryStatus.SENT, next_try_at=now, sent_at=now)
    owed = [key for key in missed if not standing.is_given_up(key)]
    if not owed:
        return Settled(status=DeliveryStatus.FAILED, next_try_at=now, error=standing.as_text())
    next_try_at = min(again_at.get(key, now + WAITS[0]) for key in owed)
    return Settled(status=DeliveryStatus.WAITING, next_try_at=next_try_at, error=standing.as_text())


def _why_missed(before: Standing, key: str) -> str:
    """Why a target has not got what it was not sent now. One that was taken away for a while has no reason kept."""
    return before.missed.get(key, _HELD_BACK) if key in before.failed else _HELD_BACK


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


def _is_open(delivery: Delivery, targets: Sequence[Target]) -> bool:
    """Whether any target has still to get it, now or later."""
    standing = standing_of(delivery)
    ours = (target.key for target in targets if delivery.level in target.levels)
    return any(key not in standing.reached and not standing.is_given_up(key) for key in ours)


def _clock_was_ahead(delivery: Delivery, now: dt.datetime) -> bool:
    """Whether its time was set by a clock that was put back since: else it would wait until that time comes again."""
    if not delivery.attempts:
        return delivery.created_at > now + AHEAD
    return not _waits(delivery.next_try_at, delivery.attempts, now)


def _waits(until: dt.datetime, attempts: int, now: dt.datetime) -> bool:
    """Whether this time is still to come, as one that was set after so many attempts by a clock that was right."""
    return now < until <= now + AHEAD + max(LEASE, WAITS[min(attempts, len(WAITS)) - 1])
