"""The health of services: streaks over cycles, and that two healthy cycles in a row clear a cooldown."""

from datetime import timedelta

import pytest

from supervisor.decide.health import Found
from supervisor.model.cycle import CycleStatus
from supervisor.model.guarding import Granted, Refused, ServiceRecord
from supervisor.model.permission import ActionKind
from supervisor.model.report import Health
from supervisor.model.session import Session
from supervisor.store import Store
from tests.store.ledger import LIMITS, redeploy, restart, slots
from tests.store.store_examples import NOON, add_session, begin, minutes

GOOD, BAD = Health.HEALTHY, Health.DOWN


def said(services: dict[str, Health]) -> dict[str, Found]:
    """What a cycle says in which only one tier ran."""
    return {name: Found(status=status, well_throughout=status is GOOD) for name, status in services.items()}


def streak(store: Store, name: str = "web") -> int:
    return next(service.healthy_streak for service in store.services(LIMITS) if service.name == name)


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        pytest.param([(1, GOOD)], 1, id="healthy once"),
        pytest.param([(1, GOOD), (2, GOOD), (5, GOOD)], 3, id="healthy in a row"),
        pytest.param([(1, GOOD), (2, GOOD), (3, BAD)], 0, id="then down"),
        pytest.param([(1, GOOD), (2, Health.DEGRADED), (3, GOOD)], 1, id="degraded between"),
        pytest.param([(1, GOOD), (2, Health.UNREACHABLE)], 0, id="unreachable"),
        pytest.param([(1, GOOD), (1, GOOD)], 1, id="one cycle twice"),
        pytest.param([(1, GOOD), (2, BAD), (2, GOOD)], 0, id="down, then healthy in one cycle"),
        pytest.param([(1, GOOD), (2, GOOD), (2, BAD)], 0, id="healthy, then down in one cycle"),
        pytest.param([(2, GOOD), (1, GOOD)], 1, id="an earlier cycle reports late"),
        pytest.param([(2, GOOD), (1, BAD), (2, GOOD)], 0, id="an earlier cycle found it down"),
    ],
)
def test_a_streak_counts_healthy_cycles_in_a_row(
    store: Store, reports: list[tuple[int, Health]], expected: int
) -> None:
    for cycle, status in reports:
        store.record_health(cycle, said({"web": status}), NOON)
    assert streak(store) == expected


def test_a_cycle_that_put_a_service_right_ends_its_streak_and_leaves_it_healthy(store: Store) -> None:
    store.record_health(1, said({"web": GOOD}), NOON)
    store.record_health(2, {"web": Found(status=GOOD, well_throughout=False)}, NOON)
    [web] = store.services(LIMITS)
    assert (web.status, web.healthy_streak, web.last_cycle) == (GOOD, 0, 2)


def test_a_service_is_listed_with_its_status_and_since_when(store: Store) -> None:
    for cycle, status in enumerate([BAD, GOOD, GOOD], start=1):
        store.record_health(cycle, said({"web": status, "db": GOOD}), NOON + minutes(cycle))
    db, web = store.services(LIMITS)
    assert (db.name, db.status, db.healthy_streak, db.since, db.last_cycle) == ("db", GOOD, 3, NOON + minutes(1), 3)
    assert (web.name, web.status, web.healthy_streak, web.since, web.last_cycle) == (
        "web",
        GOOD,
        2,
        NOON + minutes(2),
        3,
    )
    assert [(use.kind, use.used, use.left, use.next_at) for use in web.cooldowns] == [
        (ActionKind.RESTART, 0, 2, None),
        (ActionKind.REDEPLOY, 0, 1, None),
    ]


def test_a_cycle_that_reports_nothing_changes_nothing(store: Store) -> None:
    assert store.record_health(1, {}, NOON) == ()
    assert store.services(LIMITS) == []


@pytest.fixture
def session(store: Store) -> Session:
    return add_session(store, begin(store))


def take_both(store: Store, session: Session, *, call: str = "toolu_1") -> object:
    return store.take_slot(
        actions=[*redeploy("web"), *restart("web")], limits=LIMITS, session=session.id, tool_use_id=call
    )


def take_one(store: Store, session: Session, call: str) -> object:
    return store.take_slot(actions=redeploy("web"), limits=LIMITS, session=session.id, tool_use_id=call)


def test_a_service_that_was_acted_on_is_listed_before_anyone_reported_it(
    store: Store, session: Session, url: str
) -> None:
    take_both(store, session)
    (web,) = store.services(LIMITS)
    assert (web.status, web.since, web.last_cycle) == (None, None, session.cycle_id)
    assert [(use.kind, use.used, use.next_at) for use in web.cooldowns] == [
        (ActionKind.RESTART, 1, None),
        (ActionKind.REDEPLOY, 1, slots(url)[0][2] + timedelta(hours=24)),
    ]


def test_two_healthy_cycles_in_a_row_clear_a_cooldown_which_stays_on_record(
    store: Store, session: Session, url: str
) -> None:
    take_both(store, session)
    first = session.cycle_id + 1
    assert store.record_health(first, said({"web": GOOD, "db": GOOD}), NOON) == ()
    assert isinstance(take_one(store, session, "toolu_2"), Refused)
    assert store.record_health(first + 1, said({"web": GOOD, "db": GOOD}), NOON) == ("web",)
    assert [cleared for *_, cleared in slots(url)] == [NOON, NOON]
    assert store.cooldowns(LIMITS) == []
    assert take_one(store, session, "toolu_3") == Granted()
    assert len(slots(url)) == 3


def test_trouble_between_two_healthy_cycles_keeps_the_cooldown(store: Store, session: Session) -> None:
    take_both(store, session)
    for offset, status in enumerate([GOOD, Health.DEGRADED, GOOD], start=1):
        assert store.record_health(session.cycle_id + offset, said({"web": status}), NOON) == ()
    assert store.record_health(session.cycle_id + 4, said({"web": GOOD}), NOON) == ("web",)


def test_good_health_before_an_action_and_in_its_own_cycle_does_not_clear_it(store: Store) -> None:
    for cycle in range(1, 6):
        store.record_health(cycle, said({"web": GOOD}), NOON)
    for _ in range(5):
        begun = begin(store)
        store.finish_cycle(begun.id, status=CycleStatus.HEALTHY, reason=None, detail=None, now=NOON)
    session = add_session(store, begin(store))
    assert session.cycle_id == 6
    take_both(store, session)
    assert streak(store) == 0
    for cycle, cleared in ((6, ()), (7, ()), (8, ("web",))):
        assert store.record_health(cycle, said({"web": GOOD}), NOON) == cleared


def test_a_refused_action_leaves_the_streak_alone(store: Store, session: Session) -> None:
    take_both(store, session)
    store.record_health(session.cycle_id + 1, said({"web": GOOD}), NOON)
    assert isinstance(take_both(store, session, call="toolu_2"), Refused)
    assert streak(store) == 1


def test_a_name_that_no_database_can_hold_is_one_service(store: Store) -> None:
    for cycle in (1, 2):
        store.record_health(cycle, said({"w\x00b": GOOD}), NOON)
    (service,) = store.services({})
    assert service == ServiceRecord(name="w␀b", status=GOOD, healthy_streak=2, since=NOON, last_cycle=2)
