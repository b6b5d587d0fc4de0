"""Who runs a cycle, and whether it still lives. Reads /proc. Called from climb.cycle and climb.recovery."""

import datetime as dt
import os
import socket
from functools import cache
from pathlib import Path

from supervisor.store import Owner

# An owner on another host that was silent for this long is taken for dead. Far longer than a store may be away.
LEASE = dt.timedelta(minutes=5)

_STATE, _START = 0, 19
_DEAD = frozenset("ZXx")


@cache
def this_process() -> Owner:
    """Who owns the cycles begun here."""
    started = _started(os.getpid())
    if started is None:
        raise RuntimeError("this process is not found in /proc")
    return Owner(host=_host(), pid=os.getpid(), started=started)


def is_gone(owner: Owner) -> bool:
    """Whether an owner is known to be dead. One on another host is, when its heartbeat is older than its lease."""
    name, _, boot = owner.host.partition(" ")
    here, _, this_boot = _host().partition(" ")
    if name != here:
        return owner.silent_for is not None and owner.silent_for > LEASE
    return boot != this_boot or _started(owner.pid) != owner.started


@cache
def _host() -> str:
    """The host and its present boot: no process survives a reboot, whatever has its pid now."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{socket.gethostname()} {boot}"


def _started(pid: int) -> float | None:
    """When a living process began, in clock ticks since the boot; ``None`` when it is gone.

    Not its time of day, which changes whenever the clock is set: a supervisor that lives would look dead. And a zombie
    is gone, though its parent, often an init that never asks, may keep its entry for ever.
    """
    try:
        # The name in parentheses may hold anything, so the fields are counted from the last parenthesis.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[_STATE] in _DEAD else float(fields[_START])
