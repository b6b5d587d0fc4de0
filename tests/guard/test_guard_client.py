"""The program a hook starts, as a process of its own against a socket that behaves in every way."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from supervisor.guard.bounds import Bounds
from supervisor.guard.hooks import CLIENT
from supervisor.guard.post import SHORT_PLACE, Post
from supervisor.guard.server import GuardServer
from supervisor.model.permission import CallEnd, Decision, ToolCall, Verdict

CALL = {
    "session_id": "s",
    "cwd": "/srv",
    "hook_event_name": "PreToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "uptime"},
    "tool_use_id": "toolu_1",
}
Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
ANSWER = b'{"hookSpecificOutput":{"permissionDecision":"allow"}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    code: int | None
    out: str
    err: str


def refusal(said: Said) -> str:
    """The sentence of a refusal that holds on every CLI: by its code, and by its words."""
    assert said.code == 2
    decision = json.loads(said.out)["hookSpecificOutput"]
    assert (decision["hookEventName"], decision["permissionDecision"]) == ("PreToolUse", "deny")
    return str(decision["permissionDecisionReason"])


async def ask(post: Post, question: bytes, *, seconds: str = "20") -> Said:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", str(CLIENT), str(post.socket), str(post.secret_file), seconds),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(question), 60)
    return Said(code=process.returncode, out=out.decode(), err=err.decode())


def against(tmp_path: Path, peer: Peer, *, question: bytes = b"{}", seconds: str = "20") -> Said:
    async def play() -> Said:
        with Post.open([tmp_path / "guard", SHORT_PLACE]) as post:
            async with await asyncio.start_unix_server(peer, post.socket):
                return await ask(post, question, seconds=seconds)

    return asyncio.run(play())


def answering(given: bytes) -> Peer:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        header = await reader.readline()
        await reader.readexactly(int(header.split()[-1]))
        writer.write(given)
        writer.close()
        await writer.wait_closed()

    return peer


def test_it_passes_the_question_on_and_prints_the_answer(tmp_path: Path) -> None:
    asked: list[ToolCall] = []

    async def answer(call: ToolCall) -> Decision:
        asked.append(call)
        return Decision(verdict=Verdict.DENY, rule="r", sentence="Nö: “no”\n\x00\ud800")

    async def ended(end: CallEnd) -> None:
        raise AssertionError

    async def play() -> Said:
        with Post.open([tmp_path / "guard", SHORT_PLACE]) as post:
            async with GuardServer(post, answer=answer, ended=ended, bounds=Bounds()):
                return await ask(post, json.dumps({**CALL, "tool_input": {"content": "x" * 5_000_000}}).encode())

    said = asyncio.run(play())

    assert (said.code, said.err) == (0, "")
    assert json.loads(said.out)["hookSpecificOutput"] == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "Nö: “no”\n\x00\ud800",
    }
    assert [len(str(call.input["content"])) for call in asked] == [5_000_000]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (b"", "broke off"),
        (b"%d\n" % (len(ANSWER) + 1) + ANSWER, "not whole"),
        (b"%d\n" % (len(ANSWER) - 1) + ANSWER, "not whole"),
        (ANSWER, "not whole"),
        (b"2\n{}", "not a decision"),
        (b"x" * 3_000_000, "no end"),
    ],
    ids=["nothing", "cut short", "too much", "no frame", "something else", "without end"],
)
def test_an_answer_that_is_none_is_a_refusal(tmp_path: Path, given: bytes, why: str) -> None:
    said = against(tmp_path, answering(given))

    assert why in refusal(said)


def test_no_answer_in_time_is_a_refusal(tmp_path: Path) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    said = against(tmp_path, silent, seconds="0.3")

    assert "did not answer in time" in refusal(said)


def test_a_question_without_end_is_a_refusal(tmp_path: Path) -> None:
    said = against(tmp_path, answering(b""), question=b"x" * (17 * 1024 * 1024))

    assert "more to read" in refusal(said)


@pytest.mark.parametrize("seconds", ["", "soon", "-1", "nan"])
def test_a_command_line_that_makes_no_sense_is_a_refusal(tmp_path: Path, seconds: str) -> None:
    said = against(tmp_path, answering(b""), seconds=seconds)

    assert "refused" in refusal(said)


def test_it_imports_nothing_that_the_interpreter_has_not_loaded_but_sockets() -> None:
    def loaded(*program: str) -> set[str]:
        line = [sys.executable, "-I", "-S", "-X", "importtime", *program]
        run = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        return {
            entry.rpartition("|")[2].strip() for entry in run.stderr.splitlines() if entry.startswith("import time:")
        }

    assert loaded(str(CLIENT)) - loaded("-c", "pass") <= {"_socket"}
