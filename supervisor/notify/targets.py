"""Who is told: the addresses of the settings, each once, with the levels it is told of. Loads Apprise only to check.

Used by ``notify.deliver`` and ``cli.notify``.
"""

from dataclasses import dataclass
from hashlib import sha256

from supervisor.decide.dispatch import Target
from supervisor.model.report import Level
from supervisor.settings import ConfigProblems, Problem, Settings

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
    from supervisor.notify import sending

    where = str(settings.source) if settings.source else "the environment"
    unreadable = [name for url, name in _names(settings).items() if not sending.is_readable(url)]
    if unreadable:
        what = f"{sending.UNREADABLE}, or something is missing in it"
        raise ConfigProblems([Problem(where=where, key=f"notify.{name}", what=what) for name in unreadable])


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
