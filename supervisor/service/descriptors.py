"""Let enough files be open for the cycles that may run at a time. Changes a limit of this process.

Called from service.daemon. Service managers and shells customarily start a process with 1024, which is not enough for
250 cycles; what is allowed on request is mostly far more.
"""

import logging
import resource

logger = logging.getLogger(__name__)

# Measured: four for a cycle whose CLI runs, twice as many while it starts. The rest is for the store and the web.
_FOR_A_CYCLE = 8
_FOR_THE_SERVICE = 256


def make_room(cycles: int) -> None:
    """Raise the limit as far as so many cycles need it, and no further: their CLIs inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _FOR_THE_SERVICE + _FOR_A_CYCLE * cycles
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < needed:
        logger.warning(
            "Too few files may be open for service.max_running", extra={"needed": needed, "allowed": allowed}
        )
