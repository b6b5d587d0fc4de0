"""A run under watch: what is heard, when it is ended, and that nothing of it stays behind."""

import asyncio
import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from supervisor.claude.gather import Gatherer
from supervisor.claude.process import Exit, Limits, Running, end_tree, start, watch
from supervisor.errors import ClaudeNotUsable
from supervisor.model.events import Init, Result, StreamEvent, Text, Unreadable
from supervisor.model.outcome import Ended

STANDIN = Path(__file__).with_name("standin.py")
PLENTY = 60.0
T = TypeVar("T")


def limits(**changed: float) -> Limits:
    usual: dict[str, float] = {
        "first_output_seconds": PLENTY,
        "silence_seconds": PLENTY,
        "wall_clock_seconds": PLENTY,
        "overload_wait_seconds": PLENTY,
        "end_grace_seconds": 0.3,
        "after_result_seconds": PLENTY,
    }
    return Limits(**{**usual, **changed})


async def begin(fault: str, *arguments: str) -> Running:
    mark = str(uuid.uuid4())
    env = {"PATH": "/usr/bin:/bin", "OPSLADDER_RUN": mark}
    return await start([sys.executable, str(STANDIN), fault, *arguments], env=env, cwd="/", marker=mark)


class Watched:
    def __init__(self, gone: Exit, events: list[StreamEvent], pid: int) -> None:
        self.exit, self.events, self.pid = gone, events, pid

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]


def run(
    fault: str,
    *arguments: str,
    prompt: str = "go",
    on_event: Callable[[StreamEvent], None] = lambda _: None,
    stop_on: Callable[[StreamEvent], bool] = lambda _: False,
    copy_to: Path | None = None,
    **changed: float,
) -> Watched:
    """Watch one stand-in to its end."""

    async def session() -> Watched:
        running = await begin(fault, *arguments)
        events: list[StreamEvent] = []
        stop = asyncio.Event()

        def take(event: StreamEvent) -> None:
            events.append(event)
            if stop_on(event):
                stop.set()
            on_event(event)

        gone = await watch(running, prompt=prompt, limits=limits(**changed), on_event=take, stop=stop, copy_to=copy_to)
        return Watched(gone, events, running.pid)

    return asyncio.run(session())


def children_named_by(watched: Watched) -> list[int]:
    pids = json.loads(watched.of(Text)[0].text)
    assert len(pids) == 4
    return pids


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid)


def test_a_run_that_ends_by_itself_says_everything_it_had_to_say():
    watched = run("fine")

    assert watched.exit == Exit(ended=Ended.BY_ITSELF, exit_code=0, stderr_tail="", last_retry=None)
    assert [type(e) for e in watched.events] == [Init, Result]
    assert is_gone(watched.pid)


def test_a_prompt_larger_than_a_pipe_arrives_whole_after_a_blank_line():
    prompt = "ä line of the prompt\n" * 20_000

    (result,) = run("echo", prompt=prompt).of(Result)

    assert result.text == "\n" + prompt


def test_a_prompt_that_nobody_reads_holds_nothing_up():
    async def session() -> Exit:
        running = await start([sys.executable, "-c", "print('hello')"], env={}, cwd="/", marker=None)
        return await watch(
            running, prompt="x" * 1_000_000, limits=limits(), on_event=lambda _: None, stop=asyncio.Event()
        )

    assert asyncio.run(session()).ended is Ended.BY_ITSELF


def test_garbage_is_kept_and_counted():
    watched = run("garbage")

    assert [e.why for e in watched.of(Unreadable)] == [
        "a line that is not JSON",
        "a JSON value that is not an object",
        "a line that is not JSON",
        "an event of an unknown kind: nonsense",
        "a line that is not JSON",
    ]
    assert watched.exit.ended is Ended.BY_ITSELF


def test_an_exit_without_a_result_gives_the_code_and_the_end_of_stderr():
    gone = run("no_result").exit

    assert (gone.ended, gone.exit_code) == (Ended.BY_ITSELF, 3)
    assert gone.stderr_tail.endswith("the last words \ufffd")
    assert len(gone.stderr_tail) <= 8 * 1024


def test_a_death_by_signal_is_given_as_128_and_the_signal():
    async def session() -> Exit:
        running = await start(["/bin/sh", "-c", "kill -9 $$"], env={}, cwd="/", marker=None)
        return await watch(running, prompt="", limits=limits(), on_event=lambda _: None, stop=asyncio.Event())

    assert asyncio.run(session()).exit_code == 137


def test_a_last_line_without_a_line_feed_counts():
    (result,) = run("unfinished_line").of(Result)

    assert result.text == "no line feed"


def test_a_line_of_100_megabytes_costs_little_memory():
    script = f"""
import resource, sys
sys.path.insert(0, {str(STANDIN.parent)!r})
from test_claude_process import run
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
watched = run("huge_line")
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
big = watched.events[1]
print(after - before, big.tool_use_id, big.is_error, big.size > 100 * 1024 * 1024, len(big.text), watched.exit.ended)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)

    grown_kib, *facts = done.stdout.split()
    assert facts == ["toolu_big", "True", "True", "20000", "by_itself"]
    assert int(grown_kib) < 60 * 1024


@pytest.mark.parametrize(
    ("fault", "limit", "ended"),
    [
        pytest.param("mute", {"first_output_seconds": 0.3}, Ended.NO_OUTPUT, id="no output"),
        pytest.param("falls_silent", {"silence_seconds": 0.3}, Ended.SILENCE, id="silence"),
        pytest.param("babbles", {"wall_clock_seconds": 0.6}, Ended.WALL_CLOCK, id="wall clock"),
        pytest.param("flood", {"wall_clock_seconds": 0.6}, Ended.WALL_CLOCK, id="wall clock in a flood"),
        pytest.param("lingers", {"after_result_seconds": 0.2}, Ended.AFTER_RESULT, id="after result"),
        pytest.param("deaf", {"silence_seconds": 0.3}, Ended.SILENCE, id="deaf to INT and TERM"),
        pytest.param("refused_key", {}, Ended.ENDLESS_RETRY, id="refused key"),
        pytest.param("overloaded", {"overload_wait_seconds": 0.3}, Ended.ENDLESS_RETRY, id="overloaded"),
    ],
)
def test_a_run_past_a_limit_is_ended(fault: str, limit: dict[str, float], ended: Ended):
    watched = run(fault, **limit)

    assert watched.exit.ended is ended
    assert is_gone(watched.pid)


def test_the_retry_that_ended_a_run_is_named():
    retry = run("refused_key").exit.last_retry

    assert retry is not None
    assert (retry.error_status, retry.error) == (401, "authentication_failed")


def test_an_interrupted_run_is_heard_out():
    watched = run("last_words", stop_on=lambda e: isinstance(e, Init), end_grace_seconds=PLENTY)

    assert watched.exit.ended is Ended.INTERRUPTED
    assert [r.total_cost_usd for r in watched.of(Result)] == [0.5]


def test_children_left_behind_are_ended_whatever_they_did_to_hide():
    watched = run("leaves_children")

    assert watched.exit.ended is Ended.BY_ITSELF
    assert all(is_gone(pid) for pid in children_named_by(watched))


def test_children_of_a_run_that_is_ended_are_ended_too():
    watched = run("leaves_children", "stay", stop_on=lambda e: isinstance(e, Text))

    assert watched.exit.ended is Ended.INTERRUPTED
    assert all(is_gone(pid) for pid in children_named_by(watched))


def test_a_grandchild_that_holds_the_pipe_does_not_hold_the_watcher():
    watched = run("pipe_holder")

    assert watched.exit.ended is Ended.BY_ITSELF
    assert len(watched.of(Result)) == 1


def test_a_run_is_ended_whose_pid_was_another_s_before(monkeypatch: pytest.MonkeyPatch):
    def remember_another(_: StreamEvent) -> None:
        """What psutil keeps of a process that had the pid when it last looked."""
        ours = {child.pid for child in psutil.Process().children()}
        for known in psutil.process_iter():
            if known.pid in ours:
                monkeypatch.setattr(known, "create_time", lambda: 0.0)

    watched = run("deaf", on_event=remember_another, stop_on=lambda event: isinstance(event, Init))

    assert is_gone(watched.pid)


def test_our_own_children_are_spared():
    ours = subprocess.Popen(["/bin/sleep", "600"])
    try:
        run("leaves_children")
        assert ours.poll() is None
    finally:
        ours.kill()
        ours.wait()


def test_a_run_does_not_end_the_orphans_of_another():
    async def session() -> tuple[bool, bool]:
        heard: list[StreamEvent] = []
        stop = asyncio.Event()
        first = await begin("leaves_children", "stay")
        async with asyncio.TaskGroup() as group:
            group.create_task(watch(first, prompt="", limits=limits(), on_event=heard.append, stop=stop))
            await until(lambda: any(isinstance(e, Text) for e in heard))
            pids = children_named_by(Watched(Exit(ended=Ended.BY_ITSELF, exit_code=0, stderr_tail=""), heard, 0))
            second = await begin("fine")
            await watch(second, prompt="", limits=limits(), on_event=lambda _: None, stop=asyncio.Event())
            spared = all(psutil.pid_exists(pid) for pid in pids)
            stop.set()
        return spared, all(is_gone(pid) for pid in pids)

    assert asyncio.run(session()) == (True, True)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("times", [1, 2], ids=["once", "again while ending"])
def test_a_cancelled_watch_leaves_nothing(times: int):
    async def session() -> list[int]:
        heard: list[StreamEvent] = []
        running = await begin("leaves_children", "stay")
        # The long grace of the second case is cut short by the second cancellation.
        task = asyncio.ensure_future(
            watch(
                running,
                prompt="",
                limits=limits(end_grace_seconds=0.3 if times == 1 else PLENTY),
                on_event=heard.append,
                stop=asyncio.Event(),
            )
        )
        await until(lambda: any(isinstance(e, Text) for e in heard))
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        return [running.pid, *json.loads(next(e for e in heard if isinstance(e, Text)).text)]

    assert all(is_gone(pid) for pid in asyncio.run(session()))


def test_a_listener_that_raises_ends_the_run():
    seen: list[int] = []

    def refuse(event: StreamEvent) -> None:
        if isinstance(event, Text):
            seen.extend(json.loads(event.text))
            raise LookupError("the listener is broken")  # noqa: TRY004

    with pytest.raises(LookupError, match="the listener is broken"):
        run("leaves_children", "stay", on_event=refuse)

    assert len(seen) == 4
    assert all(is_gone(pid) for pid in seen)


def test_a_listener_may_be_asynchronous():
    async def session() -> list[StreamEvent]:
        heard: list[StreamEvent] = []

        async def take(event: StreamEvent) -> None:
            await asyncio.sleep(0)
            heard.append(event)

        running = await begin("fine")
        await watch(running, prompt="", limits=limits(), on_event=take, stop=asyncio.Event())
        return heard

    assert [type(e) for e in asyncio.run(session())] == [Init, Result]


def test_a_run_that_was_never_prompted_does_nothing_and_ends():
    async def session() -> tuple[int, int | None]:
        running = await begin("fine")
        assert running.exit_code is None
        await running.end(0.3)
        await running.end(0.3)
        return running.pid, running.exit_code

    pid, code = asyncio.run(session())
    assert is_gone(pid)
    assert code is not None


def test_the_raw_stream_is_kept_for_the_owner_only(tmp_path: Path):
    copy = tmp_path / "streams" / "1.jsonl"

    run("garbage", copy_to=copy)

    assert copy.read_bytes().startswith(b"not json\n[1, 2]\n\xff")
    assert copy.stat().st_mode & 0o777 == 0o600
    assert copy.parent.stat().st_mode & 0o777 == 0o700


def test_the_raw_stream_of_another_run_that_had_the_number_before_is_not_added_to(tmp_path: Path):
    copy = tmp_path / "1.jsonl"
    copy.write_bytes(b'{"type":"result"}\n')

    run("fine", copy_to=copy)

    assert [json.loads(line)["type"] for line in copy.read_text().splitlines()] == ["system", "result"]


def test_a_disk_that_refuses_the_copy_does_not_cost_the_run():
    watched = run("fine", copy_to=Path("/dev/full"))

    assert len(watched.of(Result)) == 1


def test_what_a_dead_supervisor_left_is_ended_by_pid_start_and_mark():
    """The supervisor is a process of its own here, killed before it can clean up."""
    script = f"""
import asyncio, sys
sys.path.insert(0, {str(STANDIN.parent)!r})
from test_claude_process import begin, limits
from supervisor.claude.process import watch
from supervisor.model.events import Text
async def session():
    running = await begin("leaves_children", "stay")
    def take(event):
        if isinstance(event, Text):
            print(running.pid, repr(running.pid_started), running._tree._mark.decode(), event.text, sep="|", flush=True)
    await watch(running, prompt="", limits=limits(), on_event=take, stop=asyncio.Event())
asyncio.run(session())
"""
    supervisor = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert supervisor.stdout is not None
    pid, started, mark, children = supervisor.stdout.readline().split("|")
    marked, marked_apart, *hidden = json.loads(children)
    supervisor.kill()
    supervisor.wait()
    supervisor.stdout.close()
    try:
        run_id = mark.removeprefix("OPSLADDER_RUN=")
        asyncio.run(end_tree(int(pid), float(started) - 1000, marker=None, grace_seconds=0.3))
        assert psutil.pid_exists(int(pid)), "another start time is another process"

        asyncio.run(end_tree(int(pid), float(started), marker=run_id, grace_seconds=0.3))
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and any(map(psutil.pid_exists, (int(pid), marked, marked_apart))):
            time.sleep(0.01)
        assert [p for p in (int(pid), marked, marked_apart) if psutil.pid_exists(p)] == []
    finally:
        for survivor in hidden:
            if psutil.pid_exists(survivor):
                process = psutil.Process(survivor)
                process.kill()
                process.wait(10)


def test_a_program_that_cannot_be_started_says_why():
    with pytest.raises(ClaudeNotUsable, match="could not be started"):
        asyncio.run(start(["/nonexistent/claude"], env={}, cwd="/", marker=None))


def test_a_tool_result_that_was_too_long_still_counts_as_executed():
    gatherer = Gatherer()
    for event in run("huge_line").events:
        gatherer.add(event)

    assert gatherer.transcript().tools_executed == 1
