"""A command line for each test, and records to look at."""

import datetime as dt
from pathlib import Path

import pytest

from supervisor.climb.owner import this_process
from supervisor.model.cycle import CycleStatus, EventKind, NewEvent
from supervisor.model.outcome import Failure
from supervisor.model.report import Health, Report, ServiceState
from supervisor.model.session import CostBasis, SessionStatus, Tokens, ToolCalls
from supervisor.store import open_store
from tests.cli.command_line import CommandLine, Onlooker, command_line
from tests.store.store_examples import add_session, begin, end

HOSTILE = "\x1b[31mred\x1b]0;owned\x07 [bold]no markup[/bold] \ud800 " + "unbroken" * 30


@pytest.fixture
def opsladder(tmp_path: Path) -> CommandLine:
    """`opsladder` with nothing configured and no Claude CLI."""
    return command_line(tmp_path)


@pytest.fixture
def on_real_cli(tmp_path: Path, new_cli: Path) -> CommandLine:
    """`opsladder` with the real CLI and no API to ask."""
    return command_line(tmp_path, OPSLADDER_CLAUDE__BIN=str(new_cli))


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Onlooker:
    """`opsladder` with a past.

    | cycle | records | |
    | 1 | 1, 2 | an hour and two ago; resolved by tier 2, costs reported |
    | 2 | 3 | cut off: its cost is estimated, and its texts are hostile |
    | 3 | 4 | cut off before anything was known of it |
    | 4 | | skipped |
    """
    opsladder = command_line(tmp_path_factory.mktemp("recorded"))
    opsladder.state.mkdir(mode=0o700)
    now = dt.datetime.now(dt.UTC).replace(microsecond=0)
    earlier = now - dt.timedelta(hours=2)
    with open_store(f"sqlite:///{opsladder.state}/opsladder.db") as store:
        first = begin(store, now=earlier)
        one = add_session(store, first, created_at=earlier, prompt_bytes=1200)
        store.activate_session(one.id, pid=1, pid_started=1.0, now=earlier)
        down = Report(
            summary="web does not answer",
            escalation_needed=True,
            escalation_reason="web is down",
            services=(ServiceState(name="web", status=Health.DOWN),),
        )
        known = {
            "cost_basis": CostBasis.REPORTED,
            "context_tokens": 4000,
            "context_window": 200_000,
            "first_call_tokens": 3000,
            "exit_code": 0,
            "num_turns": 2,
            "tool_calls": ToolCalls(allowed=1),
        }
        said = {"report": down, "messages": 5, "last_message_at": earlier}
        one = end(store, one, cost_usd=0.01, tokens=Tokens(input=900, output=90), ended_at=earlier, **said, **known)
        two = add_session(store, first, one, tier=2, model="sonnet", created_at=earlier, resumed_from=one.session_id)
        events = [
            NewEvent(kind=EventKind.PROMPT, at=earlier, session_id=two.id, text="You are tier 2.\n"),
            NewEvent(
                kind=EventKind.TOOL_USE, at=earlier, session_id=two.id, text="webctl restart", data={"name": "Bash"}
            ),
            NewEvent(
                kind=EventKind.TOOL_RESULT, at=earlier, session_id=two.id, text="x" * 5000, data={"is_error": True}
            ),
        ]
        store.append_events(first.id, events)
        fine = Report(summary="web answers again", escalation_needed=False)
        end(store, two, cost_usd=0.02, tokens=Tokens(input=50, output=5), report=fine, ended_at=earlier, **known)
        store.finish_cycle(first.id, status=CycleStatus.RESOLVED, reason=None, detail="web answers again", now=earlier)

        second = begin(store, "nightly", now=now, dry_run=True)
        three = add_session(store, second, created_at=now)
        store.append_events(second.id, [NewEvent(kind=EventKind.TEXT, at=now, session_id=three.id, text=HOSTILE)])
        end(
            store,
            three,
            SessionStatus.TIMED_OUT,
            cost_usd=0.5,
            cost_basis=CostBasis.ESTIMATED,
            tokens=Tokens(input=70, output=7),
            failure=Failure.WALL_CLOCK,
            detail=HOSTILE,
            ended_at=now,
        )
        store.finish_cycle(second.id, status=CycleStatus.FAILED, reason="wall_clock", detail=HOSTILE, now=now)

        third = begin(store, now=now, owner=this_process())
        four = add_session(store, third, model="opus", created_at=now)
        end(store, four, SessionStatus.INTERRUPTED, failure=Failure.INTERRUPTED, detail="Interrupted.", ended_at=now)
        store.finish_cycle(third.id, status=CycleStatus.STOPPED, reason="interrupted", detail="Interrupted.", now=now)
        store.skip_cycle(
            schedule="default",
            trigger=first.trigger,
            dry_run=False,
            reason="already_running",
            detail="Cycle 3 still runs.",
            now=now,
        )
    return Onlooker(directory=opsladder.directory, env=opsladder.env)
