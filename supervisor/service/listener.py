"""Serve the application over HTTP inside the service's own event loop. Does I/O. Used by service.daemon."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator

import uvicorn
from fastapi import FastAPI

from supervisor.errors import OpsladderError

logger = logging.getLogger(__name__)

_START_SECONDS = 10.0
_LEAVE_SECONDS = 5
_POLL_SECONDS = 0.02


class _Server(uvicorn.Server):
    """A server that leaves the signals to the service."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def listening(app: FastAPI, host: str, port: int) -> AsyncIterator[None]:
    """Answer requests while the block runs."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=_LEAVE_SECONDS,
        server_header=False,
    )
    server = _Server(config)
    # A port that is taken ends uvicorn with SystemExit, which must not end the whole service without a word.
    serving = asyncio.create_task(_serve(server), name="web")
    try:
        async with asyncio.timeout(_START_SECONDS):
            while not server.started and not serving.done():  # noqa: ASYNC110
                await asyncio.sleep(_POLL_SECONDS)
        if serving.done():
            raise OpsladderError(
                f"Nothing can be served at {host}:{port}.",
                remedy="Set web.host and web.port to an address that is free.",
            )
        logger.info("Listening", extra={"host": host, "port": port})
        yield
    finally:
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)


async def _serve(server: _Server) -> None:
    try:
        await server.serve()
    except SystemExit as error:
        logger.error("The web server did not start", extra={"code": error.code})
