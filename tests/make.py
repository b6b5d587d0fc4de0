"""Facts for decision tests: complete, ordinary, and changed only where a test says so."""

import datetime as dt
from dataclasses import replace
from typing import Any

from supervisor.decide.continuity import ContinuityPolicy, Surroundings
from supervisor.decide.next_step import Policy
from supervisor.model.cycle import Chain, Cycle, CycleStatus, Trigger
from supervisor.model.events import CallUsage, Result, Transcript
from supervisor.model.report import Health, Report, ServiceState
from supervisor.model.runtime import Abilities, Runtime
from supervisor.model.session import ContinuityKind, ModelUsage, Reason, Session, SessionStatus, Tokens

NOW = dt.datetime(2026, 11, 16, 3, 0, tzinfo=dt.UTC)

ABILITIES = Abilities(
    resume=True,
    fork_session=True,
    session_id=True,
    tools=True,
    json_schema=True,
    partial_messages=True,
    system_prompt=True,
    append_system_prompt=True,
    setting_sources=True,
    settings=True,
    strict_mcp_config=True,
    max_budget_usd=True,
    defer=True,
)
RUNTIME = Runtime(id="rt-1", host="here", path="/usr/bin/claude", version="2.1.325", abilities=ABILITIES)

NEEDED = Report(
    summary="web does not answer",
    escalation_needed=True,
    escalation_reason="web is down and may not be restarted here",
    services=(ServiceState(name="web", status=Health.DOWN), ServiceState(name="db", status=Health.HEALTHY)),
)
FINE = Report(
    summary="all is well", escalation_needed=False, services=(ServiceState(name="web", status=Health.HEALTHY),)
)


def a_session(**changes: Any) -> Session:
    base = Session(
        id=1,
        cycle_id=1,
        tier=1,
        model="haiku",
        session_id="11111111-1111-4111-8111-111111111111",
        parent_session_id=None,
        status=SessionStatus.COMPLETED,
        continuity=ContinuityKind.FRESH,
        reason=Reason.FIRST_TIER,
        work_dir="/srv",
        runtime_id="rt-1",
        created_at=NOW - dt.timedelta(minutes=5),
        started_at=NOW - dt.timedelta(minutes=5),
        last_message_at=NOW - dt.timedelta(minutes=1),
        ended_at=NOW - dt.timedelta(minutes=1),
        messages=3,
        tools_executed=2,
        context_tokens=15_000,
        context_window=200_000,
        report=NEEDED,
    )
    return replace(base, **changes)


def a_chain(*sessions: Session, **cycle: Any) -> Chain:
    values: dict[str, Any] = {
        "id": 1,
        "schedule": "default",
        "trigger": Trigger.MANUAL,
        "status": CycleStatus.RUNNING,
        "dry_run": False,
        "started_at": NOW - dt.timedelta(minutes=6),
    }
    return Chain(cycle=Cycle(**{**values, **cycle}), sessions=sessions)


def surroundings(**changes: Any) -> Surroundings:
    base = Surroundings(runtime=RUNTIME, work_dir="/srv", windows={1: 200_000, 2: 200_000, 3: 200_000})
    return replace(base, **changes)


CONTINUITY = ContinuityPolicy(context_threshold=0.80, max_age=dt.timedelta(hours=1), max_resumes=5)


def policy(**changes: Any) -> Policy:
    return replace(Policy(tiers=3, max_tier=3, start_tier=1, dry_run=False, continuity=CONTINUITY), **changes)


def a_result(**changes: Any) -> Result:
    values: dict[str, Any] = {
        "session_id": None,
        "subtype": "success",
        "is_error": False,
        "text": "done",
        "structured_output": None,
        "stop_reason": "end_turn",
        "terminal_reason": "completed",
        "api_error_status": None,
        "num_turns": 1,
        "total_cost_usd": None,
        "usage": None,
        "model_usage": {},
        "own_model_usage": None,
        "permission_denials": 0,
        "errors": (),
    }
    return Result(**{**values, **changes})


def a_transcript(result: Result | None = None, **changes: Any) -> Transcript:
    return Transcript(results=(result,) if result else (), **{"messages": 2, **changes})


def a_call(
    message_id: str, *, final: bool = True, main_loop: bool = True, model: str = "m", **tokens: int
) -> CallUsage:
    return CallUsage(message_id=message_id, model=model, tokens=Tokens(**tokens), final=final, main_loop=main_loop)


def usage(cost: float | None, window: int | None = 200_000, **tokens: int) -> ModelUsage:
    return ModelUsage(tokens=Tokens(**tokens), cost_usd=cost, context_window=window)
