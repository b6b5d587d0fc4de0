"""A Messages API on loopback that answers from a scenario and keeps the account. Network I/O on 127.0.0.1 only.

Used by ``opsladder demo``, ``opsladder rehearse`` and the tests: the real CLI asks it as it would ask the real one.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import count
from types import TracebackType
from typing import Self, assert_never

from supervisor.model.session import Tokens
from supervisor.rehearsal.account import Account, Call
from supervisor.rehearsal.http_wire import Malformed, Request, read_request, response_head
from supervisor.rehearsal.play import Cast, Play
from supervisor.rehearsal.question import Question, read_question
from supervisor.rehearsal.scenario import Fault, Scenario, Turn, UsageLimit
from supervisor.rehearsal.sse import (
    Block,
    Message,
    TextBlock,
    ToolUseBlock,
    error_document,
    estimated_tokens,
    message_document,
    message_events,
)

logger = logging.getLogger(__name__)

_REPORT_TOOL = "StructuredOutput"
_SIDE_ANSWER = "Rehearsal"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What goes over the wire: ``status`` 0 closes the connection instead."""

    status: int
    chunks: tuple[bytes, ...] = ()
    content_type: str = "application/json"
    headers: Mapping[str, str] | None = None
    tokens: Tokens = field(default_factory=Tokens)
    delay_seconds: float = 0.0


class ScriptedApi:
    """The model of a rehearsal. ``async with ScriptedApi(scenario) as api:`` serves at ``api.base_url``.

    ``fallback`` gives tiers to sessions nobody announced (see ``Cast``); ``keep_bodies`` keeps the parsed body of each
    request in ``calls``; ``clock`` is asked when a usage limit has to say at what time it ends.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        fallback: Sequence[int] = (),
        keep_bodies: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cast = Cast(scenario, fallback=fallback)
        self._account = Account(with_bodies=keep_bodies)
        self._keep_bodies = keep_bodies
        self._clock = clock
        self._message_numbers = count(1)
        self._tool_numbers = count(1)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, host="127.0.0.1", port=0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is None:
            return
        self._server.close()
        while self._connections:
            for connection in self._connections:
                connection.cancel()
            await asyncio.wait(self._connections)
        await self._server.wait_closed()

    @property
    def base_url(self) -> str:
        if self._server is None:
            raise RuntimeError("The scripted API has no address before it is entered.")
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def calls(self) -> tuple[Call, ...]:
        """The newest requests, oldest first."""
        return self._account.calls

    def account(self, session_id: str | None) -> Mapping[str, Tokens]:
        """The tokens a session was told it used, by model, side calls included."""
        return self._account.spent(session_id)

    def expect(self, session_id: str, tier: int) -> None:
        """Announce a session before its prompt is sent: it plays the next attempt of this tier."""
        self._cast.announce(session_id, tier)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._disconnected)

    def _disconnected(self, task: asyncio.Task[None]) -> None:
        self._connections.discard(task)
        if not task.cancelled() and (problem := task.exception()):
            logger.error("A connection to the scripted API failed", exc_info=problem)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await read_request(reader)) is not None:
                if not await self._respond(request, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            logger.debug("A client of the scripted API left in the middle")
        except asyncio.CancelledError:
            # Closing would wait for a client that may have stopped reading.
            writer.transport.abort()
            raise
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _respond(
        self, request: Request | Malformed, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; whether the connection can carry another."""
        question: Question | None = None
        keep_alive = isinstance(request, Request) and request.keep_alive
        if isinstance(request, Malformed):
            answer = _refusal(request.status, request.why)
        elif (request.method, request.path) != ("POST", "/v1/messages"):
            answer = _refusal(HTTPStatus.NOT_FOUND, "The scripted API only knows POST /v1/messages.")
        elif (question := read_question(request.body)) is None:
            answer = _refusal(HTTPStatus.BAD_REQUEST, "The body is not a request for a message.")
        else:
            answer = await self._answer(question, reader)
        if answer.status == 0:
            return False
        await _send(answer, writer, keep_alive=keep_alive, with_body=not _is_head(request))
        return keep_alive

    async def _answer(self, question: Question, reader: asyncio.StreamReader) -> _Answer:
        side = not question.tools
        play = self._cast.of(question.session_id) if side else self._cast.of_or_fallback(question.session_id)
        if side:
            answer = self._speak(question, (TextBlock(text=_SIDE_ANSWER),), None)
        elif play is None:
            answer = _refusal(HTTPStatus.BAD_REQUEST, f"Nobody announced the session {question.session_id}.")
        else:
            answer = self._scripted(question, play)
        if answer.delay_seconds:
            await asyncio.sleep(answer.delay_seconds)
            if reader.at_eof():
                answer = _Answer(status=0)
        self._account.add(
            Call(
                session_id=question.session_id,
                tier=play.tier if play else None,
                attempt=play.attempt if play else None,
                model=question.model,
                request_bytes=question.request_bytes,
                fixed_bytes=question.fixed_bytes,
                status=answer.status,
                side=side,
                tokens=answer.tokens,
                body=question.body if self._keep_bodies else None,
            )
        )
        return answer

    def _scripted(self, question: Question, play: Play) -> _Answer:
        match play.next_answer():
            case None:
                text = f"The scenario has no further turn for tier {play.tier}."
                return self._speak(question, (TextBlock(text=text),), None)
            case Fault() as fault:
                return _fault_answer(fault)
            case Turn(usage_limit=UsageLimit() as limit) as turn:
                return replace(self._limit_answer(limit), delay_seconds=turn.delay_seconds)
            case Turn() as turn:
                spoken = self._speak(question, self._blocks(turn, question.tools), turn.usage)
                return replace(spoken, delay_seconds=turn.delay_seconds)
            case other:
                assert_never(other)

    def _blocks(self, turn: Turn, offered: frozenset[str]) -> tuple[Block, ...]:
        text = turn.text or ""
        calls = [(call.name, call.input) for call in turn.tools]
        if turn.report is not None and _REPORT_TOOL in offered:
            calls = [(_REPORT_TOOL, turn.report)]
        elif turn.report is not None:
            fenced = f"```json\n{json.dumps(turn.report, indent=2, ensure_ascii=False)}\n```"
            text = f"{text}\n\n{fenced}" if text else fenced
        spoken = [TextBlock(text=text)] if text else []
        return (*spoken, *(self._tool_use(name, given) for name, given in calls))

    def _tool_use(self, name: str, given: Mapping[str, object]) -> ToolUseBlock:
        return ToolUseBlock(id=f"toolu_rehearsal_{next(self._tool_numbers):06d}", name=name, input=given)

    def _speak(self, question: Question, blocks: tuple[Block, ...], usage: Tokens | None) -> _Answer:
        tokens = usage
        if tokens is None:
            tokens = estimated_tokens(request_bytes=question.request_bytes, blocks=blocks)
        number = next(self._message_numbers)
        message = Message(id=f"msg_rehearsal_{number:06d}", model=question.model, blocks=blocks, tokens=tokens)
        if question.stream:
            chunks, content_type = tuple(message_events(message)), "text/event-stream; charset=utf-8"
        else:
            chunks, content_type = (message_document(message),), "application/json"
        return _Answer(status=HTTPStatus.OK, chunks=chunks, content_type=content_type, tokens=tokens)

    def _limit_answer(self, limit: UsageLimit) -> _Answer:
        resets_at = str(int(self._clock()) + limit.resets_in_seconds)
        refusal = _refusal(
            HTTPStatus.TOO_MANY_REQUESTS, "The usage limit of this account is reached.", "rate_limit_error"
        )
        window = "anthropic-ratelimit-unified"
        headers = {
            "retry-after": str(limit.resets_in_seconds),
            f"{window}-status": "rejected",
            f"{window}-reset": resets_at,
            f"{window}-representative-claim": "five_hour",
            f"{window}-5h-status": "rejected",
            f"{window}-5h-reset": resets_at,
            f"{window}-5h-utilization": "1.0",
        }
        return replace(refusal, headers=headers)


def _is_head(request: Request | Malformed) -> bool:
    return isinstance(request, Request) and request.method == "HEAD"


def _refusal(status: HTTPStatus, why: str, kind: str = "invalid_request_error") -> _Answer:
    kind = "not_found_error" if status is HTTPStatus.NOT_FOUND else kind
    return _Answer(status=status, chunks=(error_document(kind, why),))


def _fault_answer(fault: Fault) -> _Answer:
    headers = {} if fault.retry_after is None else {"retry-after": f"{fault.retry_after:g}"}
    return _Answer(status=fault.status, chunks=(error_document(fault.type, fault.message),), headers=headers)


async def _send(answer: _Answer, writer: asyncio.StreamWriter, *, keep_alive: bool, with_body: bool) -> None:
    length = sum(map(len, answer.chunks))
    head = response_head(
        answer.status,
        length=length,
        content_type=answer.content_type,
        extra=answer.headers or {},
        keep_alive=keep_alive,
    )
    writer.write(head)
    for chunk in answer.chunks if with_body else ():
        writer.write(chunk)
        await writer.drain()
