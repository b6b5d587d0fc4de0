"""Do what may hang, and wait for it no longer than so long. Starts threads. Used by the rest of ``notify``."""

import logging
import threading
import time
from collections.abc import Callable, Mapping

logger = logging.getLogger(__name__)

Attempt = Callable[[], str | None]


def bounded(attempts: Mapping[str, Attempt], seconds: float) -> dict[str, str | None]:
    """Make all attempts at once. Each says why it failed, or nothing; one that is not over in time has failed.

    What hangs is left behind. In a thread that ends with the process: a receiver that takes for ever must not keep the
    process from ending, and a timeout of a socket bounds a single read, not all of them.
    """
    results: dict[str, str | None] = {}

    def run(name: str, attempt: Attempt) -> None:
        try:
            results[name] = attempt()
        except Exception as error:
            # Dozens of services with code of their own: one that breaks must not look like one that is slow.
            logger.exception("An attempt to tell somebody broke")
            results[name] = f"it broke: {type(error).__name__}"

    threads = [
        threading.Thread(target=run, args=(name, attempt), name=f"notify {name}", daemon=True)
        for name, attempt in attempts.items()
    ]
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    late = f"no answer within {seconds:.0f} s"
    # As it is now: what comes in later is not heard any more.
    arrived = dict(results)
    return {name: arrived.get(name, late) for name in attempts}
