"""Calls that wait for a person, on the real CLI, both versions."""

import asyncio
from pathlib import Path

import pytest
from guarded import Ran, Scene, always, bash, say

from supervisor.guard.bounds import Bounds
from supervisor.model.permission import Decision, ToolCall, Verdict
from supervisor.rehearsal.scenario import Turn

DONE = Turn(text="That is all.")
DEFER = always(say(Verdict.DEFER, "A person has to approve."))
COMMAND = "echo ran >> made"


@pytest.fixture
def scene(cli: Path, tmp_path: Path) -> Scene:
    return Scene(cli=cli, tmp_path=tmp_path)


async def _deferred(scene: Scene) -> Ran:
    return await scene.guarded(bash(COMMAND), Turn(text="never said"), answer=DEFER)


def test_a_deferred_call_ends_the_run_and_names_itself_in_the_result(scene: Scene) -> None:
    ran = asyncio.run(_deferred(scene))

    assert not scene.made()
    assert ran.exit.exit_code == 0
    assert len(ran.requests) == 1
    assert (ran.result["subtype"], ran.result["is_error"]) == ("success", False)
    assert ran.result["stop_reason"] == "tool_deferred"
    [asked] = scene.asked
    assert ran.result["deferred_tool_use"] == {
        "id": asked.tool_use_id,
        "name": "Bash",
        "input": {"command": COMMAND},
    }


def test_an_approved_call_runs_exactly_once_in_a_fork_that_is_given_no_prompt(scene: Scene) -> None:
    async def play() -> tuple[Ran, Ran]:
        first = await _deferred(scene)
        second = await scene.guarded(DONE, answer=always(say(Verdict.ALLOW)), resume=first.session_id, prompt="")
        return first, second

    first, second = asyncio.run(play())

    assert (scene.work / "made").read_text() == "ran\n"
    before, after = scene.asked
    assert (after.tool_use_id, after.input) == (before.tool_use_id, before.input)
    assert (before.session_id, after.session_id) == (first.session_id, second.session_id)
    assert second.result["result"] == "That is all."


def test_a_call_that_is_denied_later_does_not_run_and_the_model_reads_why(scene: Scene) -> None:
    async def play() -> Ran:
        first = await _deferred(scene)
        no = always(say(Verdict.DENY, "The operator says: not on a Friday."))
        return await scene.guarded(DONE, answer=no, resume=first.session_id, prompt="")

    second = asyncio.run(play())

    assert not scene.made()
    assert "not on a Friday" in second.told_the_model
    assert second.result["result"] == "That is all."


def test_a_hook_can_wait_for_a_person_instead(scene: Scene) -> None:
    scene.bounds = Bounds(answer_seconds=60)

    async def after_a_while(call: ToolCall) -> Decision:
        await asyncio.sleep(2)
        return say(Verdict.ALLOW)

    asyncio.run(scene.guarded(bash(COMMAND), DONE, answer=after_a_while))

    assert (scene.work / "made").read_text() == "ran\n"


def test_waiting_for_a_person_ends_in_a_refusal(scene: Scene) -> None:
    scene.bounds = Bounds(answer_seconds=0.5)

    async def never(call: ToolCall) -> Decision:
        await asyncio.Event().wait()
        raise AssertionError

    ran = asyncio.run(scene.guarded(bash(COMMAND), DONE, answer=never))

    assert not scene.made()
    assert "nobody decided on it within 0.5 seconds" in ran.told_the_model
