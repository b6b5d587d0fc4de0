"""What a cycle means for incidents: they open, last, close after two cycles, and come back instead of multiplying."""

import datetime as dt
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from make import FINE, NEEDED, NOW, a_chain, a_session

from supervisor.decide.incident import Change, Judgement, What, Why, in_words, judge, listed, trouble_of
from supervisor.model.cycle import CycleStatus
from supervisor.model.incident import Incident, IncidentStatus
from supervisor.model.report import Health, Report, ServiceState
from supervisor.model.session import SessionStatus

WINDOW = dt.timedelta(hours=4)


def an_incident(number: int = 1, *services: str, **changes: object) -> Incident:
    base = Incident(
        id=number,
        schedule="default",
        status=IncidentStatus.OPEN,
        services=services or ("web",),
        opened_at=NOW - dt.timedelta(hours=10 - number),
        updated_at=NOW - dt.timedelta(minutes=15),
        last_cycle=10,
    )
    return replace(base, **changes)


def closed(number: int, *services: str, ago: dt.timedelta) -> Incident:
    return an_incident(number, *services, status=IncidentStatus.CLOSED, closed_at=NOW - ago, healthy_streak=2)


def judged(
    *trouble: str, opened: tuple[Incident, ...] = (), past: tuple[Incident, ...] = (), **changes: object
) -> Judgement:
    given = {"cycle": 11, "belongs_to": None, "reopen_within": WINDOW, "now": NOW} | changes
    return judge(trouble, opened=opened, closed=past, **given)


def shown(judgement: Judgement) -> list[tuple[str, int | None, tuple[str, ...], int]]:
    return [
        (change.what.value, change.incident.id if change.incident else None, change.services, change.healthy_streak)
        for change in judgement.changes
    ]


MINUTE = dt.timedelta(minutes=1)
WEB, DB = an_incident(1, "web"), an_incident(2, "db")

TABLE = {
    "nothing_wrong_and_nothing_open": ((), {}, Why.NO_TROUBLE, []),
    "new_trouble": (("web", "db"), {}, Why.NEW_TROUBLE, [("opened", None, ("db", "web"), 0)]),
    "the_same_service": (("web",), {"opened": (WEB,)}, Why.SAME_SERVICES, [("updated", 1, ("web",), 0)]),
    "a_further_service_joins": (
        ("web", "cache"),
        {"opened": (WEB,)},
        Why.SAME_SERVICES,
        [("updated", 1, ("web", "cache"), 0)],
    ),
    "trouble_ends_a_streak": (
        ("web",),
        {"opened": (replace(WEB, healthy_streak=1),)},
        Why.SAME_SERVICES,
        [("updated", 1, ("web",), 0)],
    ),
    "one_cycle_without_it": ((), {"opened": (WEB,)}, Why.NO_TROUBLE, [("recovering", 1, ("web",), 1)]),
    "two_cycles_without_it": (
        (),
        {"opened": (replace(WEB, healthy_streak=1),)},
        Why.NO_TROUBLE,
        [("closed", 1, ("web",), 2)],
    ),
    "other_trouble_counts_as_a_cycle_without_it": (
        ("db",),
        {"opened": (replace(WEB, healthy_streak=1),)},
        Why.NEW_TROUBLE,
        [("opened", None, ("db",), 0), ("closed", 1, ("web",), 2)],
    ),
    "the_oldest_of_two_takes_what_nobody_has": (
        ("cache", "db", "web"),
        {"opened": (DB, WEB)},
        Why.SAME_SERVICES,
        [("updated", 1, ("web", "cache"), 0), ("updated", 2, ("db",), 0)],
    ),
    "one_of_two_goes_on": (
        ("db",),
        {"opened": (WEB, DB)},
        Why.SAME_SERVICES,
        [("updated", 2, ("db",), 0), ("recovering", 1, ("web",), 1)],
    ),
    "back_within_the_time": (
        ("web", "db"),
        {"past": (closed(1, "web", "old", ago=WINDOW - MINUTE),)},
        Why.CAME_BACK,
        [("reopened", 1, ("web", "old", "db"), 0)],
    ),
    "back_too_late": (
        ("web",),
        {"past": (closed(1, "web", ago=WINDOW),)},
        Why.NEW_TROUBLE,
        [("opened", None, ("web",), 0)],
    ),
    "back_by_a_clock_that_was_put_back": (
        ("web",),
        {"past": (closed(1, "web", ago=-WINDOW),)},
        Why.CAME_BACK,
        [("reopened", 1, ("web",), 0)],
    ),
    "no_time_to_come_back_in": (
        ("web",),
        {"past": (closed(1, "web", ago=MINUTE),), "reopen_within": dt.timedelta(0)},
        Why.NEW_TROUBLE,
        [("opened", None, ("web",), 0)],
    ),
    "other_trouble_than_the_closed_one_s": (
        ("db",),
        {"past": (closed(1, "web", ago=MINUTE),)},
        Why.NEW_TROUBLE,
        [("opened", None, ("db",), 0)],
    ),
    "the_last_closed_of_two_comes_back": (
        ("web",),
        {"past": (closed(3, "web", ago=2 * MINUTE), closed(2, "web", ago=MINUTE), closed(4, "db", ago=MINUTE / 2))},
        Why.CAME_BACK,
        [("reopened", 2, ("web",), 0)],
    ),
    "an_open_one_before_a_closed_one": (
        ("web", "db"),
        {"opened": (WEB,), "past": (closed(2, "db", ago=MINUTE),)},
        Why.SAME_SERVICES,
        [("updated", 1, ("web", "db"), 0)],
    ),
    "judged_before": (("web",), {"opened": (WEB,), "belongs_to": 1}, Why.JUDGED_BEFORE, []),
    "counted_before": ((), {"opened": (replace(WEB, last_cycle=11),)}, Why.NO_TROUBLE, []),
    "late_good_health_brings_no_end_nearer": (
        (),
        {"opened": (replace(WEB, last_cycle=12, healthy_streak=1),)},
        Why.NO_TROUBLE,
        [],
    ),
    "late_trouble_ends_a_streak": (
        ("web",),
        {"opened": (replace(WEB, last_cycle=12, healthy_streak=1),)},
        Why.SAME_SERVICES,
        [("updated", 1, ("web",), 0)],
    ),
}


@pytest.mark.parametrize(("trouble", "facts", "why", "changes"), TABLE.values(), ids=TABLE.keys())
def test_a_cycle_is_judged(trouble, facts, why, changes):
    judgement = judged(*trouble, **facts)

    assert (judgement.why, shown(judgement)) == (why, changes)


@pytest.mark.parametrize(("trouble", "facts", "why", "changes"), TABLE.values(), ids=TABLE.keys())
def test_a_cycle_joins_the_incident_that_is_named_first_if_it_has_trouble(trouble, facts, why, changes):
    judgement = judged(*trouble, **facts)

    has_trouble = bool(trouble) and why is not Why.JUDGED_BEFORE
    assert judgement.joined == (judgement.changes[0] if has_trouble else None)


class Schedule:
    """The incidents of one schedule, kept the way the store keeps them."""

    def __init__(self) -> None:
        self.incidents: dict[int, Incident] = {}
        self.cycle = 0
        self.now = NOW
        self.belongs: dict[int, int | None] = {}

    def ends(self, trouble: frozenset[str], *, cycle: int | None = None) -> Judgement:
        if cycle is None:
            self.cycle += 1
            self.now += 15 * MINUTE
        number = cycle or self.cycle
        judgement = judge(
            trouble,
            cycle=number,
            belongs_to=self.belongs.get(number),
            opened=self.those(IncidentStatus.OPEN),
            closed=self.those(IncidentStatus.CLOSED),
            reopen_within=WINDOW,
            now=self.now,
        )
        after = {change: self.apply(change, number) for change in judgement.changes}
        if judgement.joined is not None:
            self.belongs[number] = after[judgement.joined].id
        return judgement

    def apply(self, change: Change, cycle: int) -> Incident:
        before = change.incident or an_incident(len(self.incidents) + 1, opened_at=self.now, last_cycle=0)
        status = IncidentStatus.CLOSED if change.what is What.CLOSED else IncidentStatus.OPEN
        after = replace(
            before,
            status=status,
            services=change.services,
            healthy_streak=change.healthy_streak,
            last_cycle=max(cycle, before.last_cycle),
            closed_at=self.now if status is IncidentStatus.CLOSED else None,
        )
        self.incidents[after.id] = after
        return after

    def those(self, status: IncidentStatus) -> list[Incident]:
        return [incident for incident in self.incidents.values() if incident.status is status]


SERVICES = st.frozensets(st.sampled_from(["web", "db", "cache", "mail"]))
CYCLES = st.lists(SERVICES, min_size=1, max_size=40)


@given(CYCLES)
def test_no_two_open_incidents_ever_share_a_service_and_all_trouble_has_one(cycles):
    schedule = Schedule()
    for trouble in cycles:
        schedule.ends(trouble)
        held = [service for incident in schedule.those(IncidentStatus.OPEN) for service in incident.services]
        assert len(held) == len(set(held))
        assert trouble <= set(held)
        assert (schedule.belongs.get(schedule.cycle) is not None) == bool(trouble)


@given(CYCLES)
def test_an_incident_closes_with_exactly_the_second_cycle_that_is_free_of_its_services(cycles):
    schedule, free = Schedule(), {}
    for trouble in cycles:
        before = {incident.id: set(incident.services) for incident in schedule.those(IncidentStatus.OPEN)}
        judgement = schedule.ends(trouble)
        free = {number: free.get(number, 0) + 1 if not trouble & held else 0 for number, held in before.items()}
        ended = {change.incident.id for change in judgement.changes if change.what is What.CLOSED}
        assert ended == {number for number, count in free.items() if count == 2}


@given(st.lists(st.integers(min_value=1, max_value=15), min_size=1, max_size=20))
def test_a_service_that_comes_and_goes_within_the_time_has_one_incident(pauses):
    schedule = Schedule()
    schedule.ends(frozenset({"web"}))
    for healthy_cycles in pauses:
        for _ in range(healthy_cycles):
            schedule.ends(frozenset())
        schedule.ends(frozenset({"web"}))
    assert set(schedule.incidents) == {1}


@given(CYCLES, st.data())
def test_judging_cycles_again_changes_nothing(cycles, data):
    schedule = Schedule()
    for trouble in cycles:
        schedule.ends(trouble)
        before, belongs = dict(schedule.incidents), dict(schedule.belongs)
        for _ in range(data.draw(st.integers(min_value=0, max_value=2))):
            assert schedule.ends(trouble, cycle=schedule.cycle).changes == ()
        assert (schedule.incidents, schedule.belongs) == (before, belongs)


def reported(*services: tuple[str, Health], needed: bool = False) -> Report:
    states = tuple(ServiceState(name=name, status=status) for name, status in services)
    return Report(summary="s", escalation_needed=needed, escalation_reason="r" * needed, services=states)


DOWN, DEGRADED, GOOD = Health.DOWN, Health.DEGRADED, Health.HEALTHY
TOLD = {
    "all_is_well": (a_chain(a_session(report=FINE)), set()),
    "found_by_the_first_tier_and_mended_by_the_second": (
        a_chain(a_session(report=NEEDED), a_session(id=2, tier=2, report=FINE), status=CycleStatus.RESOLVED),
        {"web"},
    ),
    "every_report_counts": (
        a_chain(a_session(report=reported(("web", DOWN))), a_session(id=2, report=reported(("db", DEGRADED)))),
        {"web", "db"},
    ),
    "names_are_told_apart_by_letters_only": (
        a_chain(a_session(report=reported((" Web ", DOWN), ("WEB", DOWN), ("  ", DOWN)))),
        {"web"},
    ),
    "a_tier_above_failed": (
        a_chain(
            a_session(report=NEEDED),
            a_session(id=2, tier=2, report=None, status=SessionStatus.FAILED),
            status=CycleStatus.FAILED,
        ),
        {"web"},
    ),
    "no_report_at_all": (a_chain(a_session(report=None)), None),
    "nothing_ran": (a_chain(), None),
    "a_dry_run": (a_chain(a_session(report=NEEDED), dry_run=True), None),
    "a_paused_cycle": (a_chain(a_session(report=NEEDED), status=CycleStatus.PAUSED), None),
    "a_skipped_cycle": (a_chain(a_session(report=NEEDED), status=CycleStatus.SKIPPED), None),
    "trouble_with_no_name": (a_chain(a_session(report=reported(("web", GOOD), needed=True))), None),
    "trouble_with_no_name_that_a_higher_tier_ended": (
        a_chain(a_session(report=reported(needed=True)), a_session(id=2, tier=2, report=FINE)),
        set(),
    ),
}


@pytest.mark.parametrize(("chain", "expected"), TOLD.values(), ids=TOLD.keys())
def test_the_trouble_of_a_cycle_is_what_any_of_its_reports_calls_not_healthy(chain, expected):
    assert trouble_of(chain) == expected


@pytest.mark.parametrize("what", What)
def test_what_became_of_an_incident_is_one_sentence_with_its_number_and_services(what):
    said = in_words(what, an_incident(7, "web", "db"))

    assert "ncident 7 " in said
    assert said.endswith(": web, db.")


def test_many_services_are_named_in_short():
    assert listed([f"s{number}" for number in range(12)]) == "s0, s1, s2, s3, s4, s5, s6, s7, s8, s9 and 2 more"
