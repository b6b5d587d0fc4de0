"""Stand between a client and PostgreSQL and cut the line after a commit, before its answer. Does I/O; used by tests.

The one fault of a database that no client can see: the change was made, and nobody was told.
"""

import contextlib
import itertools
import select
import socket
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

_COMMITTED = b"COMMIT\0"


class CommitCutter:
    """Serves at ``url``; of the commits that changed something, every so many loses its answer."""

    def __init__(self, url: str, *, every: int) -> None:
        parts = urlsplit(url)
        self._server = f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.5432"
        self._directory = tempfile.TemporaryDirectory(prefix="opsladder-cut-")
        self.url = f"postgresql://{parts.netloc}{parts.path}?host={self._directory.name}"
        self._commits = itertools.count(1)
        self._every = every
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self.cut = 0

    def __enter__(self) -> Self:
        self._listener.bind(str(Path(self._directory.name) / ".s.PGSQL.5432"))
        self._listener.listen()
        self._listener.settimeout(0.05)
        self._run(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        while self._threads:
            self._threads.pop().join()
        self._listener.close()
        self._directory.cleanup()

    def _run(self, target, *args: socket.socket) -> None:
        thread = threading.Thread(target=target, args=args)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                client, _ = self._listener.accept()
                self._run(self._carry, client)

    def _carry(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(ConnectionError):
            server.connect(self._server)
            wrote = False
            while not self._over.is_set():
                ready, _, _ = select.select([client, server], [], [], 0.05)
                for end in ready:
                    data = end.recv(1 << 16)
                    if not data:
                        return
                    if end is client:
                        wrote = wrote or any(word in data for word in (b"INSERT", b"UPDATE"))
                    elif _COMMITTED in data and wrote:
                        wrote = False
                        if next(self._commits) % self._every == 0:
                            self.cut += 1
                            return
                    (server if end is client else client).sendall(data)
