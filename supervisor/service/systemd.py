"""Tell systemd how the service is. Sends datagrams to its socket. Called from service.daemon.

The protocol is one datagram with lines of NAME=value; without a socket nothing is sent, and everything else goes on.
"""

import logging
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass

logger = logging.getLogger(__name__)

_ABSTRACT = "@"


@dataclass(frozen=True, slots=True, kw_only=True)
class Systemd:
    """Whoever started the service, if it wants to know. ``watchdog_seconds`` is how long it may be without a sign."""

    address: str | None = None
    watchdog_seconds: float | None = None

    def ready(self, status: str) -> None:
        self._send("READY=1", f"STATUS={status}")

    def status(self, status: str) -> None:
        self._send(f"STATUS={status}")

    def reloading(self) -> None:
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, status: str) -> None:
        self._send("STOPPING=1", f"STATUS={status}")

    def alive(self) -> None:
        self._send("WATCHDOG=1")

    def extend(self, seconds: float) -> None:
        """Ask for more time to stop or to start."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}")

    def _send(self, *lines: str) -> None:
        if not self.address:
            return
        address = "\0" + self.address[1:] if self.address.startswith(_ABSTRACT) else self.address
        message = "\n".join(line.replace("\n", " ") for line in lines).encode()
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as way:
                way.sendto(message, address)
        except OSError as error:
            logger.warning("systemd was not told", extra={"why": error.strerror, "what": lines[0]})


def from_environment(environ: Mapping[str, str], pid: int) -> Systemd:
    """What systemd put into the environment. A watchdog is meant for us only if it names our pid, or none."""
    named = environ.get("WATCHDOG_PID")
    interval = environ.get("WATCHDOG_USEC", "")
    meant = named is None or named == str(pid)
    seconds = int(interval) / 1_000_000 if interval.isdigit() and meant else None
    return Systemd(address=environ.get("NOTIFY_SOCKET") or None, watchdog_seconds=seconds or None)
