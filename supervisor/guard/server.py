"""Answer the hooks of one run over its socket. Does I/O. Started by climb for each run, in the supervisor's process.

Nothing here decides: ``answer`` does. What the server adds is that every question gets one answer in time, and that the
answer is a refusal when there is no decision.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Self, assert_never

from supervisor.guard.bounds import READ_SECONDS, Bounds
from supervisor.guard.post import Post
from supervisor.guard.wire import (
    HEADER_LIMIT,
    Stranger,
    Unreadable,
    announced_length,
    decision_answer,
    end_answer,
    read_hook,
)
from supervisor.model.permission import CallEnd, Decision, ToolCall, Verdict

logger = logging.getLogger(__name__)

Answer = Callable[[ToolCall], Awaitable[Decision]]
Ended = Callable[[CallEnd], Awaitable[None]]

# A CLI has some ten calls open at once; this bounds what somebody else could make of the socket.
_MOST_CONNECTIONS = 256
_TURNS = 5


class GuardServer:
    """``async with GuardServer(post, answer=…, ended=…, bounds=…):`` serves until the block is left.

    A call whose client has gone is not waited for: its ``answer`` is cancelled. So are all when the block is left.
    """

    def __init__(self, post: Post, *, answer: Answer, ended: Ended, bounds: Bounds) -> None:
        self._post = post
        self._answer = answer
        self._ended = ended
        self._bounds = bounds
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        # The directory is closed to others, so the socket is never open to them, not even before its mode is set.
        self._server = await asyncio.start_unix_server(
            self._connected, path=self._post.socket, limit=HEADER_LIMIT, backlog=_MOST_CONNECTIONS
        )
        self._post.socket.chmod(0o600)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        # A connection that asyncio has accepted but not yet announced would leak if the server were closed first.
        for listening in server.sockets:
            asyncio.get_running_loop().remove_reader(listening.fileno())
        await _settle()
        while self._connections:
            for connection in self._connections:
                connection.cancel()
            await asyncio.wait(self._connections)
        await _settle()
        server.close()
        await server.wait_closed()
        with contextlib.suppress(FileNotFoundError):
            self._post.socket.unlink()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None:
            # Accepted before the block was left, announced only now.
            writer.transport.abort()
            return
        if len(self._connections) >= _MOST_CONNECTIONS:
            logger.warning(
                "The guard refuses a connection: too many are open", extra={"socket": str(self._post.socket)}
            )
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(partial(self._disconnected, writer.transport))

    def _disconnected(self, transport: asyncio.WriteTransport, task: asyncio.Task[None]) -> None:
        # Here, because a task that is cancelled before its first step runs no code of its own.
        transport.abort()
        self._connections.discard(task)
        if not task.cancelled() and (problem := task.exception()):
            logger.error("The guard failed to answer", exc_info=problem)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                length = announced_length(await reader.readuntil(b"\n"), self._post.secret)
                body = await reader.readexactly(length)
            said = await self._reply(body, reader)
            async with asyncio.timeout(READ_SECONDS):
                writer.write(said)
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except Stranger:
            logger.warning("Somebody without the secret asked the guard", extra={"socket": str(self._post.socket)})
        except Unreadable as problem:
            logger.warning("The guard could not read a question", extra={"why": str(problem)})
        except (ConnectionError, asyncio.IncompleteReadError) as problem:
            # A CLI that leaves takes the hooks with it that still run after a call: nothing is amiss.
            logger.info("Who asked the guard has gone", extra={"why": repr(problem)})
        except (OSError, TimeoutError, asyncio.LimitOverrunError) as problem:
            # The client turns silence into a refusal, whatever the reason.
            logger.warning("A question to the guard broke off", extra={"why": repr(problem)})

    async def _reply(self, body: bytes, reader: asyncio.StreamReader) -> bytes:
        try:
            said = read_hook(body)
        except Unreadable as problem:
            logger.warning("The guard could not read a call", extra={"why": str(problem)})
            return decision_answer(
                _refusal("guard.unreadable", f"This call is refused, because the guard cannot read it: {problem}.")
            )
        match said:
            case ToolCall():
                return decision_answer(await self._decide(said, reader))
            case CallEnd():
                await self._note_end(said)
                return end_answer(failed=said.failed)
            case other:
                assert_never(other)

    async def _decide(self, call: ToolCall, reader: asyncio.StreamReader) -> Decision:
        deciding = asyncio.ensure_future(self._answer(call))
        # The client says nothing more, so whatever ends the reading is its end.
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait(
                {deciding, gone}, timeout=self._bounds.answer_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if not deciding.done():
                return self._undecided(call, client_left=gone.done())
            return deciding.result()
        except Exception:
            logger.exception("The guard could not decide", extra=_fields(call))
            return _refusal("guard.failed", "This call is refused, because deciding on it failed.")
        finally:
            for task in (deciding, gone):
                task.cancel()
            await asyncio.gather(deciding, gone, return_exceptions=True)

    def _undecided(self, call: ToolCall, *, client_left: bool) -> Decision:
        if client_left:
            logger.warning("A call was given up before the guard had decided", extra=_fields(call))
            return _refusal("guard.given_up", "This call was given up before it was decided on.")
        seconds = self._bounds.answer_seconds
        logger.warning("The guard did not decide in time", extra={**_fields(call), "seconds": seconds})
        return _refusal(
            "guard.timeout", f"This call is refused, because nobody decided on it within {seconds:g} seconds."
        )

    async def _note_end(self, end: CallEnd) -> None:
        try:
            async with asyncio.timeout(self._bounds.answer_seconds):
                await self._ended(end)
        except Exception:
            logger.exception("The end of a call was not recorded", extra={"tool_use_id": end.tool_use_id})


async def _settle() -> None:
    """Let asyncio finish what it has begun: it announces and closes connections some turns of its loop later."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


def _refusal(rule: str, sentence: str) -> Decision:
    return Decision(verdict=Verdict.DENY, rule=rule, sentence=sentence)


def _fields(call: ToolCall) -> dict[str, object]:
    return {"tool": call.tool, "tool_use_id": call.tool_use_id}
