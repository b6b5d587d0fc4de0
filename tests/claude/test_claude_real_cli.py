"""The real CLIs under watch: told by our command line, heard through our parser, ended without a trace."""

import asyncio
import uuid
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from small_api import Answer, bash, small_api, text

from supervisor.claude.command import RunSpec, arguments, environment
from supervisor.claude.gather import Gatherer
from supervisor.claude.probe import probe
from supervisor.claude.process import Exit, Limits, Running, start, watch
from supervisor.model.events import StreamEvent, ToolUse, Transcript
from supervisor.model.outcome import Ended
from supervisor.model.session import Tokens

LIMITS = Limits(
    first_output_seconds=60,
    silence_seconds=60,
    wall_clock_seconds=120,
    overload_wait_seconds=1,
    end_grace_seconds=5,
)
Environment = Callable[[str], dict[str, str]]


class Stage:
    """One binary, one working directory, and the id of the one session that plays there."""

    def __init__(self, cli: Path, work_dir: Path, agent_env: Environment) -> None:
        self.session_id = str(uuid.uuid4())
        self._cli, self._work_dir, self._agent_env = cli, work_dir, agent_env

    async def start(self, url: str) -> Running:
        env = self._agent_env(url)
        runtime = await probe(self._cli, cache_file=None, env=env)
        spec = RunSpec(
            session_id=self.session_id,
            resume_session_id=None,
            model="haiku",
            tools=("Bash",),
            disallowed_tools=("Bash(rm *)",),
            max_turns=5,
            max_budget_usd=1.0,
            system_prompt="- You look after a test.",
            append_system_prompt=False,
            report_schema=None,
            settings_json=None,
        )
        return await start(
            [runtime.path, *arguments(runtime, spec)],
            env=environment(env, tier=1, dry_run=False, state_dir=str(self._work_dir), run_marker=self.session_id),
            cwd=self._work_dir,
            marker=self.session_id,
        )

    def play(
        self, *answers: Answer, stop_when: Callable[[StreamEvent], bool] = lambda _: False, wait: float = 0.0
    ) -> tuple[Exit, Transcript]:
        gatherer = Gatherer()
        stop = asyncio.Event()

        def take(event: StreamEvent) -> None:
            gatherer.add(event)
            if stop_when(event):
                asyncio.get_running_loop().call_later(0.5, stop.set)

        async def session() -> Exit:
            async with small_api(*answers) as url:
                running = await self.start(url)
                await asyncio.sleep(wait)
                return await watch(running, prompt="Look around.", limits=LIMITS, on_event=take, stop=stop)

        return asyncio.run(session()), gatherer.transcript()

    def survivors(self) -> list[str]:
        mark = f"OPSLADDER_RUN={self.session_id}".encode()
        found = []
        for process in psutil.process_iter():
            try:
                if mark in Path(f"/proc/{process.pid}/environ").read_bytes():
                    found.append(" ".join(process.cmdline()))
            except (OSError, psutil.Error):
                continue
        return found


@pytest.fixture
def stage(cli: Path, tmp_path: Path, agent_env: Environment) -> Stage:
    work_dir = tmp_path / "work"
    work_dir.mkdir()
    return Stage(cli, work_dir, agent_env)


def test_a_run_with_a_tool_call_is_heard_completely(stage: Stage, cli_version: str):
    gone, transcript = stage.play(
        [text("I look."), bash("rm -f /nowhere"), bash("echo $CLAUDEOPS_TIER")], [text("done")]
    )

    assert (gone.ended, gone.exit_code) == (Ended.BY_ITSELF, 0)
    assert transcript.session_ids == (stage.session_id,)
    assert transcript.init is not None
    assert transcript.init.version == cli_version
    assert (transcript.tools_executed, transcript.tools_refused, len(transcript.tools_asked)) == (1, 1, 2)
    assert [(c.message_id, c.tokens, c.final) for c in transcript.calls] == [
        ("msg_1", Tokens(input=1000, output=50), True),
        ("msg_2", Tokens(input=1000, output=50), True),
    ]
    assert (transcript.last_text, transcript.messages, transcript.unreadable) == ("done", 2, 0)
    assert transcript.result is not None
    assert transcript.result.usage == Tokens(input=2000, output=100)


def test_the_cli_waits_for_its_prompt_longer_than_it_would_by_itself(stage: Stage):
    gone, transcript = stage.play([text("done")], wait=3.5)

    assert (gone.ended, gone.stderr_tail) == (Ended.BY_ITSELF, "")
    assert transcript.last_text == "done"


def test_a_cli_that_is_ended_before_its_prompt_leaves_nothing(stage: Stage):
    async def session() -> int | None:
        running = await stage.start("http://127.0.0.1:1")
        await running.end(5)
        return running.exit_code

    assert asyncio.run(session()) is not None
    assert stage.survivors() == []


def test_a_refused_key_ends_the_run_at_the_second_retry(stage: Stage):
    gone, transcript = stage.play(401)

    assert gone.ended is Ended.ENDLESS_RETRY
    assert gone.last_retry is not None
    assert (gone.last_retry.error_status, gone.last_retry.error) == (401, "authentication_failed")
    assert len(transcript.retries) == 2


@pytest.mark.parametrize("status", [529, 500, 429])
def test_an_api_that_does_not_recover_is_given_up(stage: Stage, status: int):
    gone, _ = stage.play(status)

    assert gone.ended is Ended.ENDLESS_RETRY
    assert gone.last_retry is not None
    assert gone.last_retry.error_status == status


def test_a_run_that_is_stopped_in_the_middle_of_a_command_leaves_nothing(stage: Stage):
    gone, transcript = stage.play(
        [bash("tail -f /dev/null & tail -f /dev/zero > /dev/null")], stop_when=lambda e: isinstance(e, ToolUse)
    )

    assert gone.ended is Ended.INTERRUPTED
    assert transcript.result is not None, "interrupted, the CLI still says what it has used"
    assert (transcript.result.terminal_reason, transcript.result.usage) == (
        "aborted_tools",
        Tokens(input=1000, output=50),
    )
    assert (len(transcript.tools_asked), transcript.tools_executed) == (1, 1)
    assert stage.survivors() == []


def test_what_a_command_left_in_the_background_is_ended_with_the_run(stage: Stage):
    length = f"300.{uuid.uuid4().int % 10**9:09}"
    hidden = f"(setsid env -i sleep {length} > /dev/null 2>&1 &) ; (setsid sleep 300.25 > /dev/null 2>&1 &)"
    gone, transcript = stage.play([bash(hidden)], [text("done")])

    assert gone.ended is Ended.BY_ITSELF
    assert transcript.tools_executed == 1
    assert stage.survivors() == []
    left = [p.pid for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", length]]
    assert left == []
