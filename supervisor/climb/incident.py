"""Settle which incident a cycle belongs to, and what a later cycle can go on from. Reads and writes the store.

Called from ``climb.cycle``: ``settle_incident`` at a cycle's end, the others before the first tier of the next one.
"""

import datetime as dt
import logging
from dataclasses import replace

from supervisor.climb.ladder import Ladder
from supervisor.decide.incident import What, trouble_of
from supervisor.model.cycle import Chain, CycleStatus
from supervisor.model.incident import Incident, IncidentStatus
from supervisor.model.session import Session, SessionStatus
from supervisor.prompts import Delta

logger = logging.getLogger(__name__)

FIRST_TIER = 1

_CYCLES_LOOKED_AT = 20
_ACTIONS_TOLD = 10
_SERVICES_TOLD = 5
_TEXT_LIMIT = 200
_NAME_LIMIT = 40


def settle_incident(ladder: Ladder, chain: Chain) -> Incident | None:
    """Judge a cycle that has ended, and keep its sessions for the incident it belongs to. Doing it again is harmless.

    Returns that incident: ``None`` for a cycle that found no trouble, or tells nothing.
    """
    trouble = trouble_of(chain)
    if trouble is None:
        return None
    cycle, now = chain.cycle, ladder.clock()
    reopen_within = dt.timedelta(minutes=ladder.settings.continuity.reopen_minutes)
    judged = ladder.store.judge_cycle(cycle.id, trouble=trouble, reopen_within=reopen_within, now=now)
    for what, incident in judged.changed:
        _log(what, incident, cycle.id)
    if judged.incident is not None and judged.incident.status is IncidentStatus.OPEN:
        for session in _worth_keeping(chain):
            ladder.store.keep_session(cycle.schedule, judged.incident.id, session.tier, session.id, now)
    return judged.incident


def open_incident(ladder: Ladder, schedule: str) -> Incident | None:
    """The incident of a schedule that the next cycle will most likely meet: the one that was in trouble last."""
    return next(iter(ladder.store.open_incidents(schedule)), None)


def earlier_session(ladder: Ladder, schedule: str) -> Session | None:
    """The session the first tier of the next cycle may go on in: the one it had of the incident that is still open."""
    incident = open_incident(ladder, schedule)
    return None if incident is None else ladder.store.kept_session(schedule, incident.id, FIRST_TIER)


def delta(ladder: Ladder, incident: Incident, since: Session) -> Delta:
    """What a tier has to know that goes on in its session ``since``. Masked as if the records were not, and short."""
    mask = ladder.settings.masker().text
    chains = [chain for chain in ladder.store.chains(_CYCLES_LOOKED_AT, schedule=incident.schedule) if _ran(chain)]
    last = chains[0].cycle if chains else None
    reports = [
        session.report
        for chain in reversed(chains)
        for session in chain.sessions
        if session.report is not None and session.id > since.id and session.tier > since.tier
    ]
    actions = [
        replace(
            action,
            service=_short(mask(action.service), _NAME_LIMIT),
            kind=_short(mask(action.kind), _NAME_LIMIT),
            command=_short(mask(action.command), _TEXT_LIMIT),
        )
        for report in reports
        for action in report.actions
    ]
    return Delta(
        services=tuple(_short(mask(name), _NAME_LIMIT) for name in incident.services[:_SERVICES_TOLD]),
        opened_at=incident.opened_at,
        checked_at=since.ended_at or since.created_at,
        cycles=ladder.store.incident_totals([incident.id])[incident.id].cycles,
        last_cycle="unknown" if last is None else f"{last.status.value}" + (f" ({last.reason})" if last.reason else ""),
        actions=tuple(actions[-_ACTIONS_TOLD:]),
        left_out=max(0, len(actions) - _ACTIONS_TOLD),
        summary=_short(mask(reports[-1].summary), _TEXT_LIMIT) if reports else "",
    )


def _worth_keeping(chain: Chain) -> list[Session]:
    """The newest session of each tier that has done its work and still stands."""
    done = (s for s in chain.sessions if s.status is SessionStatus.COMPLETED and s.session_id and not s.epoch)
    return list({session.tier: session for session in done}.values())


def _ran(chain: Chain) -> bool:
    over = chain.cycle.status not in (CycleStatus.RUNNING, CycleStatus.SKIPPED, CycleStatus.PAUSED)
    return over and not chain.cycle.dry_run


def _log(what: What, incident: Incident, cycle: int) -> None:
    about = {"incident": incident.id, "what": what.value, "cycle": cycle, "services": list(incident.services)}
    logger.info("Incident changed", extra=about)


def _short(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
