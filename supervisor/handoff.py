"""Turn recorded messages into a handoff, write it, read it back checked. Called from climb.cycle.

The agent has no part in it: what a handoff says is what the supervisor saw, its secrets masked. The file exists only
while the run that needs it is under way, and is named after its cycle and record, so that none can be mistaken for
another's.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path

from supervisor.decide.masking import Masker
from supervisor.durable import write_durably
from supervisor.errors import HandoffInvalid
from supervisor.model.cycle import Event, EventKind
from supervisor.model.document import timestamp
from supervisor.model.guarding import RecordedCall
from supervisor.model.handoff import SCHEMA_VERSION, Check, Handoff
from supervisor.model.permission import Verdict
from supervisor.model.report import Action, Health, Report, ServiceState
from supervisor.model.session import Reason, Session

MAX_CHARACTERS = 50_000
_OUTPUT_LIMIT = 1_500
_TIGHT_OUTPUT_LIMIT = 300
_FINDING_LIMIT = 2_000
_COMMAND_LIMIT = 1_000
_MOST_RESULTS = 200
_FEW_ACTIONS = 10
_NO_RESULT = "(no result was seen: its outcome is unknown)"
_NOT_RUN = "(it waited for a person's approval and has not run)"

Mask = Callable[[str], str]


def build(
    line: Sequence[Session],
    events: Sequence[Event],
    *,
    recommended_tier: int,
    why: Reason,
    cooldown_state: Mapping[str, object],
    masker: Masker,
    now: datetime,
    calls: Sequence[RecordedCall] = (),
    cycle_id: int | None = None,
) -> Handoff:
    """The handoff from the last record of ``line``, which runs from the root of the work to the record handed off.

    ``calls`` are what the guard decided on: what the stream lost may be known from there. ``cycle_id`` is the cycle
    that it is for, where that is not the cycle it comes from.

    Masked as if the records were not: they can be older than a secret's name in the configuration.
    """
    mask = masker.text
    last = line[-1]
    reports = [s.report for s in line if s.report is not None]
    newest = reports[-1] if reports else None
    tiers = {s.id: s.tier for s in line}
    return Handoff(
        schema_version=SCHEMA_VERSION,
        cycle_id=cycle_id or last.cycle_id,
        from_session=last.id,
        from_tier=last.tier,
        recommended_tier=recommended_tier,
        created_at=now,
        why_not_resumed=why.value,
        escalation_reason=mask(newest.escalation_reason) if newest else "",
        services_affected=tuple(mask(name) for name in newest.affected) if newest else (),
        check_results=_services(newest, mask) if newest else (),
        commands_run=(*_commands(events, calls, tiers, mask), *_unseen(calls, events, tiers, mask)),
        investigation_findings=_findings(line, events, tiers, mask),
        remediation_attempted=tuple(
            replace(action, service=mask(action.service), command=mask(action.command))
            for report in reports
            for action in report.actions
        ),
        cooldown_state=dict(cooldown_state),
    )


def encode(handoff: Handoff) -> str:
    """The handoff as JSON of at most 50,000 characters; what had to go is said in ``left_out``."""
    for smaller in _ever_smaller(handoff):
        text = _dump(smaller)
        if len(text) <= MAX_CHARACTERS:
            return text
    raise HandoffInvalid(f"The handoff of record {handoff.from_session} stays over {MAX_CHARACTERS} characters.")


def decode(text: str) -> Handoff:
    """A handoff from its JSON, checked; anything missing or of the wrong kind is an error that names it."""
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise HandoffInvalid(f"The handoff is not JSON: {error}.") from error
    if not isinstance(raw, dict):
        raise HandoffInvalid("The handoff is not a JSON object.")
    try:
        handoff = Handoff(
            schema_version=int(raw["schema_version"]),
            cycle_id=int(raw["cycle_id"]),
            from_session=int(raw["from_session"]),
            from_tier=int(raw["from_tier"]),
            recommended_tier=int(raw["recommended_tier"]),
            created_at=datetime.fromisoformat(raw["created_at"]),
            why_not_resumed=str(raw["why_not_resumed"]),
            escalation_reason=str(raw["escalation_reason"]),
            services_affected=tuple(str(name) for name in raw["services_affected"]),
            check_results=tuple(
                ServiceState(name=str(s["name"]), status=Health(s["status"]), detail=str(s["detail"]))
                for s in raw["check_results"]
            ),
            commands_run=tuple(Check(**c) for c in raw["commands_run"]),
            investigation_findings=tuple(str(f) for f in raw["investigation_findings"]),
            remediation_attempted=tuple(Action(**a) for a in raw["remediation_attempted"]),
            cooldown_state=dict(raw["cooldown_state"]),
            left_out=tuple(str(x) for x in raw["left_out"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise HandoffInvalid(f"The handoff does not fit its schema: {type(error).__name__} {error}.") from error
    check(handoff)
    return handoff


def check(handoff: Handoff) -> None:
    """Whether the handoff carries what the next tier needs."""
    if handoff.schema_version != SCHEMA_VERSION:
        raise HandoffInvalid(f"The handoff has schema version {handoff.schema_version}, not {SCHEMA_VERSION}.")
    if handoff.recommended_tier < handoff.from_tier:
        raise HandoffInvalid(f"The handoff goes down from tier {handoff.from_tier} to {handoff.recommended_tier}.")
    if not (handoff.escalation_reason or handoff.commands_run or handoff.investigation_findings):
        raise HandoffInvalid(
            f"Nothing of record {handoff.from_session} was recorded that could be handed on.",
            remedy="Start the cycle again from tier 1.",
        )


def path_for(directory: Path, handoff: Handoff) -> Path:
    """Where the file of this handoff belongs."""
    return directory / f"cycle-{handoff.cycle_id}-from-{handoff.from_session}-to-tier-{handoff.recommended_tier}.json"


def write(directory: Path, handoff: Handoff) -> Path:
    """Write the file durably (temporary name, fsync, rename, private) and prove that it reads back."""
    check(handoff)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = path_for(directory, handoff)
    write_durably(target, encode(handoff))
    decode(target.read_text(encoding="utf-8"))
    return target


def for_prompt(text: str) -> str:
    """The JSON with nothing in it that could close the element it is put into."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def _services(report: Report, mask: Mask) -> tuple[ServiceState, ...]:
    return tuple(replace(s, name=mask(s.name), detail=mask(s.detail)) for s in report.services)


def _commands(
    events: Sequence[Event], calls: Sequence[RecordedCall], tiers: Mapping[int, int], mask: Mask
) -> tuple[Check, ...]:
    deferred = {call.tool_use_id for call in calls if call.verdict is Verdict.DEFER}
    let_through = {call.tool_use_id for call in calls if call.verdict is Verdict.ALLOW}
    results = {
        str(e.data.get("tool_use_id")): e for e in events if e.kind is EventKind.TOOL_RESULT and e.session_id in tiers
    }
    newest: dict[tuple[str, str], Check] = {}
    for event in events:
        tier = tiers.get(event.session_id) if event.session_id is not None else None
        if event.kind is not EventKind.TOOL_USE or tier is None:
            continue
        tool_use_id = str(event.data.get("tool_use_id"))
        result = results.get(tool_use_id)
        without_result = _NOT_RUN if tool_use_id in deferred - let_through else _NO_RESULT
        tool = str(event.data.get("name"))
        # An earlier look at the same thing is stale: only the newest answer travels.
        newest.pop((tool, event.text), None)
        newest[(tool, event.text)] = Check(
            tier=tier,
            tool=tool,
            command=_short(mask(event.text), _COMMAND_LIMIT),
            output=_short(mask(result.text), _OUTPUT_LIMIT) if result else without_result,
            failed=result is None or bool(result.data.get("is_error")),
        )
    return tuple(newest.values())


def _unseen(
    calls: Sequence[RecordedCall], events: Sequence[Event], tiers: Mapping[int, int], mask: Mask
) -> tuple[Check, ...]:
    """The calls that were let through and of which the stream, cut off as it was, says nothing."""
    seen = {str(e.data.get("tool_use_id")) for e in events if e.kind is EventKind.TOOL_USE}
    return tuple(
        Check(
            tier=tiers[call.session_id],
            tool=call.tool,
            command=_short(mask(call.text), _COMMAND_LIMIT),
            output=_NO_RESULT,
            failed=True,
        )
        for call in calls
        if call.verdict is Verdict.ALLOW and call.tool_use_id not in seen and call.session_id in tiers
    )


def _findings(
    line: Sequence[Session], events: Sequence[Event], tiers: Mapping[int, int], mask: Mask
) -> tuple[str, ...]:
    found: list[str] = []
    for session in line:
        said = [e.text for e in events if e.kind is EventKind.TEXT and e.session_id == session.id]
        found.extend(f"tier {tiers[session.id]}: {_short(mask(text), _FINDING_LIMIT)}" for text in said if text.strip())
        if session.report is not None:
            found.append(f"tier {session.tier} reported: {_short(mask(session.report.summary), _FINDING_LIMIT)}")
            for event in session.report.events:
                said_of = ": ".join(filter(None, (event.service, event.message)))
                found.append(f"tier {session.tier} {event.level.value}: {mask(said_of)}")
    return tuple(found)


def _ever_smaller(handoff: Handoff) -> Sequence[Handoff]:
    """The handoff whole, then with the least useful part gone, then the next: healthy results go first."""
    steps = [handoff]

    def cut(what: str, **changes: object) -> None:
        before = steps[-1]
        steps.append(replace(before, left_out=(*before.left_out, what), **changes))  # type: ignore[arg-type]

    healthy = [s for s in handoff.check_results if s.status is Health.HEALTHY]
    if healthy:
        unhealthy = tuple(s for s in handoff.check_results if s.status is not Health.HEALTHY)
        cut(f"{len(healthy)} healthy check results", check_results=unhealthy)
    tight = tuple(replace(c, output=_short(c.output, _TIGHT_OUTPUT_LIMIT)) for c in handoff.commands_run)
    cut(f"command output beyond {_TIGHT_OUTPUT_LIMIT} characters", commands_run=tight)
    for keep in (40, 15, 5):
        if len(tight) > keep:
            cut(f"all but the newest {keep} commands", commands_run=tight[-keep:])
    findings = tuple(_short(f, _TIGHT_OUTPUT_LIMIT) for f in handoff.investigation_findings)
    cut(f"findings beyond {_TIGHT_OUTPUT_LIMIT} characters", investigation_findings=findings)
    for keep in (40, 10):
        if len(findings) > keep:
            cut(f"all but the newest {keep} findings", investigation_findings=findings[-keep:])
    results = steps[-1].check_results
    if len(results) > _MOST_RESULTS:
        cut(f"{len(results) - _MOST_RESULTS} check results that are not healthy", check_results=results[:_MOST_RESULTS])
    results = steps[-1].check_results
    cut(
        "details of check results and of actions",
        check_results=tuple(replace(s, detail=_short(s.detail, 80)) for s in results),
        remediation_attempted=tuple(
            replace(a, command=_short(a.command, 80)) for a in handoff.remediation_attempted[-50:]
        ),
        escalation_reason=_short(handoff.escalation_reason, _FINDING_LIMIT),
        services_affected=tuple(_short(s, 80) for s in handoff.services_affected[:_MOST_RESULTS]),
    )
    # When very much is down, what is down counts and not the words about it.
    cut(
        f"whatever check results say beside their status, and all but the newest {_FEW_ACTIONS} actions",
        check_results=tuple(replace(s, detail="") for s in results),
        remediation_attempted=steps[-1].remediation_attempted[-_FEW_ACTIONS:],
    )
    return steps


def _dump(handoff: Handoff) -> str:
    document = asdict(handoff)
    document["created_at"] = timestamp(handoff.created_at)
    return json.dumps(document, ensure_ascii=False, indent=1)


def _short(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n… {len(text) - head - tail} characters left out …\n{text[-tail:]}"
