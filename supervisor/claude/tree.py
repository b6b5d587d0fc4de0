"""Who belongs to a run, and ending all of it. Signals processes. Called from claude.process.

A run's processes are the CLI and its descendants, whoever carries the run's mark in its environment, and orphans that
lost both: the supervisor is made the reaper of its descendants, so these become its own children. A process is known
by pid and start time together; one that is older than the run is never part of it.
"""

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import ClassVar

import psutil

from supervisor.claude.marks import MARK

logger = logging.getLogger(__name__)

_PR_SET_CHILD_SUBREAPER = 36
# psutil derives a start time from the boot time, which shifts when the clock is set between two supervisors.
_CLOCK_TOLERANCE_SECONDS = 2.0
_POLL_SECONDS = 0.02
_KILL_SECONDS = 2.0


@cache
def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent dies. Lasts as long as the process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        logger.warning("Orphans cannot be adopted", extra={"errno": ctypes.get_errno()})


def reap_orphans() -> None:
    """Take adopted processes off the process table that ended after their run was over; nobody else waits for them."""
    ours = Tree.under_way()
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess, ChildProcessError):
            if child.pid not in ours and child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)


def marks_alive() -> frozenset[str]:
    """The marks of all runs of which any process still lives, found in one look."""
    prefix = f"{MARK}=".encode()
    found: set[bytes] = set()
    for process in psutil.process_iter():
        with contextlib.suppress(OSError):
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
            found.update(entry[len(prefix) :] for entry in environment.split(b"\0") if entry.startswith(prefix))
    return frozenset(mark.decode(errors="replace") for mark in found)


def _forget_the_dead() -> None:
    """Let psutil look anew: it takes whoever was given a pid since it last looked for the one who had it then."""
    psutil.process_iter.cache_clear()


class Tree:
    """The processes of one run. ``child`` is the CLI when this very process has started it."""

    _live: ClassVar[set["Tree"]] = set()

    def __init__(
        self, pid: int, started: float, *, mark: str | None, child: subprocess.Popen[bytes] | None = None
    ) -> None:
        self.pid = pid
        self.started = started
        self._mark = f"{MARK}={mark}".encode() if mark else None
        self._child = child
        self._known: set[psutil.Process] = set()
        self._interrupted = False
        self._over = False
        if child is not None:
            Tree._live.add(self)

    @classmethod
    def under_way(cls) -> frozenset[int]:
        """The CLIs that this process has started and not ended yet."""
        return frozenset(tree.pid for tree in cls._live)

    def interrupt(self) -> None:
        """Ask the CLI alone to stop, so that it can still write its transcript and its last words."""
        self._interrupted = True
        _forget_the_dead()
        # Looked at now, while the line of descent is whole: afterwards some of them are orphans.
        self.members()
        self._signal(self._main(), signal.SIGINT)

    async def end(self, grace_seconds: float) -> None:
        """End everything: ask the CLI, then everyone, then kill. A cancellation in the middle means kill at once."""
        if self._over:
            return
        _forget_the_dead()
        try:
            if not self._interrupted and self._main():
                self.interrupt()
                await self._until_gone(grace_seconds, everyone=False)
            if remaining := self.members():
                self._signal(remaining, signal.SIGTERM)
                await self._until_gone(grace_seconds, everyone=True)
        finally:
            self._kill()
            self._over = True
            Tree._live.discard(self)

    def members(self) -> list[psutil.Process]:
        """Every living process of the run. Who was once seen to belong does so for good."""
        children: dict[int, list[psutil.Process]] = {}
        belonging = []
        for process, parent in self._candidates():
            children.setdefault(parent, []).append(process)
            with contextlib.suppress(psutil.NoSuchProcess):
                if process in self._known or self._belongs(process, parent):
                    belonging.append(process)
        found: set[psutil.Process] = set()
        while belonging:
            process = belonging.pop()
            if process not in found:
                found.add(process)
                belonging.extend(children.get(process.pid, ()))
        self._known = found
        return [process for process in found if self._is_alive(process)]

    def _belongs(self, process: psutil.Process, parent: int) -> bool:
        return self._is_main(process) or self._is_marked(process) or self._is_orphan(process, parent)

    def _candidates(self) -> list[tuple[psutil.Process, int]]:
        spared = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
        candidates = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.pid not in spared and process.create_time() >= self.started - _CLOCK_TOLERANCE_SECONDS:
                    candidates.append((process, process.ppid()))
        return candidates

    def _main(self) -> list[psutil.Process]:
        try:
            process = psutil.Process(self.pid)
            return [process] if self._is_main(process) and self._is_alive(process) else []
        except psutil.NoSuchProcess:
            return []

    def _is_main(self, process: psutil.Process) -> bool:
        return process.pid == self.pid and abs(process.create_time() - self.started) <= _CLOCK_TOLERANCE_SECONDS

    def _is_marked(self, process: psutil.Process) -> bool:
        if self._mark is None:
            return False
        try:
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
        except OSError:
            return False
        return self._mark in environment.split(b"\0")

    def _is_orphan(self, process: psutil.Process, parent: int) -> bool:
        """Whether this is a descendant of this run, and of no other, that has become our own child.

        The CLI leads a session of its own, so a child of ours that shares our session was started by us.
        """
        if parent != os.getpid() or self._child is None or any(process.pid == other.pid for other in Tree._live):
            return False
        try:
            session = os.getsid(process.pid)
        except ProcessLookupError:
            return False
        if session in (os.getsid(0), self.pid):
            return session == self.pid
        rivals = [other for other in Tree._live if other is not self]
        return not any(session == other.pid or process.create_time() >= other.started for other in rivals)

    def _is_alive(self, process: psutil.Process) -> bool:
        """Whether it still runs; a child of ours that has ended is taken off the process table."""
        if self._child is not None and process.pid == self._child.pid:
            return self._child.poll() is None
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                return True
            if process.ppid() == os.getpid():
                os.waitpid(process.pid, os.WNOHANG)
        except (psutil.NoSuchProcess, ChildProcessError):
            pass
        return False

    def _signal(self, processes: Iterable[psutil.Process], number: signal.Signals) -> None:
        for process in processes:
            # psutil compares the start time first, so a pid that was given away in the meantime is spared.
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                process.send_signal(number)

    async def _until_gone(self, seconds: float, *, everyone: bool) -> None:
        deadline = time.monotonic() + seconds
        # Processes that are not our children tell nobody when they end, so there is nothing to wait on.
        while time.monotonic() < deadline and (self.members() if everyone else self._main()):  # noqa: ASYNC110
            await asyncio.sleep(_POLL_SECONDS)

    def _kill(self) -> None:
        """Kill in rounds, because a process may start another one between the look and the blow."""
        deadline = time.monotonic() + _KILL_SECONDS
        while remaining := self.members():
            self._signal(remaining, signal.SIGKILL)
            if time.monotonic() > deadline:
                pids = [process.pid for process in remaining]
                logger.error("Processes of a run survive being killed", extra={"pids": pids})
                return
            time.sleep(_POLL_SECONDS)
