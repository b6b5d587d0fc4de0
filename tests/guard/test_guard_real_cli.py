"""The guard on the real CLI, both versions: what is allowed runs, and nothing else does, whatever breaks."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from guarded import Ran, Scene, always, bash, say

from supervisor.guard.bounds import Bounds
from supervisor.guard.post import Post
from supervisor.model.permission import CallEnd, Decision, ToolCall, Verdict
from supervisor.rehearsal.scenario import ToolCall as Asked
from supervisor.rehearsal.scenario import Turn

DONE = Turn(text="That is all.")
TOUCH = (bash("touch made"), DONE)
ALLOW = always(say(Verdict.ALLOW))


@pytest.fixture
def scene(cli: Path, tmp_path: Path) -> Scene:
    return Scene(cli=cli, tmp_path=tmp_path)


def test_an_allowed_call_runs_without_any_other_permission_and_its_end_is_told(scene: Scene) -> None:
    turns = (bash("touch made"), bash("exit 3"), DONE)

    async def one_after_the_other(call: ToolCall) -> Decision:
        if len(scene.asked) == 2:
            await asyncio.wait_for(scene.one_ended.wait(), 60)
        return say(Verdict.ALLOW)

    ran = asyncio.run(scene.guarded(*turns, answer=one_after_the_other, allowed=False))

    assert scene.made()
    assert ran.result["result"] == "That is all."
    first, second = scene.asked
    assert (first.tool, first.input, first.session_id) == ("Bash", {"command": "touch made"}, ran.session_id)
    assert first.cwd == str(scene.work)
    ends = [CallEnd(tool_use_id=first.tool_use_id, failed=False), CallEnd(tool_use_id=second.tool_use_id, failed=True)]
    # Told while the model is asked again, in no certain order: of the last call before the end perhaps too late.
    assert scene.ended in (ends, ends[:1])


def test_a_denied_call_does_not_run_and_the_model_reads_why(scene: Scene) -> None:
    sentence = 'Tier 1 only looks: “touch” writes, and that\'s "not" allowed before 10:40 — ask tier 2.'

    ran = asyncio.run(scene.guarded(*TOUCH, answer=always(say(Verdict.DENY, sentence))))

    assert not scene.made()
    assert sentence in _texts(ran.requests[-1])
    assert len(scene.asked) == 1
    assert scene.ended == []


def test_parallel_calls_are_each_decided(scene: Scene) -> None:
    async def only_the_second(call: ToolCall) -> Decision:
        return say(Verdict.ALLOW if "second" in str(call.input) else Verdict.DENY)

    names = ("first", "second", "third")
    both = Turn(text="I act.", tools=tuple(Asked(name="Bash", input={"command": f"touch {n}"}) for n in names))
    asyncio.run(scene.guarded(both, DONE, answer=only_the_second))

    assert [scene.made(name) for name in names] == [False, True, False]


def test_the_calls_of_a_sub_agent_are_decided_too(scene: Scene) -> None:
    agent = Asked(name="Agent", input={"description": "d", "prompt": "p", "subagent_type": "general-purpose"})

    async def no_shell(call: ToolCall) -> Decision:
        return say(Verdict.DENY if call.tool == "Bash" else Verdict.ALLOW)

    turns = (Turn(text="I ask somebody.", tools=(agent,)), *[bash("touch made")] * 4, DONE)
    ran = asyncio.run(scene.guarded(*turns, answer=no_shell, tools=("Bash", "Agent")))

    of_the_agent = {
        block["id"]
        for event in ran.events
        if event["type"] == "assistant" and event.get("parent_tool_use_id")
        for block in event["message"]["content"]
        if block["type"] == "tool_use"
    }
    assert of_the_agent
    assert of_the_agent <= {call.tool_use_id for call in scene.asked}
    assert not scene.made()


def test_the_final_report_is_a_call_that_has_to_be_allowed(scene: Scene) -> None:
    report = {"summary": "fine"}
    schema = json.dumps({"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]})

    ran = asyncio.run(scene.guarded(Turn(report=report), DONE, answer=ALLOW, schema=schema))

    assert [(call.tool, call.input) for call in scene.asked] == [("StructuredOutput", report)]
    assert ran.result["structured_output"] == report


def _unlink_socket(post: Post) -> None:
    post.socket.unlink()


def _wrong_secret(post: Post) -> None:
    post.secret_file.write_text("somebody else's")


def _no_directory(post: Post) -> None:
    post.close()


@pytest.mark.parametrize("sabotage", [_unlink_socket, _wrong_secret, _no_directory])
def test_nothing_runs_when_the_guard_cannot_be_asked(scene: Scene, sabotage: Callable[[Post], None]) -> None:
    async def play() -> Ran:
        async with scene.guard(ALLOW) as post:
            sabotage(post)
            return await scene.run(*TOUCH, settings=scene.settings(post))

    ran = asyncio.run(play())

    assert not scene.made()
    assert scene.asked == []
    assert "the guard could not be asked" in ran.told_the_model


def test_nothing_more_runs_once_the_socket_is_removed_in_mid_run(scene: Scene) -> None:
    async def play() -> Ran:
        with scene.post() as post:

            async def the_last(call: ToolCall) -> Decision:
                post.socket.unlink()
                return say(Verdict.ALLOW)

            async with scene.server(post, the_last):
                return await scene.run(bash("touch first"), *TOUCH, settings=scene.settings(post))

    ran = asyncio.run(play())

    assert (scene.made("first"), scene.made()) == (True, False)
    assert "the guard could not be asked" in ran.told_the_model


def test_nothing_more_runs_once_the_server_has_stopped_in_mid_run(scene: Scene) -> None:
    later = Turn(tools=(Asked(name="Bash", input={"command": "touch made"}),), delay_seconds=2)

    async def play() -> Ran:
        with scene.post() as post:
            async with scene.server(post, ALLOW):
                running = asyncio.create_task(
                    scene.run(bash("touch first"), later, DONE, settings=scene.settings(post))
                )
                async with asyncio.timeout(60):
                    while not scene.made("first"):  # noqa: ASYNC110 - a file sets no event
                        await asyncio.sleep(0.01)
            return await running

    ran = asyncio.run(play())

    assert (scene.made("first"), scene.made()) == (True, False)
    assert "the guard could not be asked" in ran.told_the_model


@pytest.mark.parametrize(
    "client",
    ["import time\ntime.sleep(600)", "raise SystemExit(1)", "", "import os\nos.kill(os.getpid(), 11)", "print('{}')"],
    ids=["hangs", "fails", "empty", "crashes", "babbles"],
)
def test_nothing_runs_when_the_client_is_another_program(scene: Scene, client: str, tmp_path: Path) -> None:
    scene.bounds = _Hasty()
    program = tmp_path / "client.py"
    program.write_text(client)

    async def play() -> Ran:
        async with scene.guard(ALLOW) as post:
            return await scene.run(*TOUCH, settings=scene.settings(post, client=program))

    ran = asyncio.run(play())

    assert not scene.made()
    assert "the guard gave no answer" in ran.told_the_model


def test_nothing_runs_without_an_interpreter(scene: Scene) -> None:
    async def play() -> Ran:
        async with scene.guard(ALLOW) as post:
            return await scene.run(*TOUCH, settings=scene.settings(post, python="/no/such/python3"))

    ran = asyncio.run(play())

    assert not scene.made()
    assert "the guard gave no answer" in ran.told_the_model


def test_even_a_hook_that_fails_open_runs_nothing_when_no_tool_is_allowed_beforehand(scene: Scene) -> None:
    hook = {"type": "command", "command": "exit 1"}
    settings = json.dumps({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [hook]}]}})

    asyncio.run(scene.run(*TOUCH, settings=settings, allowed=False))

    assert not scene.made()


ALLOWING = """echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'"""


@pytest.mark.parametrize(
    "project",
    [
        {"disableAllHooks": True},
        {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": ALLOWING}]}]}},
        {"permissions": {"allow": ["Bash"], "defaultMode": "bypassPermissions"}},
    ],
    ids=["hooks off", "a permissive hook", "bypass"],
)
def test_the_settings_of_a_project_or_a_user_do_not_get_past_the_guard(scene: Scene, project: Any) -> None:
    for place in (scene.work, scene.home):
        (place / ".claude").mkdir()
        for name in ("settings.json", "settings.local.json"):
            (place / ".claude" / name).write_text(json.dumps(project))

    asyncio.run(scene.guarded(*TOUCH, answer=always(say(Verdict.DENY))))

    assert not scene.made()
    assert len(scene.asked) == 1


class _Hasty(Bounds):
    """Bounds whose watchdog does not let a test wait."""

    __slots__ = ()

    @property
    def watchdog_seconds(self) -> int:
        return 2


def _texts(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(_texts(inner) for inner in value.values())
    return "\n".join(_texts(inner) for inner in value) if isinstance(value, list | tuple) else ""
