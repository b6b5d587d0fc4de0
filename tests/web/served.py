"""The application behind a real HTTP server on loopback, and a way to ask it. Does I/O."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from supervisor.settings import Settings, load_settings
from supervisor.store import Store
from supervisor.web.app import Service

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
_DEADLINE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def document(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running server."""

    port: int

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def get(self, path: str, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_DEADLINE_SECONDS)
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            given = {name.lower(): value for name, value in response.getheaders()}
            return Answer(status=response.status, headers=given, text=response.read().decode())
        finally:
            connection.close()


@contextmanager
def served(app: FastAPI) -> Iterator[Served]:
    """The application served in a thread; listening from the beginning, so nobody has to wait for it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Served(port=listening.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(_DEADLINE_SECONDS)


def settings_in(directory: Path, toml: str = "", **environ: str) -> Settings:
    """Settings whose records are in a directory of the test's own."""
    file = directory / "opsladder.toml"
    file.write_text(toml, encoding="utf-8")
    own = {"HOME": str(directory), "OPSLADDER_STATE__DIR": str(directory / "state"), **environ}
    return load_settings(file, own, cwd=directory)


def service(store: Store, settings: Settings, /, **fields: Any) -> Service:
    given = {
        "settings": lambda: settings,
        "clock": lambda: NOW,
        "next_fires": dict,
        "scheduler_problem": lambda: None,
    } | fields
    return Service(store=store, **given)
