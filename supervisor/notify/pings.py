"""Ask for the URL of a dead-man's switch, so that somebody notices when nothing asks any more. Does I/O.

Called from service and cli after each cycle. A ping that fails is logged and forgotten: the switch is there for that.
"""

import logging
from urllib.parse import urlsplit, urlunsplit

from supervisor.decide.telling import ping_for
from supervisor.model.cycle import Chain
from supervisor.notify.bounded import bounded
from supervisor.settings import Settings

logger = logging.getLogger(__name__)

PING_SECONDS = 10.0
_FAIL = "/fail"


def ping_after(settings: Settings, chain: Chain, *, seconds: float = PING_SECONDS) -> None:
    """Tell the dead-man's switch of a cycle's schedule how it ended, if it has one and there is anything to tell."""
    ok = ping_for(chain.cycle.status)
    urls = [s.ping_url for s in settings.schedules if s.name == chain.cycle.schedule and s.ping_url is not None]
    if ok is not None and urls:
        ping(urls[0].get_secret_value(), ok, schedule=chain.cycle.schedule, seconds=seconds)


def ping(url: str, ok: bool, *, schedule: str | None = None, seconds: float = PING_SECONDS) -> bool:
    """Ask for ``url``, or for its ``/fail``; whether it answered that this is fine, within so many seconds."""
    why = bounded({"ping": lambda: _get(url, ok, seconds)}, seconds)["ping"]
    if why is not None:
        logger.warning("A ping did not arrive", extra={"schedule": schedule, "why": why})
    return why is None


def _failing(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + _FAIL))


def _get(url: str, ok: bool, seconds: float) -> str | None:
    """Why the URL could not be asked for. Never with the URL in it, which is a secret."""
    # Here, not above: only a schedule with a ping needs it.
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    try:
        address = url if ok else _failing(url)
        request = Request(address, headers={"User-Agent": "opsladder"})  # noqa: S310 - the settings allow only http(s)
        with urlopen(request, timeout=seconds):  # noqa: S310 - as above
            return None
    except HTTPError as error:
        return f"it answered {error.code}"
    except URLError as error:
        return f"it cannot be reached: {error.reason}"
    except (OSError, HTTPException, ValueError) as error:
        return f"it cannot be asked: {type(error).__name__}"
