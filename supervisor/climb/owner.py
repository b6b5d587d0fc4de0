"""Who runs a cycle, and whether it still lives. Reads /proc. Called from climb.cycle and climb.recovery."""

import datetime as dt
import os
import socket
from functools import cache
from pathlib import Path

from supervisor.store import Owner

# An owner on another host that was silent for this long is taken for dead. Far longer than a store may be away.
LEASE = dt.timedelta(minutes=5)

# How the kernel names the process numbers that every host begins with.
_FIRST_NUMBERS = "pid:[4026531836]"
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
    """Whether an owner is known to be dead. One that cannot be seen is, when its heartbeat is older than its lease.

    That is one on another host, and one in another container: there its number means another process, or none.
    """
    name, boot, numbers = _parts(owner.host)
    here, this_boot, these_numbers = _parts(_host())
    if name != here or (boot == this_boot and numbers != these_numbers):
        return owner.silent_for is not None and owner.silent_for > LEASE
    return boot != this_boot or _started(owner.pid) != owner.started


@cache
def _host() -> str:
    """The host and its present boot: no process survives a reboot, whatever has its pid now.

    In a container also whose process numbers these are: several can have the name of their host.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    numbers = str(Path("/proc/self/ns/pid").readlink())
    return f"{socket.gethostname()} {boot}" + ("" if numbers == _FIRST_NUMBERS else f" {numbers}")


def _parts(host: str) -> tuple[str, str, str]:
    name, _, rest = host.partition(" ")
    boot, _, numbers = rest.partition(" ")
    return name, boot, numbers


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
