"""Send one message to one Apprise address, and say why when it did not work. Does I/O; loads Apprise when first used.

Used by ``notify.deliver`` and ``notify.targets``. Addresses hold secrets: none of them is part of a reason.
"""

import logging
import warnings
from functools import cache
from typing import TYPE_CHECKING

from supervisor.decide.masking import Masker
from supervisor.model.report import Level

if TYPE_CHECKING:
    import apprise

UNREADABLE = "it is no address that Apprise knows"

_APPRISE = "apprise"
_REASON_LIMIT = 300


@cache
def load() -> None:
    """Load Apprise with all it can talk to, which takes about a second. Who bounds an attempt does this before."""
    with warnings.catch_warnings():
        # It looks for a module of the standard library that has an end.
        warnings.simplefilter("ignore", DeprecationWarning)
        import apprise

        # What went wrong is logged by us, as a reason and without addresses.
        logging.getLogger(_APPRISE).propagate = False
        # Any address makes it load its services, which it would otherwise do in the first attempt.
        apprise.Apprise.instantiate("json://localhost")


def is_readable(url: str) -> bool:
    """Whether Apprise knows what to do with this address."""
    load()
    return _service(url) is not None


def send(url: str, *, level: Level, title: str, body: str, masker: Masker) -> str | None:
    """Send a message; why that failed, or nothing."""
    load()
    import apprise

    service = _service(url)
    if service is None:
        return UNREADABLE
    everyone = apprise.Apprise(asset=service.asset)
    everyone.add(service)
    kind = {
        Level.INFO: apprise.NotifyType.INFO,
        Level.WARNING: apprise.NotifyType.WARNING,
        Level.CRITICAL: apprise.NotifyType.FAILURE,
    }[level]
    said: list[str] = []
    arrived = everyone.notify(
        body=masker.text(body),
        title=masker.text(title),
        notify_type=kind,
        body_format=apprise.NotifyFormat.TEXT,
        log_callback=lambda entry, _: said.append(entry.message),
        log_level=logging.WARNING,
    )
    if arrived:
        return None
    reason = masker.text(" ".join(" ".join(said).split())) or "it was not taken, and no reason was given"
    return reason[:_REASON_LIMIT]


def _service(url: str) -> "apprise.NotifyBase | None":
    import apprise

    asset = apprise.AppriseAsset(
        storage_mode=apprise.PersistentStoreMode.MEMORY,
        # A message may hold what a model or a tool said: it is text, and nothing in it is to be filled in.
        allow_templates=False,
        # Bounded by whoever calls. With a bound of its own it would send in threads that the process waits for.
        service_timeout=0,
    )
    service = apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
    if service is not None and "overflow=" not in url:
        # Else a message that is too long for a service is refused by it, however often it is tried.
        service.overflow_mode = apprise.OverflowMode.TRUNCATE
    return service
