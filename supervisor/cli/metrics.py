"""`opsladder metrics`: the exposition for Prometheus. Reads the store; writes a file if asked. Called from ``app``."""

import datetime as dt
from pathlib import Path

from supervisor.cli.show import existing_store
from supervisor.durable import write_durably
from supervisor.errors import OpsladderError
from supervisor.settings import settings_from_process

# Whoever collects textfiles is another user.
_READABLE = 0o644


def show_metrics(config: Path | None, *, textfile: Path | None) -> None:
    """Print everything, or put it into a file that is there whole or not at all."""
    settings = settings_from_process(config)
    from supervisor.metrics import exposition

    # When a schedule fires next is known to who keeps the schedules.
    body, _ = exposition(existing_store(settings), settings, now=dt.datetime.now(dt.UTC), next_fires={}).encoded()
    text = body.decode()
    if textfile is None:
        print(text, end="")
        return
    try:
        write_durably(textfile, text, mode=_READABLE)
    except OSError as error:
        raise OpsladderError(
            f"{textfile} cannot be written: {error.strerror}.", remedy="Its directory has to be there and writable."
        ) from error
