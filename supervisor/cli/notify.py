"""`opsladder notify test` and `list`: whether people can be told, and what they were told. Called from ``app``."""

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.cli import logs, words
from supervisor.cli.exits import FAILED, SETTLED
from supervisor.cli.show import existing_store
from supervisor.decide.dispatch import standing_of
from supervisor.errors import ConfigError, UsageError
from supervisor.model.delivery import Delivery, DeliveryStatus
from supervisor.model.document import timestamp
from supervisor.model.report import Level
from supervisor.settings import Settings, settings_from_process

if TYPE_CHECKING:
    from supervisor.cli.screen import Screen

_SIGNS = {
    DeliveryStatus.WAITING: ("…", "cyan"),
    DeliveryStatus.SENT: ("✓", "green"),
    DeliveryStatus.FAILED: ("✗", "red"),
    DeliveryStatus.HELD_BACK: ("-", "bright_black"),
}
_LARGEST_LIMIT = 2**63 - 1


def send_test(config: Path | None, *, level: str) -> int:
    """Send a message to each target of a level, and say of each whether it arrived."""
    wanted = _level(level)
    logs.set_up(verbose=False)
    settings = settings_from_process(config)
    logs.keep_secret(settings.masker())
    from supervisor.notify import check_targets
    from supervisor.notify.deliver import send_trial

    check_targets(settings)
    results = send_trial(settings, wanted)
    if not results:
        raise ConfigError(
            f"Nobody is told of what is {wanted.value}.",
            remedy=f"Set notify.{wanted.value}, or OPSLADDER_NOTIFY__{wanted.value.upper()}_FILE.",
        )
    for name, why in results.items():
        print(f"✓ {name}: arrived" if why is None else f"✗ {name}: {words.harmless(why)}")
    return SETTLED if all(why is None for why in results.values()) else FAILED


def show_deliveries(config: Path | None, *, limit: int, as_json: bool) -> None:
    """List what was told, what waits and what failed."""
    settings = settings_from_process(config)
    store = existing_store(settings)
    found = store.deliveries(min(limit, _LARGEST_LIMIT)) if store else []
    names = _names(settings)
    if as_json:
        print(json.dumps({"schema": "opsladder.deliveries/1", "deliveries": [_document(d, names) for d in found]}))
    elif found:
        from supervisor.cli.screen import Screen

        screen = Screen()
        for delivery in found:
            _print(screen, delivery, names)
    elif names:
        print("Nobody was told anything yet.")
    else:
        print("Nobody was told anything yet, and [notify] names nobody to tell.")


def _level(text: str) -> Level:
    try:
        return Level(text)
    except ValueError:
        raise UsageError(f"There is no level {text!r}.", remedy=f"Levels are {', '.join(Level)}.") from None


def _names(settings: Settings) -> dict[str, str]:
    """What people may see of each target, by its key."""
    from supervisor.notify.targets import addresses_of

    return {address.target.key: address.shown for address in addresses_of(settings)}


def _print(screen: "Screen", delivery: Delivery, names: Mapping[str, str]) -> None:
    from rich.text import Text

    sign, colour = _SIGNS[delivery.status]
    head = Text.assemble(
        (f"{delivery.created_at.astimezone(dt.UTC):%Y-%m-%d %H:%M}  ", "bright_black"),
        (f"{sign} {delivery.status.value.replace('_', ' '):<9}  ", colour),
    )
    title = f"[{delivery.level.value}] {words.one_line(delivery.title, 200)}"
    screen.hang(head, Text(title))
    for line in _reasons(delivery, names):
        screen.hang(Text("  "), Text(words.harmless(line), "italic"))


def _reasons(delivery: Delivery, names: Mapping[str, str]) -> Iterator[str]:
    missed = standing_of(delivery).missed
    for key, why in missed.items():
        yield f"{_name(key, names)}: {why}"
    if missed and delivery.status is DeliveryStatus.WAITING:
        attempts = words.several(delivery.attempts, "attempt")
        yield f"{attempts} so far, the next one at {delivery.next_try_at.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC"


def _name(key: str, names: Mapping[str, str]) -> str:
    return names.get(key, "a target that is no longer configured")


def _document(delivery: Delivery, names: Mapping[str, str]) -> dict[str, object]:
    return {
        "id": delivery.id,
        "status": delivery.status.value,
        "level": delivery.level.value,
        "schedule": delivery.schedule,
        "cycle": delivery.cycle_id,
        "topic": delivery.topic,
        "title": delivery.title,
        "body": delivery.body,
        "created_at": timestamp(delivery.created_at),
        "sent_at": timestamp(delivery.sent_at),
        "next_try_at": timestamp(delivery.next_try_at) if delivery.status is DeliveryStatus.WAITING else None,
        "attempts": delivery.attempts,
        "missed": [{"target": _name(key, names), "reason": why} for key, why in standing_of(delivery).missed.items()],
    }
