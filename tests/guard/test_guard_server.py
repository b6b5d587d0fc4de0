"""The server of a run: whom it answers, what it makes of nonsense, and that it leaves nothing behind."""

import asyncio
import json
import logging
import os
import socket as sockets
import stat
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from guarded import always, say

from supervisor.climb.ladder import STORE_PATIENCE_SECONDS
from supervisor.guard.bounds import Bounds
from supervisor.guard.post import SHORT_PLACE, Post, sweep_posts
from supervisor.guard.server import GuardServer
from supervisor.model.permission import CallEnd, Decision, ToolCall, Verdict

CALL: dict[str, Any] = {
    "hook_event_name": "PreToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "uptime"},
    "tool_use_id": "toolu_1",
}
Ask = Callable[[bytes], Awaitable[bytes]]


async def exchange(post: Post, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(post.socket)
    try:
        writer.write(sent)
        return await asyncio.wait_for(reader.read(), 60)
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()


async def put(post: Post, question: object) -> dict[str, Any]:
    body = question if isinstance(question, bytes) else json.dumps(question).encode()
    received = await exchange(post, b"%s %d\n" % (post.secret.encode(), len(body)) + body)
    size, _, answer = received.partition(b"\n")
    assert int(size) == len(answer)
    output = json.loads(answer)["hookSpecificOutput"]
    assert isinstance(output, dict)
    return output


async def nothing(end: CallEnd) -> None:
    return None


def serving(tmp_path: Path, play: Callable[[Post], Awaitable[Any]], **options: Any) -> Any:
    async def run() -> Any:
        with Post.open([tmp_path / "guard", SHORT_PLACE]) as post:
            values = {"answer": always(say(Verdict.ALLOW)), "ended": nothing, "bounds": Bounds(), **options}
            async with GuardServer(post, **values):
                return await play(post)

    return asyncio.run(run())


def test_only_its_owner_can_reach_it_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    async def look(post: Post) -> tuple[Post, list[int]]:
        places = (post.directory, post.socket, post.secret_file)
        return post, [stat.S_IMODE(place.stat().st_mode) for place in places]

    post, modes = serving(tmp_path, look)

    assert modes == [0o700, 0o600, 0o600]
    assert not post.directory.exists()
    assert list((tmp_path / "guard").iterdir()) == []


def test_each_run_has_a_secret_of_its_own(tmp_path: Path) -> None:
    with Post.open([tmp_path, SHORT_PLACE]) as one, Post.open([tmp_path, SHORT_PLACE]) as other:
        assert one.secret != other.secret
        assert one.socket != other.socket


@pytest.mark.parametrize(
    "header",
    [b"wrong 2\n{}", b" 2\n{}", b"\n", b"x" * 100_000, "é 2\n{}".encode()],
    ids=["wrong", "empty", "no header", "endless", "not ascii"],
)
def test_who_does_not_know_the_secret_gets_no_answer(tmp_path: Path, header: bytes) -> None:
    asked: list[ToolCall] = []

    async def answer(call: ToolCall) -> Decision:
        asked.append(call)
        return say(Verdict.ALLOW)

    assert serving(tmp_path, lambda post: exchange(post, header), answer=answer) == b""
    assert asked == []


@pytest.mark.parametrize("length", [b"", b"-1", b"1e3", b"999999999999", b"\xb2"])
def test_a_length_that_is_none_gets_no_answer(tmp_path: Path, length: bytes) -> None:
    async def play(post: Post) -> bytes:
        return await exchange(post, post.secret.encode() + b" " + length + b"\n{}")

    assert serving(tmp_path, play) == b""


@pytest.mark.parametrize(
    "question",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        [CALL],
        {**CALL, "hook_event_name": "Stop"},
        {**CALL, "tool_use_id": None},
        {**CALL, "tool_name": ""},
        {**CALL, "tool_input": "uptime"},
        {key: value for key, value in CALL.items() if key != "tool_input"},
    ],
    ids=["empty", "binary", "deep", "a list", "another event", "no id", "no tool", "text input", "no input"],
)
def test_a_call_that_cannot_be_read_is_refused(tmp_path: Path, question: object) -> None:
    output = serving(tmp_path, lambda post: put(post, question))

    assert output["permissionDecision"] == "deny"
    assert "cannot read it" in output["permissionDecisionReason"]


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_decision_is_told_in_the_words_of_the_cli(tmp_path: Path, verdict: Verdict) -> None:
    output = serving(tmp_path, lambda post: put(post, CALL), answer=always(say(verdict, "So it is.")))

    assert output == {
        "hookEventName": "PreToolUse",
        "permissionDecision": verdict.value,
        "permissionDecisionReason": "So it is.",
    }


def test_a_decision_that_fails_is_a_refusal(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def answer(call: ToolCall) -> Decision:
        raise RuntimeError("the database is gone: secret-dsn")

    output = serving(tmp_path, lambda post: put(post, CALL), answer=answer)

    assert output["permissionDecision"] == "deny"
    assert "secret-dsn" not in output["permissionDecisionReason"]
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None


def test_a_decision_that_takes_too_long_is_a_refusal_and_is_cancelled(tmp_path: Path) -> None:
    cancelled = asyncio.Event()

    async def answer(call: ToolCall) -> Decision:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    output = serving(tmp_path, lambda post: put(post, CALL), answer=answer, bounds=Bounds(answer_seconds=0.2))

    assert output["permissionDecision"] == "deny"
    assert cancelled.is_set()


def test_a_decision_that_nobody_waits_for_any_more_is_cancelled(tmp_path: Path) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def answer(call: ToolCall) -> Decision:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    async def play(post: Post) -> None:
        asking = asyncio.create_task(put(post, CALL))
        await asyncio.wait_for(begun.wait(), 60)
        asking.cancel()
        await asyncio.wait_for(cancelled.wait(), 60)

    serving(tmp_path, play, answer=answer)

    assert cancelled.is_set()


def test_leaving_ends_every_question_at_once(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def answer(call: ToolCall) -> Decision:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def run() -> bytes:
        with Post.open([tmp_path / "guard", SHORT_PLACE]) as post:
            body = json.dumps(CALL).encode()
            async with GuardServer(post, answer=answer, ended=nothing, bounds=Bounds(answer_seconds=3600)):
                sent = b"%s %d\n" % (post.secret.encode(), len(body)) + body
                asking = asyncio.create_task(exchange(post, sent))
                await asyncio.wait_for(begun.wait(), 60)
            return await asyncio.wait_for(asking, 60)

    assert asyncio.run(run()) == b""


def test_many_calls_at_once_are_all_answered(tmp_path: Path) -> None:
    open_at_once = 100
    waiting: list[str] = []
    everyone = asyncio.Event()

    async def answer(call: ToolCall) -> Decision:
        waiting.append(call.tool_use_id)
        if len(waiting) == open_at_once:
            everyone.set()
        await everyone.wait()
        return say(Verdict.ALLOW, call.tool_use_id)

    async def play(post: Post) -> list[str]:
        questions = [put(post, {**CALL, "tool_use_id": f"toolu_{n}"}) for n in range(open_at_once)]
        return [output["permissionDecisionReason"] for output in await asyncio.gather(*questions)]

    assert serving(tmp_path, play, answer=answer) == [f"toolu_{n}" for n in range(open_at_once)]


@pytest.mark.parametrize(("event", "failed"), [("PostToolUse", False), ("PostToolUseFailure", True)])
def test_how_a_call_ended_is_handed_on(tmp_path: Path, event: str, failed: bool) -> None:
    ends: list[CallEnd] = []

    async def ended(end: CallEnd) -> None:
        ends.append(end)

    output = serving(tmp_path, lambda post: put(post, {**CALL, "hook_event_name": event}), ended=ended)

    assert output == {"hookEventName": event}
    assert ends == [CallEnd(tool_use_id="toolu_1", failed=failed)]


def test_a_long_state_directory_moves_the_socket_to_a_short_place(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    runtime_dir = tmp_path / "run"
    runtime_dir.mkdir()

    with Post.open([deep, runtime_dir, SHORT_PLACE]) as preferred, Post.open([deep, SHORT_PLACE]) as last:
        assert preferred.directory.parent == runtime_dir
        assert last.directory.parent == SHORT_PLACE
        for post in (preferred, last):
            assert len(os.fsencode(post.socket)) < 108
            assert stat.S_IMODE(post.directory.stat().st_mode) == 0o700
    assert not last.directory.exists()


def test_no_place_for_a_socket_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Too long for the path of a socket"):
        Post.open([tmp_path / ("d" * 120)])


def test_what_a_killed_supervisor_left_is_swept_and_what_serves_is_not(tmp_path: Path) -> None:
    place = tmp_path / "guard"
    left, fresh = Post.open([place]), Post.open([place])
    with sockets.socket(sockets.AF_UNIX) as bound:
        bound.bind(str(left.socket))
    for old in (left.directory, left.socket):
        os.utime(old, (0, 0))

    async def play(post: Post) -> list[Path]:
        os.utime(post.directory, (0, 0))
        return await asyncio.to_thread(sweep_posts, [place])

    removed = serving(tmp_path, play)

    assert removed == [left.directory]
    assert fresh.directory.exists()


def test_a_post_whose_run_still_waits_for_the_store_is_not_swept(tmp_path: Path) -> None:
    waiting = Post.open([tmp_path])
    long_ago = time.time() - 4 * STORE_PATIENCE_SECONDS
    os.utime(waiting.directory, (long_ago, long_ago))

    assert sweep_posts([tmp_path]) == []
    assert waiting.secret_file.exists()


@pytest.mark.parametrize(("bound", "stays"), [(True, 60), (False, 3600)], ids=["served once", "never served"])
def test_how_long_what_was_left_stays(tmp_path: Path, bound: bool, stays: float) -> None:
    left = Post.open([tmp_path])
    if bound:
        with sockets.socket(sockets.AF_UNIX) as socket:
            socket.bind(str(left.socket))
    made = left.directory.stat().st_mtime

    assert sweep_posts([tmp_path], now=made + stays - 1) == []
    assert sweep_posts([tmp_path], now=made + stays + 1) == [left.directory]
