"""A real receiver of messages on loopback, which can refuse and hang. Does I/O."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(slots=True)
class Receiver:
    """What arrived at each path, in order. ``status`` is what it answers; while ``hangs`` it answers nothing."""

    port: int = 0
    status: int = 200
    messages: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    hangs: threading.Event | None = None
    arrived: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str = "/") -> str:
        """An Apprise address."""
        return f"json://127.0.0.1:{self.port}{path}"

    def http(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def at(self, path: str) -> list[dict[str, Any]]:
        return [said for where, said in self.messages if where.rstrip("/") == path.rstrip("/")]

    @property
    def titles(self) -> list[str]:
        return [said["title"] for _, said in self.messages]


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(lambda: receiver.messages.append((self.path, json.loads(body))))

        def do_GET(self) -> None:
            self._answer(lambda: receiver.asked.append(self.path))

        def _answer(self, keep: Any) -> None:
            receiver.arrived.set()
            if receiver.hangs is not None:
                receiver.hangs.wait(30)
                return
            if receiver.status < 300:
                keep()
            self.send_response(receiver.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    receiver.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield receiver
    finally:
        if receiver.hangs is not None:
            receiver.hangs.set()
        server.shutdown()
        server.server_close()
        thread.join()
