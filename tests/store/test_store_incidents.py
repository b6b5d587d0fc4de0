"""Incidents and kept sessions: judged once each, in one transaction, whoever else is at it."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from supervisor.decide.incident import What, Why
from supervisor.errors import NotFound
from supervisor.model.cycle import Cycle, CycleStatus, EventKind
from supervisor.model.incident import Incident, IncidentStatus, IncidentTotal
from supervisor.model.report import Level
from supervisor.model.session import CostBasis, Session
from supervisor.store import Store, open_store
from supervisor.store.incidents import Incidents, Judged
from supervisor.store.kept_sessions import KeptSessions
from tests.store.explain import statements, whole_tables_read
from tests.store.races import race_often
from tests.store.store_examples import NOON, add_session, begin, end, minutes

WINDOW = timedelta(hours=4)


def a_cycle(store: Store, schedule: str = "default") -> Cycle:
    """A cycle that has ended, so that the next one can begin."""
    begun = begin(store, schedule)
    return store.finish_cycle(begun.id, status=CycleStatus.RESOLVED, reason=None, detail=None, now=NOON)


def judge(store: Store, cycle: Cycle, *trouble: str, at: float = 0, within: timedelta = WINDOW) -> Judged:
    return store.judge_cycle(cycle.id, trouble=trouble, reopen_within=within, now=NOON + minutes(at))


def opened(store: Store, *services: str, schedule: str = "default") -> Incident:
    incident = judge(store, a_cycle(store, schedule), *(services or ("web",))).incident
    assert incident is not None
    return incident


def whats(judged: Judged) -> list[tuple[What, int]]:
    return [(what, incident.id) for what, incident in judged.changed]


def told(store: Store, cycle: Cycle) -> list[tuple[EventKind, Level, object, object]]:
    return [(e.kind, e.level, e.data["incident"], e.data["what"]) for e in store.events(cycle_id=cycle.id)]


def test_trouble_opens_an_incident_that_its_cycle_belongs_to(store: Store) -> None:
    cycle = a_cycle(store)
    judged = judge(store, cycle, "web", "db", at=5)

    assert judged.incident == Incident(
        id=1,
        schedule="default",
        status=IncidentStatus.OPEN,
        services=("db", "web"),
        opened_at=NOON + minutes(5),
        updated_at=NOON + minutes(5),
        last_cycle=cycle.id,
    )
    assert (judged.why, judged.changed) == (Why.NEW_TROUBLE, ((What.OPENED, judged.incident),))
    assert store.incident(1) == judged.incident
    assert store.cycle(cycle.id).incident == 1
    assert told(store, cycle) == [(EventKind.NOTICE, Level.WARNING, 1, "opened")]


def test_an_incident_lasts_over_cycles_and_closes_after_two_without_its_trouble(store: Store) -> None:
    cycles = [a_cycle(store) for _ in range(4)]
    found = [("web",), ("web", "cache"), (), ()]
    after = [judge(store, cycle, *trouble, at=n) for n, (cycle, trouble) in enumerate(zip(cycles, found, strict=True))]

    assert [whats(judged) for judged in after] == [
        [(What.OPENED, 1)],
        [(What.UPDATED, 1)],
        [(What.RECOVERING, 1)],
        [(What.CLOSED, 1)],
    ]
    ended = store.incident(1)
    assert (ended.status, ended.services, ended.healthy_streak) == (IncidentStatus.CLOSED, ("web", "cache"), 2)
    assert (ended.opened_at, ended.updated_at, ended.closed_at) == (NOON, NOON + minutes(3), NOON + minutes(3))
    assert ended.last_cycle == cycles[3].id
    assert [store.cycle(cycle.id).incident for cycle in cycles] == [1, 1, None, None]
    assert [told(store, cycle) for cycle in cycles[1:]] == [
        [(EventKind.DECISION, Level.INFO, 1, "updated")],
        [],
        [(EventKind.DECISION, Level.INFO, 1, "closed")],
    ]


def test_trouble_that_is_back_in_time_opens_the_same_incident_again(store: Store) -> None:
    for trouble in (["web"], [], []):
        judge(store, a_cycle(store), *trouble)
    late = judge(store, a_cycle(store), "web", at=WINDOW.total_seconds() / 60 - 1)

    assert whats(late) == [(What.REOPENED, 1)]
    again = store.incident(1)
    assert (again.status, again.reopened, again.closed_at, again.healthy_streak) == (IncidentStatus.OPEN, 1, None, 0)
    assert again.opened_at == NOON
    for _ in range(2):
        judge(store, a_cycle(store))
    too_late = judge(store, a_cycle(store), "web", at=WINDOW.total_seconds() / 60)
    assert whats(too_late) == [(What.OPENED, 2)]


def test_a_cycle_that_is_judged_again_changes_nothing_and_finds_its_incident(store: Store) -> None:
    cycle = a_cycle(store)
    first = judge(store, cycle, "web")
    again = judge(store, cycle, "web", at=1)

    assert (again.why, again.incident, again.changed) == (Why.JUDGED_BEFORE, first.incident, ())
    assert len(told(store, cycle)) == 1
    calm = a_cycle(store)
    for _ in range(3):
        judge(store, calm)
    assert store.incident(1).healthy_streak == 1


def test_schedules_have_incidents_of_their_own(store: Store) -> None:
    day, night = opened(store, "web", schedule="day"), opened(store, "web", schedule="night")
    judge(store, a_cycle(store, "day"))

    assert (store.incident(day.id).healthy_streak, store.incident(night.id).healthy_streak) == (1, 0)
    assert store.open_incidents("night") == [night]


def test_open_incidents_are_listed_by_their_last_trouble_and_the_oldest_of_one_cycle_first(store: Store) -> None:
    for at, service in enumerate(("web", "db", "cache")):
        judge(store, a_cycle(store), service, at=at)
    assert [incident.id for incident in store.open_incidents("default")] == [3, 2]
    judge(store, a_cycle(store), "cache", "db", at=9)
    assert [incident.id for incident in store.open_incidents("default")] == [2, 3]


def test_incidents_are_listed_by_their_last_change_and_can_be_chosen_by_status_and_schedule(store: Store) -> None:
    judge(store, a_cycle(store, "day"), "web")
    judge(store, a_cycle(store, "night"), "web", at=1)
    for at in (2, 3):
        judge(store, a_cycle(store, "day"), at=at)

    def ids(limit: int = 9, **which: object) -> list[int]:
        return [incident.id for incident in store.incidents(limit, **which)]

    assert (ids(), ids(1)) == ([1, 2], [1])
    assert (ids(status=IncidentStatus.OPEN), ids(status=IncidentStatus.CLOSED)) == ([2], [1])
    assert (ids(schedule="night"), ids(schedule="night", status=IncidentStatus.CLOSED)) == ([2], [])


def test_the_cycles_of_an_incident_come_with_their_sessions_and_add_up(store: Store) -> None:
    for cost, basis in ((0.5, CostBasis.REPORTED), (0.25, CostBasis.ESTIMATED), (None, CostBasis.UNKNOWN)):
        cycle = begin(store)
        end(store, add_session(store, cycle), cost_usd=cost, cost_basis=basis)
        store.finish_cycle(cycle.id, status=CycleStatus.UNRESOLVED, reason=None, detail=None, now=NOON)
        judge(store, cycle, "web")
    judge(store, a_cycle(store))

    chains = store.incident_chains(1, 9)
    assert [(chain.cycle.id, [s.id for s in chain.sessions]) for chain in chains] == [(1, [1]), (2, [2]), (3, [3])]
    assert [chain.cycle.id for chain in store.incident_chains(1, 2)] == [2, 3]
    assert store.incident_totals([1, 99]) == {
        1: IncidentTotal(cycles=3, sessions=3, cost_usd=0.75, cost_is_exact=False),
        99: IncidentTotal(),
    }


def test_what_is_not_there_is_said_to_be_missing(store: Store) -> None:
    with pytest.raises(NotFound, match="no incident 9"):
        store.incident(9)
    with pytest.raises(NotFound, match="no cycle 9"):
        store.judge_cycle(9, trouble=["web"], reopen_within=WINDOW, now=NOON)
    assert store.incident_chains(9, 5) == []


def test_a_name_that_no_database_can_hold_is_one_service(store: Store) -> None:
    odd = "w\x00b\ud83d"
    assert whats(judge(store, a_cycle(store), odd)) == [(What.OPENED, 1)]
    assert whats(judge(store, a_cycle(store), odd)) == [(What.UPDATED, 1)]
    assert len(store.incident(1).services) == 1


def a_session(store: Store, schedule: str = "default", tier: int = 1) -> Session:
    begun = begin(store, schedule)
    session = end(store, add_session(store, begun, tier=tier))
    store.finish_cycle(begun.id, status=CycleStatus.RESOLVED, reason=None, detail=None, now=NOON)
    return session


def test_a_session_is_kept_found_replaced_and_dropped_by_its_key(store: Store) -> None:
    incident = opened(store)
    first, second = a_session(store), a_session(store)
    key = ("default", incident.id, 1)
    assert store.kept_session(*key) is None

    assert store.keep_session(*key, first.id, NOON)
    assert store.kept_session(*key) == first
    assert store.keep_session(*key, second.id, NOON)
    assert store.kept_session(*key) == second
    assert store.kept_session("default", incident.id, 2) is None
    assert store.drop_session(*key)
    assert not store.drop_session(*key)
    assert store.kept_session(*key) is None
    assert store.session(second.id) == second


def test_a_cycle_that_is_late_does_not_put_back_an_older_session(store: Store) -> None:
    incident = opened(store)
    older, newer = a_session(store), a_session(store)
    for session in (newer, older):
        assert store.keep_session("default", incident.id, 1, session.id, NOON)
    assert store.kept_session("default", incident.id, 1) == newer


@pytest.mark.parametrize(
    ("which", "left"),
    [
        ({}, [[], [], []]),
        ({"schedule": "day"}, [[], [], [1]]),
        ({"incident": 2}, [[1, 2], [], [1]]),
        ({"schedule": "night", "incident": 1}, [[1, 2], [1], [1]]),
    ],
    ids=["all", "of_a_schedule", "of_an_incident", "of_both_where_there_is_none"],
)
def test_kept_sessions_are_dropped_together(store: Store, which: dict[str, object], left: list[list[int]]) -> None:
    days = [opened(store, service, schedule="day") for service in ("web", "db")]
    incidents = [*days, opened(store, schedule="night")]
    session = a_session(store)
    for incident, tiers in zip(incidents, ((1, 2), (1,), (1,)), strict=True):
        for tier in tiers:
            store.keep_session(incident.schedule, incident.id, tier, session.id, NOON)

    dropped = store.drop_sessions(**which)

    after = [[n for n in (1, 2) if store.kept_session(i.schedule, i.id, n)] for i in incidents]
    assert (after, dropped) == (left, 4 - sum(map(len, left)))


def test_every_session_of_an_incident_is_listed_by_tier(store: Store) -> None:
    incident, other = opened(store, "web"), opened(store, "db")
    second, first = a_session(store, tier=2), a_session(store)
    for session in (second, first):
        store.keep_session("default", incident.id, session.tier, session.id, NOON)
    assert store.kept_sessions("default", incident.id) == [first, second]
    assert store.kept_sessions("default", other.id) == []


def test_an_incident_that_closes_drops_its_sessions_and_no_others_and_gets_no_more(store: Store) -> None:
    web, db = opened(store, "web"), opened(store, "db")
    session = a_session(store)
    for incident in (web, db):
        store.keep_session("default", incident.id, 1, session.id, NOON)
    # The cycle that opened the second one was the first without the trouble of the first one.
    assert whats(judge(store, a_cycle(store), "db")) == [(What.UPDATED, db.id), (What.CLOSED, web.id)]

    assert store.kept_session("default", web.id, 1) is None
    assert store.kept_session("default", db.id, 1) == session
    assert not store.keep_session("default", web.id, 1, session.id, NOON)
    assert store.kept_session("default", web.id, 1) is None


def test_no_session_is_kept_under_a_key_that_does_not_exist(store: Store) -> None:
    incident, session = opened(store), a_session(store)
    assert not store.keep_session("other", incident.id, 1, session.id, NOON)
    assert not store.keep_session("default", 99, 1, session.id, NOON)
    assert store.drop_sessions() == 0


JUDGE_IN_EACH_ROUND = """
import sys
from datetime import UTC, datetime, timedelta
from supervisor.store import open_store
now = datetime(2026, 3, 1, tzinfo=UTC)
with open_store(sys.argv[1]) as store:
    store.switch()
    print("ready", flush=True)
    for line in sys.stdin:
        cycle, *trouble = line.split()
        judged = store.judge_cycle(int(cycle), trouble=trouble, reopen_within=timedelta(hours=4), now=now)
        print(",".join(what.value for what, _ in judged.changed) or "nothing", flush=True)
"""


def test_a_cycle_that_many_processes_judge_at_once_is_judged_by_one_of_them(store: Store, url: str) -> None:
    cycles = [a_cycle(store) for _ in range(12)]
    troubles = ["web", "web", "", ""] * 3
    rounds = [f"{cycle.id} {trouble}" for cycle, trouble in zip(cycles, troubles, strict=True)]
    done = ["opened", "updated", "recovering", "closed"] + ["reopened", "updated", "recovering", "closed"] * 2

    answers = race_often(JUDGE_IN_EACH_ROUND, url, rounds, processes=4)

    assert [sorted(answer) for answer in answers] == [sorted([what] + ["nothing"] * 3) for what in done]
    assert [incident.reopened for incident in store.incidents(9)] == [2]
    assert [len(told(store, cycle)) for cycle in cycles] == [1, 1, 0, 1] * 3


# Each process takes one of the tasks that the line names, which no other takes.
TAKE_A_TASK_IN_EACH_ROUND = """
import os, sys
from datetime import UTC, datetime, timedelta
from supervisor.store import open_store
now = datetime(2026, 3, 1, tzinfo=UTC)

def take(claims, tasks):
    for task in tasks:
        try:
            os.close(os.open(f"{claims}/{task}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return task

with open_store(sys.argv[1]) as store:
    store.switch()
    print("ready", flush=True)
    for line in sys.stdin:
        claims, *tasks = line.split()
        what, number, argument, *schedule = take(claims, tasks).split(":")
        if what == "judge":
            trouble = [argument] if argument else []
            judged = store.judge_cycle(int(number), trouble=trouble, reopen_within=timedelta(hours=4), now=now)
            print(",".join(change.value for change, _ in judged.changed) or "nothing", flush=True)
        else:
            store.keep_session(schedule[0], int(number), int(argument), 1, now)
            print("kept or refused", flush=True)
"""


def test_cycles_of_one_schedule_that_are_judged_at_once_share_one_incident(
    store: Store, url: str, tmp_path: Path
) -> None:
    services = [f"web{number}" for number in range(6)]
    rounds = [[f"judge:{a_cycle(store).id}:{service}" for _ in range(4)] for service in services]

    answers = race_often(
        TAKE_A_TASK_IN_EACH_ROUND, url, [" ".join([str(tmp_path), *tasks]) for tasks in rounds], processes=4
    )

    # Those of the rounds before get calmer with each further cycle; the round's own is opened once and then updated.
    own = [sorted(what.split(",")[0] for what in answer) for answer in answers]
    assert own == [["opened", "updated", "updated", "updated"]] * len(services)
    assert sorted(incident.services for incident in store.incidents(99)) == [(service,) for service in services]


def test_no_session_is_left_behind_by_an_incident_that_closes_while_others_keep_theirs(
    store: Store, url: str, tmp_path: Path
) -> None:
    a_session(store)
    rounds, incidents = [], []
    for number in range(8):
        schedule = f"schedule{number}"
        incidents.append(opened(store, schedule=schedule))
        judge(store, a_cycle(store, schedule))
        first, *others = [f"keep:{incidents[-1].id}:{tier}:{schedule}" for tier in (1, 2, 3)]
        rounds.append([first, f"judge:{a_cycle(store, schedule).id}:", *others])

    answers = race_often(
        TAKE_A_TASK_IN_EACH_ROUND, url, [" ".join([str(tmp_path), *tasks]) for tasks in rounds], processes=4
    )

    assert answers == [["closed"] + ["kept or refused"] * 3] * 8
    assert [store.kept_sessions(incident.schedule, incident.id) for incident in incidents] == [[]] * 8


ALL = {
    "judge_cycle": lambda store: [
        judge(store, store.cycle(n), *trouble) for n, trouble in ((1, "a"), (2, ""), (3, ""))
    ],
    "incident": lambda store: store.incident(1),
    "open_incidents": lambda store: store.open_incidents("default"),
    "incidents": lambda store: store.incidents(5, IncidentStatus.OPEN, "default"),
    "incident_totals": lambda store: store.incident_totals([1]),
    "incident_chains": lambda store: store.incident_chains(1, 5),
    "keep_session": lambda store: store.keep_session("default", 1, 1, 1, NOON),
    "kept_session": lambda store: store.kept_session("default", 1, 1),
    "kept_sessions": lambda store: store.kept_sessions("default", 1),
    "drop_session": lambda store: store.drop_session("default", 1, 1),
    "drop_sessions": lambda store: store.drop_sessions("default", 1),
}


def test_every_call_is_looked_at() -> None:
    public = {name for mixin in (Incidents, KeptSessions) for name in vars(mixin) if not name.startswith("_")}
    assert public == set(ALL)


@pytest.mark.parametrize("call", ALL.values(), ids=ALL.keys())
def test_nothing_reads_a_whole_table(sqlite_url: str, call: Callable[[Store], object]) -> None:
    with open_store(sqlite_url) as store:
        for _ in range(3):
            a_session(store)
        judge(store, a_cycle(store), "web")
        with statements() as sent:
            call(store)
    assert whole_tables_read(sent, Path(sqlite_url.removeprefix("sqlite:///"))) == []
