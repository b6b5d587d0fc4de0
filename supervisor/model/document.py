"""The JSON documents other people's scripts read. No I/O. Used by cli (and later web): names here do not change.

Times are UTC, RFC 3339 with ``Z``; money is USD as a number; unknown is ``null``, never 0.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from supervisor.model.cycle import Chain, Cycle, Event
from supervisor.model.guarding import Approval, RecordedCall, ServiceRecord
from supervisor.model.history import Transition
from supervisor.model.incident import Incident, IncidentTotal
from supervisor.model.report import Report
from supervisor.model.session import CostBasis, Session

CHAIN_SCHEMA = "opsladder.chain/1"
SESSION_SCHEMA = "opsladder.session/1"
INCIDENT_SCHEMA = "opsladder.incident/1"

Document = dict[str, object]


def timestamp(at: datetime | None) -> str | None:
    """A time as other programs read it."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z") if at else None


def chain_document(chain: Chain) -> Document:
    return {
        "schema": CHAIN_SCHEMA,
        "cycle": cycle_document(chain.cycle),
        "total": {
            "cost_usd": chain.cost_usd,
            "cost_is_exact": chain.cost_is_exact,
            "duration_seconds": chain.duration_seconds,
            "sessions": len(chain.sessions),
        },
        "sessions": [session_fields(s, chain) for s in chain.sessions],
    }


def cycle_document(cycle: Cycle) -> Document:
    return {
        "id": cycle.id,
        "schedule": cycle.schedule,
        "trigger": cycle.trigger.value,
        "status": cycle.status.value,
        "reason": cycle.reason,
        "detail": cycle.detail,
        "dry_run": cycle.dry_run,
        "incident": cycle.incident,
        "started_at": timestamp(cycle.started_at),
        "ended_at": timestamp(cycle.ended_at),
    }


def session_document(
    session: Session, chain: Chain, events: list[Event], calls: list[RecordedCall], history: list[Transition]
) -> Document:
    """One record with its messages, tool calls, decisions and changes of status."""
    return {
        "schema": SESSION_SCHEMA,
        "cycle": cycle_document(chain.cycle),
        "session": session_fields(session, chain),
        "events": [event_document(e) for e in events],
        "guard": [call_document(c) for c in calls],
        "history": [transition_document(t) for t in history],
    }


def transition_document(transition: Transition) -> Document:
    return {
        "at": timestamp(transition.at),
        "from": transition.from_status,
        "to": transition.to_status,
        "why": transition.why,
        "by": transition.made_by,
    }


def session_fields(session: Session, chain: Chain) -> Document:
    tokens = session.tokens
    return {
        "id": session.id,
        "cycle": session.cycle_id,
        "tier": session.tier,
        "model": session.model,
        "model_id": session.model_id,
        "session_id": session.session_id,
        "parent_session_id": session.parent_session_id,
        "resumed_from": session.resumed_from,
        "status": session.status.value,
        "failure": session.failure.value if session.failure else None,
        "detail": session.detail,
        "continuity": session.continuity.value,
        "reason": session.reason.value,
        "resumes": session.resumes,
        "epoch": session.epoch,
        "cost_usd": session.cost_usd,
        "cost_basis": session.cost_basis.value,
        "input_tokens": tokens.input if tokens else None,
        "output_tokens": tokens.output if tokens else None,
        "cache_read_tokens": tokens.cache_read if tokens else None,
        "cache_write_tokens": tokens.cache_write if tokens else None,
        "context_tokens": session.context_tokens,
        "context_window": session.context_window,
        "context_ratio": session.context_ratio,
        "first_call_tokens": session.first_call_tokens,
        "prompt_bytes": session.prompt_bytes,
        "fixed_tokens": session.fixed_tokens,
        # How many tokens our prompt is, is an estimate.
        "fixed_tokens_basis": (CostBasis.UNKNOWN if session.fixed_tokens is None else CostBasis.ESTIMATED).value,
        "resume_saving": resume_saving(session, chain),
        "messages": session.messages,
        "num_turns": session.num_turns,
        "duration_seconds": session.duration_seconds,
        "exit_code": session.exit_code,
        "stop_reason": session.stop_reason,
        "tool_calls": {
            "allowed": session.tool_calls.allowed,
            "denied": session.tool_calls.denied,
            "deferred": session.tool_calls.deferred,
        },
        "report": report_document(session.report) if session.report else None,
        "work_dir": session.work_dir,
        "created_at": timestamp(session.created_at),
        "started_at": timestamp(session.started_at),
        "last_message_at": timestamp(session.last_message_at),
        "ended_at": timestamp(session.ended_at),
    }


def resume_saving(session: Session, chain: Chain) -> Document | None:
    """What resuming was worth: what the first call read, against what the earlier tiers read to know as much.

    Both are measured. A fresh run would have had to read the second again; ``null`` for a run that resumed nothing.
    """
    if session.resumed_from is None or session.first_call_tokens is None:
        return None
    repeated = 0
    parent = chain.by_id(session.parent_session_id)
    if parent is None:
        return None
    while parent is not None:
        if parent.tokens is None:
            return None
        repeated += parent.tokens.read
        above = chain.by_id(parent.parent_session_id)
        if above is None and parent.parent_session_id is not None:
            # It goes on in another cycle that is not at hand.
            return None
        parent = above
    return {
        "read_tokens": session.first_call_tokens,
        "fresh_alternative_tokens": repeated,
        "saved_tokens": repeated - session.first_call_tokens,
    }


def report_document(report: Report) -> Document:
    return {
        "summary": report.summary,
        "services": [{"name": s.name, "status": s.status.value, "detail": s.detail} for s in report.services],
        "actions": [
            {"service": a.service, "kind": a.kind, "command": a.command, "succeeded": a.succeeded}
            for a in report.actions
        ],
        "events": [{"level": e.level.value, "service": e.service, "message": e.message} for e in report.events],
        "escalation": {"needed": report.escalation_needed, "reason": report.escalation_reason},
    }


def incident_document(
    incident: Incident, total: IncidentTotal, chains: Sequence[Chain] = (), kept: Sequence[Session] = ()
) -> Document:
    """One incident with the newest of its cycles, oldest first, and the sessions that a later cycle may resume."""
    return {
        "schema": INCIDENT_SCHEMA,
        "incident": incident_fields(incident, total),
        "kept_sessions": [{"tier": s.tier, "id": s.id, "session_id": s.session_id} for s in kept],
        "chains": [chain_document(c) for c in chains],
    }


def incident_fields(incident: Incident, total: IncidentTotal) -> Document:
    return {
        "id": incident.id,
        "schedule": incident.schedule,
        "status": incident.status.value,
        "services": list(incident.services),
        "healthy_streak": incident.healthy_streak,
        "reopened": incident.reopened,
        "last_cycle": incident.last_cycle,
        "opened_at": timestamp(incident.opened_at),
        "updated_at": timestamp(incident.updated_at),
        "closed_at": timestamp(incident.closed_at),
        "total": {
            "cycles": total.cycles,
            "sessions": total.sessions,
            "cost_usd": total.cost_usd,
            "cost_is_exact": total.cost_is_exact,
        },
    }


def approval_document(approval: Approval) -> Document:
    return {
        "id": approval.id,
        "status": approval.status.value,
        "cycle_id": approval.cycle_id,
        "session_id": approval.session_id,
        "tier": approval.tier,
        "tool": approval.tool,
        "text": approval.text,
        "input": dict(approval.input),
        "services": list(approval.services),
        "rule": approval.rule,
        "sentence": approval.sentence,
        "created_at": timestamp(approval.created_at),
        "expires_at": timestamp(approval.expires_at),
        "decided_at": timestamp(approval.decided_at),
        "decided_by": approval.decided_by,
        "reason": approval.reason,
        "used_at": timestamp(approval.used_at),
        "used_by": approval.used_by,
    }


def call_document(call: RecordedCall) -> Document:
    return {
        "id": call.id,
        "tool_use_id": call.tool_use_id,
        "tool": call.tool,
        "text": call.text,
        "decision": call.verdict.value,
        "rule": call.rule,
        "sentence": call.sentence,
        "at": timestamp(call.at),
        "outcome": call.outcome.value if call.outcome else None,
        "ended_at": timestamp(call.ended_at),
    }


def service_document(service: ServiceRecord) -> Document:
    return {
        "name": service.name,
        "status": service.status.value if service.status else None,
        "since": timestamp(service.since),
        "healthy_streak": service.healthy_streak,
        "last_cycle": service.last_cycle,
        "cooldowns": {
            use.kind.value: {
                "used": use.used,
                "left": use.left,
                "max": use.limit.max,
                "per_seconds": int(use.limit.window.total_seconds()),
                "next_at": timestamp(use.next_at),
            }
            for use in service.cooldowns
        },
    }


def event_document(event: Event) -> Document:
    return {
        "id": event.id,
        "at": timestamp(event.at),
        "session_id": event.session_id,
        "kind": event.kind.value,
        "level": event.level.value,
        "text": event.text,
        "data": dict(event.data),
    }
