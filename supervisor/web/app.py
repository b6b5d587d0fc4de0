"""The application that opsladder serves: metrics and health. Does I/O through the store. Run by service.daemon.

Endpoints that ask the store are plain functions, which the framework runs in threads: the event loop never waits for a
database. Where the records are is nobody's business who can reach the port: that is for the log.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from supervisor import __version__
from supervisor.errors import SchemaOutdated, StoreError
from supervisor.metrics import exposition
from supervisor.model.document import timestamp
from supervisor.settings import Settings
from supervisor.store import Store, open_store

logger = logging.getLogger(__name__)

_UNREACHABLE = "The records cannot be reached; the log says why."
_OUTDATED = "The records are not of the schema that this version needs; the log says more."

# What an answer says unless it says something else itself.
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What the application tells about. All but the store is asked for anew each time: a reload may change it.

    ``next_fires`` is when each schedule fires next; ``scheduler_problem`` is a sentence when the scheduler does not
    run.
    """

    store: Store
    settings: Callable[[], Settings]
    clock: Callable[[], datetime]
    next_fires: Callable[[], Mapping[str, datetime | None]]
    scheduler_problem: Callable[[], str | None]


def make_app(service: Service) -> FastAPI:
    """The application, ready to be served."""
    app = FastAPI(
        title="opsladder", version=__version__, openapi_url="/api/openapi.json", docs_url=None, redoc_url=None
    )
    app.add_middleware(_SafeHeaders)
    app.add_exception_handler(Exception, _failed)
    of_metrics, of_readiness = _Trouble("metrics"), _Trouble("readyz")

    @app.get("/metrics", response_class=PlainTextResponse)
    def metrics(request: Request) -> Response:
        """Everything in the format of Prometheus, or in OpenMetrics for who asks for that."""
        try:
            all_of_it = exposition(
                service.store, service.settings(), now=service.clock(), next_fires=service.next_fires()
            )
        except StoreError as error:
            return PlainTextResponse(f"{of_metrics.told(error)}\n", status_code=503)
        of_metrics.is_over()
        body, content_type = all_of_it.encoded(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """The process lives, and its event loop turns."""
        return {"status": "ok"}

    @app.get("/readyz")
    def readyz() -> JSONResponse:
        """Whether cycles can start: the store answers and has the right schema, and the scheduler runs."""
        reasons, switch = _store_readiness(service, of_readiness)
        if (problem := service.scheduler_problem()) is not None:
            reasons.append(problem)
        facts = {"status": "not ready" if reasons else "ready", "reasons": reasons, "switch": switch}
        return JSONResponse(facts, status_code=503 if reasons else 200)

    return app


def _store_readiness(service: Service, trouble: "_Trouble") -> tuple[list[str], dict[str, object] | None]:
    """What is wrong with the store, and how the switch in it stands. A switch that is off is no want of readiness."""
    try:
        # Not by the store at hand: whether its schema is still the right one is asked when one is opened.
        with open_store(service.settings().database_url(), create=False) as store:
            state = store.switch()
    except StoreError as error:
        return [trouble.told(error)], None
    trouble.is_over()
    return [], {"paused": state.paused, "since": timestamp(state.at)}


class _Trouble:
    """What keeps the records from one kind of question: logged once however often it is asked, told without a place."""

    def __init__(self, asked: str) -> None:
        self._asked = asked
        self._logged: str | None = None

    def told(self, error: StoreError) -> str:
        """Log what it is, and return what anybody may know of it."""
        if (why := str(error)) != self._logged:
            logger.warning("The records cannot be asked", extra={"for": self._asked, "why": why})
        self._logged = why
        return _OUTDATED if isinstance(error, SchemaOutdated) else _UNREACHABLE

    def is_over(self) -> None:
        self._logged = None


async def _failed(_request: Request, _error: Exception) -> Response:
    """What nobody thought of. The server logs the trace; it goes round every middleware, hence the headers."""
    return JSONResponse({"detail": "Something went wrong; the log says what."}, status_code=500, headers=_HEADERS)


class _SafeHeaders:
    """Puts headers on every answer that leave a browser nothing to misuse. Streams pass through untouched."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_safely)
