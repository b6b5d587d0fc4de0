"""Make messages of the notices on record, send what is due, and record what became of it. Does I/O.

Called in a thread every few seconds, from the daemon and while `opsladder cycle` runs. Nothing here can hold up or
fail a cycle: a message waits on record until it is sent or given up.

A message is claimed by compare-and-set before it is sent, so of several processes one sends it, once for each attempt.
Its outcome is recorded afterwards: a process that dies between sending and recording leaves a claim that runs out after
two minutes, and then the message is sent again. So a crash at the wrong instant can tell people twice, but never not at
all. An attempt without an answer in time counts as failed too, although its receiver may have taken the message.
"""

import datetime as dt
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from supervisor.decide.dispatch import (
    HOUR,
    LEASE,
    Envelope,
    Plan,
    Target,
    compose,
    plan,
    settle,
    told_by_target,
)
from supervisor.errors import StoreError
from supervisor.model.cycle import Chain
from supervisor.model.delivery import Delivery, DeliveryStatus
from supervisor.model.report import Level
from supervisor.notify.bounded import bounded
from supervisor.notify.pings import ping_after
from supervisor.notify.targets import Address, addresses_of
from supervisor.settings import Settings
from supervisor.store import Store

logger = logging.getLogger(__name__)

# Shorter than a claim lasts, with much to spare for a database that is slow to take the outcome.
ATTEMPT_SECONDS = 20.0
AFTER_CYCLE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySummary:
    """What was done: notices that became messages or were held back, and what became of those that were due."""

    collected: int = 0
    held_back: int = 0
    sent: int = 0
    to_retry: int = 0
    failed: int = 0


def deliver_due(
    store: Store,
    settings: Settings,
    *,
    now: dt.datetime,
    at_once: bool = False,
    seconds: float = ATTEMPT_SECONDS,
) -> DeliverySummary:
    """Collect notices and send what is due, all targets at the same time and for so many seconds at most.

    ``at_once`` does not wait for more to group with. Without targets nothing is done. Raises ``StoreError`` only.
    """
    addresses = addresses_of(settings)
    if not addresses:
        return DeliverySummary()
    notify, targets = settings.notify, [address.target for address in addresses]
    collected = store.collect_notices(
        now,
        levels=frozenset[Level]().union(*(target.levels for target in targets)),
        repeat=dt.timedelta(minutes=notify.repeat_minutes),
        group=dt.timedelta(seconds=notify.group_seconds),
    )
    waiting = store.waiting_deliveries(now)
    planned = Plan()
    if waiting:
        told = told_by_target(targets, store.told_since(now - HOUR), waiting)
        planned = plan(waiting, targets, told, max_per_hour=notify.max_per_hour, at_once=at_once, now=now)
    for delivery in planned.nobody:
        store.settle_delivery(delivery, status=DeliveryStatus.HELD_BACK, next_try_at=now, error=delivery.error)
    for delivery in planned.over:
        _record(store, delivery, targets, {}, now)
    claimed = (
        {d.id: d for d in store.claim_deliveries(planned.deliveries, until=now + LEASE)} if planned.envelopes else {}
    )
    results = _send(_of_ours(planned.envelopes, claimed), addresses, settings, seconds)
    became = [_record(store, delivery, targets, results, now) for delivery in claimed.values()]
    return DeliverySummary(
        collected=collected.to_tell,
        held_back=collected.held_back + len(planned.nobody),
        sent=became.count(DeliveryStatus.SENT),
        to_retry=became.count(DeliveryStatus.WAITING),
        failed=became.count(DeliveryStatus.FAILED),
    )


def deliver_after_cycle(settings: Settings, store: Store, chain: Chain) -> None:
    """Ping and deliver at the end of a cycle that no daemon ran, in a few seconds altogether.

    What does not go out in that time waits for the next cycle. Never raises because of the store or a receiver.
    """
    ends = time.monotonic() + AFTER_CYCLE_SECONDS
    ping_after(settings, chain, seconds=AFTER_CYCLE_SECONDS / 2)
    try:
        left = max(1.0, ends - time.monotonic())
        deliver_due(store, settings, now=dt.datetime.now(dt.UTC), at_once=True, seconds=left)
    except StoreError as error:
        logger.warning("Messages wait for the next cycle", extra={"why": error.message})


def send_trial(settings: Settings, level: Level) -> dict[str, str | None]:
    """Send a test message to all who are told of a level; for each, as people may see it, why it did not arrive."""
    from supervisor.notify import sending

    sending.load()
    title, body = f"[{level.value}] opsladder test", "A test message: what is told of this level arrives here."
    masker = settings.masker()
    attempts = {
        address.shown: partial(sending.send, address.url, level=level, title=title, body=body, masker=masker)
        for address in addresses_of(settings)
        if level in address.target.levels
    }
    return bounded(attempts, ATTEMPT_SECONDS)


def _of_ours(envelopes: Sequence[Envelope], claimed: Mapping[int, Delivery]) -> list[Envelope]:
    """The envelopes with only what no other process took first."""
    ours = (replace(e, deliveries=tuple(claimed[d.id] for d in e.deliveries if d.id in claimed)) for e in envelopes)
    return [envelope for envelope in ours if envelope.deliveries]


def _send(
    envelopes: Sequence[Envelope], addresses: Sequence[Address], settings: Settings, seconds: float
) -> dict[tuple[str, int], str | None]:
    """Send each envelope; for each target and message why it did not arrive, or nothing."""
    if not envelopes:
        return {}
    # Here, not above: most of the time there is nothing to send.
    from supervisor.notify import sending

    by_key = {address.target.key: address for address in addresses}
    masker = settings.masker()
    sending.load()

    def attempt(envelope: Envelope) -> str | None:
        level, title, body = compose(envelope)
        url = by_key[envelope.target].url
        return sending.send(url, level=level, title=title, body=body, masker=masker)

    results = bounded({envelope.target: partial(attempt, envelope) for envelope in envelopes}, seconds)
    for key, why in results.items():
        if why is not None:
            logger.warning("A message did not arrive", extra={"target": by_key[key].shown, "why": why})
    return {(e.target, d.id): results[e.target] for e in envelopes for d in e.deliveries}


def _record(
    store: Store,
    delivery: Delivery,
    targets: Sequence[Target],
    results: Mapping[tuple[str, int], str | None],
    now: dt.datetime,
) -> DeliveryStatus:
    of_this = {target: why for (target, message), why in results.items() if message == delivery.id}
    settled = settle(delivery, targets, of_this, now=now)
    recorded = store.settle_delivery(
        delivery,
        status=settled.status,
        next_try_at=settled.next_try_at,
        sent_at=settled.sent_at,
        error=settled.error,
    )
    if not recorded:
        logger.warning("A message was taken over by another process", extra={"delivery": delivery.id})
    elif settled.status is DeliveryStatus.FAILED:
        logger.error("A message is given up", extra={"delivery": delivery.id, "attempts": delivery.attempts})
    return settled.status
