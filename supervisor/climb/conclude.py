"""Put together what is recorded of a run that is over. Pure over its arguments. Called from climb.run and recovery."""

import datetime as dt
from dataclasses import dataclass

from supervisor.climb.entries import usable_id
from supervisor.decide.context import WindowOf, context_left_behind, first_call, window
from supervisor.decide.cost import PriceOf, spend
from supervisor.decide.outcome import outcome
from supervisor.decide.report import find_report
from supervisor.model.events import ApiRetry, Transcript
from supervisor.model.outcome import Ended
from supervisor.model.report import InvalidReport, Report
from supervisor.model.session import Session, SessionStatus, ToolCalls, UsageByModel
from supervisor.store import SessionEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """How a process went."""

    ended: Ended
    exit_code: int | None
    stderr: str = ""
    last_retry: ApiRetry | None = None


def conclude(
    session: Session,
    transcript: Transcript,
    departure: Departure,
    *,
    inherited: UsageByModel | None,
    version: str | None,
    price: PriceOf,
    window_of: WindowOf,
    last_message_at: dt.datetime | None,
    now: dt.datetime,
) -> SessionEnd:
    """Everything that is known of a run at its end."""
    verdict = outcome(
        transcript,
        ended=departure.ended,
        exit_code=departure.exit_code,
        stderr=departure.stderr,
        resumed=session.resumed_from is not None,
        last_retry=departure.last_retry,
    )
    report: Report | None = None
    detail = verdict.detail
    if verdict.status is SessionStatus.COMPLETED:
        found = _report(transcript)
        if isinstance(found, InvalidReport):
            detail = "Its report is not valid: " + "; ".join(found.problems) + "."
        else:
            report = found
    used = spend(transcript, inherited=inherited, version=version, price=price)
    result = transcript.result
    model_id = transcript.init.model if transcript.init else None
    return SessionEnd(
        status=verdict.status,
        failure=verdict.failure,
        detail=detail,
        session_id=usable_id(transcript.session_id) or session.session_id,
        model_id=model_id,
        cost_usd=used.cost_usd,
        cost_basis=used.basis,
        tokens=used.tokens,
        context_tokens=context_left_behind(transcript),
        context_window=window(transcript, session.model, window_of),
        first_call_tokens=first_call(transcript),
        reported_usage=used.reported,
        num_turns=result.num_turns if result else None,
        messages=transcript.messages,
        exit_code=departure.exit_code,
        stop_reason=(result.stop_reason or result.subtype) if result else None,
        tool_calls=ToolCalls(allowed=transcript.tools_executed, denied=transcript.tools_refused),
        tools_executed=transcript.tools_executed,
        report=report,
        unknown_lines=transcript.unreadable,
        last_message_at=last_message_at,
        ended_at=now,
    )


def _report(transcript: Transcript) -> Report | InvalidReport:
    result = transcript.result
    structured = (result.structured_output if result else None) or transcript.last_structured
    return find_report(structured, (result.text if result else None) or transcript.last_text)
