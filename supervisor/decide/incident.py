"""Decide what a cycle means for the incidents of its schedule. Pure. Called from ``store`` and ``climb.incident``.

Invariants:
- trouble with the same service never has two incidents at once;
- an incident closes with the second cycle in a row that found none of its services in trouble, never earlier;
- trouble that comes back soon after opens its incident again, so a service that comes and goes has one and not many;
- a cycle counts once, however often it is judged, and one that is judged late never brings an end nearer.
"""

import datetime as dt
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from supervisor.model.cycle import Chain, CycleStatus
from supervisor.model.incident import Incident

CLOSES_AFTER_CYCLES = 2

_TELLS_NOTHING = frozenset({CycleStatus.PAUSED, CycleStatus.SKIPPED})
_NAME_LIMIT = 200
_NAMES_SHOWN = 10


class What(StrEnum):
    """What becomes of an incident."""

    OPENED = "opened"
    REOPENED = "reopened"
    UPDATED = "updated"
    RECOVERING = "recovering"
    CLOSED = "closed"


class Why(StrEnum):
    """Why a cycle belongs to an incident, or to none."""

    JUDGED_BEFORE = "judged_before"
    NO_TROUBLE = "no_trouble"
    SAME_SERVICES = "same_services"
    CAME_BACK = "came_back"
    NEW_TROUBLE = "new_trouble"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One incident after a cycle. ``incident`` is how it was before: ``None`` for one that is yet to be made."""

    what: What
    incident: Incident | None
    services: tuple[str, ...]
    healthy_streak: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a cycle changes. ``joined`` is the one among the changes whose incident the cycle now belongs to."""

    why: Why
    changes: tuple[Change, ...] = ()
    joined: Change | None = None


def trouble_of(chain: Chain) -> frozenset[str] | None:
    """The services that any report of a cycle called not healthy. ``None``: the cycle tells nothing of them."""
    reports = [s.report for s in chain.sessions if s.report is not None]
    if not reports or chain.cycle.dry_run or chain.cycle.status in _TELLS_NOTHING:
        return None
    named = frozenset(
        name for report in reports for given in report.affected if (name := given.strip().lower()[:_NAME_LIMIT])
    )
    if not named and reports[-1].escalation_needed:
        # Something is wrong and nobody said with what: that is neither this trouble nor good health.
        return None
    return named


def judge(
    trouble: Collection[str],
    *,
    cycle: int,
    belongs_to: int | None,
    opened: Sequence[Incident],
    closed: Sequence[Incident],
    reopen_within: dt.timedelta,
    now: dt.datetime,
) -> Judgement:
    """What a cycle that found this trouble means for the incidents of its schedule, open and lately closed.

    ``belongs_to`` is the incident the cycle has been given already, if any.
    """
    if belongs_to is not None:
        return Judgement(why=Why.JUDGED_BEFORE)
    found = frozenset(trouble)
    oldest_first = sorted(opened, key=lambda incident: (incident.opened_at, incident.id))
    same = [incident for incident in oldest_first if found.intersection(incident.services)]
    others = [incident for incident in oldest_first if incident not in same]
    calmer = tuple(_calmer(incident) for incident in others if cycle > incident.last_cycle)
    if not found:
        return Judgement(why=Why.NO_TROUBLE, changes=calmer)
    if same:
        taken = {service for incident in same for service in incident.services}
        first, *further = same
        joined = Change(what=What.UPDATED, incident=first, services=_union(first.services, found - taken))
        updated = [Change(what=What.UPDATED, incident=incident, services=incident.services) for incident in further]
        return Judgement(why=Why.SAME_SERVICES, changes=(joined, *updated, *calmer), joined=joined)
    back = _came_back(found, closed, reopen_within, now)
    if back is not None:
        joined = Change(what=What.REOPENED, incident=back, services=_union(back.services, found))
        return Judgement(why=Why.CAME_BACK, changes=(joined, *calmer), joined=joined)
    joined = Change(what=What.OPENED, incident=None, services=_union((), found))
    return Judgement(why=Why.NEW_TROUBLE, changes=(joined, *calmer), joined=joined)


def in_words(what: What, incident: Incident) -> str:
    """What became of an incident, for a cycle's record."""
    services = listed(incident.services)
    match what:
        case What.OPENED:
            return f"Incident {incident.id} opened: {services}."
        case What.REOPENED:
            return f"Incident {incident.id} opened again, because its trouble came back: {services}."
        case What.UPDATED:
            return f"The trouble of incident {incident.id} is still there: {services}."
        case What.RECOVERING:
            return f"No trouble of incident {incident.id} was found: {services}."
        case What.CLOSED:
            return f"Incident {incident.id} closed after {CLOSES_AFTER_CYCLES} cycles without its trouble: {services}."


def listed(services: Sequence[str]) -> str:
    """Names of services in one line, however many there are."""
    more = len(services) - _NAMES_SHOWN
    return ", ".join(services[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _calmer(incident: Incident) -> Change:
    streak = incident.healthy_streak + 1
    what = What.CLOSED if streak >= CLOSES_AFTER_CYCLES else What.RECOVERING
    return Change(what=what, incident=incident, services=incident.services, healthy_streak=streak)


def _came_back(
    found: frozenset[str], closed: Sequence[Incident], within: dt.timedelta, now: dt.datetime
) -> Incident | None:
    """The incident that was closed last, of those with one of these services that were closed lately."""
    lately = [
        (incident.closed_at, incident.id, incident)
        for incident in closed
        # A time that lies ahead is a clock that was put back: lately, too.
        if incident.closed_at is not None
        and now - incident.closed_at < within
        and found.intersection(incident.services)
    ]
    return max(lately, key=lambda one: one[:2])[2] if lately else None


def _union(services: Sequence[str], more: Iterable[str]) -> tuple[str, ...]:
    """The services it had, in their order, and those that join."""
    return (*services, *sorted(set(more).difference(services)))
