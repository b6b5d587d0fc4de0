"""Rows to model dataclasses and back. No I/O. Used by ``reads`` and ``writes``."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping

from supervisor.model.cycle import Cycle, CycleStatus, Event, EventKind, NewEvent, Trigger
from supervisor.model.outcome import Failure
from supervisor.model.report import Action, Health, Level, Report, ReportedEvent, ServiceState
from supervisor.model.session import (
    ContinuityKind,
    CostBasis,
    ModelUsage,
    Reason,
    Session,
    SessionStatus,
    Tokens,
    ToolCalls,
    UsageByModel,
)
from supervisor.store.records import NewSession, Owner, SessionEnd

Values = dict[str, Any]


def cycle_of(row: RowMapping) -> Cycle:
    return Cycle(
        id=row["id"],
        schedule=row["schedule"],
        trigger=Trigger(row["trigger"]),
        status=CycleStatus(row["status"]),
        dry_run=row["dry_run"],
        started_at=row["started_at"],
        reason=row["reason"],
        detail=row["detail"],
        incident=row["incident"],
        max_tier=row["max_tier"],
        request=row["request"] or {},
        stop_asked_by=row["stop_asked_by"],
        archived_at=row["archived_at"],
        ended_at=row["ended_at"],
    )


def owner_of(row: RowMapping, now: datetime) -> Owner:
    beat = row["heartbeat_at"]
    return Owner(
        host=row["owner_host"],
        pid=row["owner_pid"],
        started=row["owner_started"],
        silent_for=None if beat is None else now - beat,
    )


def session_of(row: RowMapping) -> Session:
    return Session(
        id=row["id"],
        cycle_id=row["cycle_id"],
        tier=row["tier"],
        model=row["model"],
        session_id=row["session_id"],
        parent_session_id=row["parent_session_id"],
        status=SessionStatus(row["status"]),
        continuity=ContinuityKind(row["continuity"]),
        reason=Reason(row["reason"]),
        work_dir=row["work_dir"],
        runtime_id=row["runtime_id"],
        created_at=row["created_at"],
        resumed_from=row["resumed_from"],
        epoch=row["epoch"],
        resumes=row["resumes"],
        failure=None if row["failure"] is None else Failure(row["failure"]),
        detail=row["detail"],
        model_id=row["model_id"],
        cost_usd=row["cost_usd"],
        cost_basis=CostBasis(row["cost_basis"]),
        tokens=_tokens_of(row),
        context_tokens=row["context_tokens"],
        context_window=row["context_window"],
        first_call_tokens=row["first_call_tokens"],
        prompt_bytes=row["prompt_bytes"],
        reported_usage=_usage_of(row["reported_usage"]),
        num_turns=row["num_turns"],
        messages=row["messages"],
        exit_code=row["exit_code"],
        stop_reason=row["stop_reason"],
        tool_calls=ToolCalls(
            allowed=row["tool_calls_allowed"], denied=row["tool_calls_denied"], deferred=row["tool_calls_deferred"]
        ),
        tools_executed=row["tools_executed"],
        report=None if row["report"] is None else _report_of(row["report"]),
        unknown_lines=row["unknown_lines"],
        pid=row["pid"],
        pid_started=row["pid_started"],
        started_at=row["started_at"],
        last_message_at=row["last_message_at"],
        ended_at=row["ended_at"],
    )


def event_of(row: RowMapping) -> Event:
    return Event(
        id=row["id"],
        cycle_id=row["cycle_id"],
        session_id=row["session_id"],
        kind=EventKind(row["kind"]),
        level=Level(row["level"]),
        at=row["at"],
        text=row["text"],
        data=row["data"],
    )


def new_session_values(new: NewSession) -> Values:
    return {
        "cycle_id": new.cycle_id,
        "tier": new.tier,
        "model": new.model,
        "session_id": new.session_id,
        "parent_session_id": new.parent_session_id,
        "status": SessionStatus.CREATED,
        "continuity": new.continuity,
        "reason": new.reason,
        "work_dir": new.work_dir,
        "runtime_id": new.runtime_id,
        "created_at": new.created_at,
        "resumed_from": new.resumed_from,
        "epoch": 0,
        "resumes": new.resumes,
        "prompt_bytes": new.prompt_bytes,
        "cost_basis": CostBasis.UNKNOWN,
        "reported_usage": {},
        "messages": 0,
        **_tool_call_values(ToolCalls()),
        "tools_executed": 0,
        "unknown_lines": 0,
    }


def session_end_values(end: SessionEnd) -> Values:
    """The columns an end changes beside the status: those it knows something about."""
    values: Values = {
        "ended_at": end.ended_at,
        "failure": end.failure,
        "detail": end.detail,
        "session_id": end.session_id,
        "model_id": end.model_id,
        "context_tokens": end.context_tokens,
        "context_window": end.context_window,
        "first_call_tokens": end.first_call_tokens,
        "reported_usage": None if end.reported_usage is None else _usage_values(end.reported_usage),
        "num_turns": end.num_turns,
        "messages": end.messages,
        "exit_code": end.exit_code,
        "stop_reason": end.stop_reason,
        **({} if end.tool_calls is None else _tool_call_values(end.tool_calls)),
        "tools_executed": end.tools_executed,
        "report": None if end.report is None else _report_values(end.report),
        "unknown_lines": end.unknown_lines,
        "last_message_at": end.last_message_at,
        **cost_values(end.cost_usd, end.cost_basis),
        **token_values(end.tokens),
    }
    return {column: value for column, value in values.items() if value is not None}


def event_values(cycle_id: int, event: NewEvent) -> Values:
    return {
        "cycle_id": cycle_id,
        "session_id": event.session_id,
        "kind": event.kind,
        "level": event.level,
        "at": event.at,
        "text": event.text,
        "data": event.data,
    }


def cost_values(cost_usd: float | None, basis: CostBasis) -> Values:
    """Nothing for an unknown cost: it must not erase one that is known."""
    return {} if cost_usd is None else {"cost_usd": cost_usd, "cost_basis": basis}


def token_values(tokens: Tokens | None) -> Values:
    if tokens is None:
        return {}
    return {
        "input_tokens": tokens.input,
        "output_tokens": tokens.output,
        "cache_read_tokens": tokens.cache_read,
        "cache_write_tokens": tokens.cache_write,
    }


def _tokens_of(row: RowMapping) -> Tokens | None:
    # The four are written together, so one of them stands for all.
    if row["input_tokens"] is None:
        return None
    return Tokens(
        input=row["input_tokens"],
        output=row["output_tokens"],
        cache_read=row["cache_read_tokens"],
        cache_write=row["cache_write_tokens"],
    )


def _tool_call_values(calls: ToolCalls) -> Values:
    return {
        "tool_calls_allowed": calls.allowed,
        "tool_calls_denied": calls.denied,
        "tool_calls_deferred": calls.deferred,
    }


def _usage_values(usage: UsageByModel) -> Values:
    return {
        model: {**token_values(use.tokens), "cost_usd": use.cost_usd, "context_window": use.context_window}
        for model, use in usage.items()
    }


def _usage_of(stored: Mapping[str, Any]) -> UsageByModel:
    return {
        model: ModelUsage(
            tokens=Tokens(
                input=use["input_tokens"],
                output=use["output_tokens"],
                cache_read=use["cache_read_tokens"],
                cache_write=use["cache_write_tokens"],
            ),
            cost_usd=use["cost_usd"],
            context_window=use["context_window"],
        )
        for model, use in stored.items()
    }


def _report_values(report: Report) -> Values:
    """The report in the shape in which agents write it and ``chain --json`` shows it."""
    return {
        "summary": report.summary,
        "services": [{"name": s.name, "status": s.status, "detail": s.detail} for s in report.services],
        "actions": [
            {"service": a.service, "kind": a.kind, "command": a.command, "succeeded": a.succeeded}
            for a in report.actions
        ],
        "events": [{"level": e.level, "service": e.service, "message": e.message} for e in report.events],
        "escalation": {"needed": report.escalation_needed, "reason": report.escalation_reason},
    }


def _report_of(stored: Mapping[str, Any]) -> Report:
    return Report(
        summary=stored["summary"],
        escalation_needed=stored["escalation"]["needed"],
        escalation_reason=stored["escalation"]["reason"],
        services=tuple(
            ServiceState(name=s["name"], status=Health(s["status"]), detail=s["detail"]) for s in stored["services"]
        ),
        actions=tuple(
            Action(service=a["service"], kind=a["kind"], command=a["command"], succeeded=a["succeeded"])
            for a in stored["actions"]
        ),
        events=tuple(
            ReportedEvent(level=Level(e["level"]), message=e["message"], service=e["service"]) for e in stored["events"]
        ),
    )
