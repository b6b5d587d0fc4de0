"""Who is told: the addresses of the settings, each once, with the levels it is told of. Loads Apprise only to check.

Used by ``notify.deliver``, cli and service. Reads and writes which addresses were found to be right.
"""

import json
import logging
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from supervisor.decide.dispatch import Target
from supervisor.durable import write_durably
from supervisor.model.report import Level
from supervisor.settings import ConfigProblems, Settings
from supervisor.settings.problems import KeyPath

logger = logging.getLogger(__name__)

_SCHEMA = "opsladder.targets/1"
_KEY_LENGTH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A target with where it stands in the settings, as ``name``, and the ``url`` that only its service gets to see."""

    target: Target
    name: str
    url: str

    @property
    def shown(self) -> str:
        """What people may see: of most services any part of the address can be the secret."""
        return f"{self.name} ({self.url.partition('://')[0]}://…)"

    def __repr__(self) -> str:
        return f"Address({self.shown})"


def addresses_of(settings: Settings) -> list[Address]:
    """All addresses. One that stands in several lists is one target, told once."""
    levels: dict[str, set[Level]] = {}
    for level in Level:
        for url in settings.notify.targets_of(level):
            levels.setdefault(url.get_secret_value(), set()).add(level)
    names = _names(settings)
    return [
        Address(target=Target(key=_key(url), levels=frozenset(told)), name=names[url], url=url)
        for url, told in levels.items()
    ]


def check_targets(settings: Settings) -> None:
    """``ConfigProblems`` that name the place of each address that Apprise cannot read, and never the address."""
    names = _names(settings)
    if not names:
        return
    from supervisor.notify import sending

    unreadable = [name for url, name in names.items() if not sending.is_readable(url)]
    if unreadable:
        what = f"{sending.UNREADABLE}, or something is missing in it"
        remedy = "Correct it; `opsladder notify test` tries it."
        raise ConfigProblems([settings.origin.problem(_path(name), what) for name in unreadable], remedy=remedy)


def check_new_targets(settings: Settings) -> None:
    """The same for addresses that were not found to be right before: to load Apprise takes most of a second."""
    addresses = {_key(url) for url in _names(settings)}
    version = _version_of_apprise()
    if addresses <= _known(settings.known_targets_file, version):
        return
    check_targets(settings)
    document = {"schema": _SCHEMA, "apprise": version, "readable": sorted(addresses)}
    try:
        write_durably(settings.known_targets_file, json.dumps(document))
    except OSError as error:
        # They are as good without it; only the next start takes longer.
        logger.warning("It is not kept that the addresses are right", extra={"why": error.strerror})


def _known(file: Path, version: str) -> frozenset[str]:
    try:
        kept = json.loads(file.read_bytes())
        return frozenset(kept["readable"]) if (kept["schema"], kept["apprise"]) == (_SCHEMA, version) else frozenset()
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return frozenset()


def _version_of_apprise() -> str:
    """Changes when another one is installed; loads nothing."""
    spec = find_spec("apprise")
    return f"{spec.origin} {Path(spec.origin).stat().st_mtime_ns}" if spec and spec.origin else ""


def _path(name: str) -> KeyPath:
    level, number = name.split(".")
    return "notify", level, int(number) - 1


def _names(settings: Settings) -> dict[str, str]:
    """Where each address stands first, counted from 1 as in every message about settings."""
    notify = settings.notify
    names: dict[str, str] = {}
    for level, urls in ((Level.CRITICAL, notify.critical), (Level.WARNING, notify.warning), (Level.INFO, notify.info)):
        for number, url in enumerate(urls, start=1):
            names.setdefault(url.get_secret_value(), f"{level.value}.{number}")
    return names


def _key(url: str) -> str:
    """Tells addresses apart on record, where they must not stand themselves."""
    return sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_LENGTH]
