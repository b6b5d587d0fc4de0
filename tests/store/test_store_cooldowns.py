"""The cooldown ledger: windows by the database's clock, all or nothing, and never two for the last slot."""

from datetime import timedelta

import psycopg
import pytest

from supervisor.errors import Conflict, NotFound
from supervisor.model.guarding import CooldownLimit, CooldownUse, Granted, Refused, Slot
from supervisor.model.permission import ActionKind, ServiceAction
from supervisor.model.session import Session
from supervisor.store import Store, open_store, upgrade
from tests.postgres import Postgres
from tests.store.ledger import LIMITS, clock, let_pass, redeploy, restart, slots
from tests.store.races import race_often
from tests.store.store_examples import add_session, begin

RESTARTS, REDEPLOYS = LIMITS[ActionKind.RESTART], LIMITS[ActionKind.REDEPLOY]


@pytest.fixture
def session(store: Store) -> Session:
    return add_session(store, begin(store))


class Guard:
    """Takes slots for one call after the other, each with an id of its own."""

    def __init__(self, store: Store, session: Session) -> None:
        self._store = store
        self._session = session
        self._calls = 0

    def take(self, actions: list[ServiceAction], **fields: object) -> Slot:
        self._calls += 1
        given = {"session": self._session.id, "tool_use_id": f"toolu_{self._calls}", "limits": LIMITS} | fields
        return self._store.take_slot(actions=actions, **given)


@pytest.fixture
def guard(store: Store, session: Session) -> Guard:
    return Guard(store, session)


def test_the_third_restart_in_four_hours_is_refused_with_the_time_from_which_it_is_allowed(
    guard: Guard, url: str
) -> None:
    before = clock(url)
    assert guard.take(restart("web")) == Granted()
    let_pass(url, timedelta(hours=1))
    assert guard.take(restart("web")) == Granted()
    first, second = (at for _, _, at, _ in slots(url))
    assert before <= first + timedelta(hours=1) <= second <= clock(url)
    refused = Refused(service="web", kind=ActionKind.RESTART, limit=RESTARTS, next_at=first + timedelta(hours=4))
    assert guard.take(restart("web")) == refused
    assert len(slots(url)) == 2


def test_a_slot_is_free_again_when_its_window_has_passed_and_not_before(guard: Guard, url: str) -> None:
    assert guard.take(redeploy("web")) == Granted()
    let_pass(url, timedelta(hours=23, minutes=59))
    assert isinstance(guard.take(redeploy("web")), Refused)
    let_pass(url, timedelta(minutes=1))
    assert guard.take(redeploy("web")) == Granted()


def test_services_and_kinds_have_slots_of_their_own(guard: Guard) -> None:
    for actions in (redeploy("web"), restart("web"), restart("db"), redeploy("db"), restart("web")):
        assert guard.take(actions) == Granted()
    assert isinstance(guard.take(restart("web")), Refused)
    assert guard.take(restart("db")) == Granted()


def test_a_slot_that_lies_ahead_of_the_clock_counts(guard: Guard, url: str) -> None:
    guard.take(redeploy("web"))
    let_pass(url, -timedelta(hours=100))
    assert isinstance(guard.take(redeploy("web")), Refused)


def test_a_call_takes_the_slots_of_all_its_actions_or_none(guard: Guard, url: str) -> None:
    assert guard.take(restart("db", "web")) == Granted()
    assert guard.take(restart("web")) == Granted()
    before = slots(url)
    assert isinstance(guard.take([*restart("cache", "db", "web"), *redeploy("cache")]), Refused)
    assert slots(url) == before


def test_a_call_that_does_one_thing_twice_takes_two_slots(guard: Guard, url: str) -> None:
    assert guard.take(restart("web", "web")) == Granted()
    assert isinstance(guard.take(restart("web")), Refused)
    assert guard.take(restart("db")) == Granted()
    let_pass(url, timedelta(hours=1))
    wide = {ActionKind.RESTART: CooldownLimit(max=3, window=timedelta(hours=4))}
    taken = {service: at for _, service, at, _ in slots(url)}
    refused = guard.take(restart("web", "web", "db"), limits=wide)
    assert refused == Refused(
        service="web",
        kind=ActionKind.RESTART,
        limit=wide[ActionKind.RESTART],
        next_at=taken["web"] + timedelta(hours=4),
    )


def test_a_call_that_wants_more_than_there_ever_is_is_never_allowed(guard: Guard, url: str) -> None:
    refused = guard.take(restart("web", "web", "web"))
    assert refused == Refused(service="web", kind=ActionKind.RESTART, limit=RESTARTS, next_at=None)
    none_at_all = {ActionKind.RESTART: CooldownLimit(max=0, window=timedelta(hours=4))}
    refused = guard.take(restart("web"), limits=none_at_all)
    assert isinstance(refused, Refused)
    assert refused.next_at is None
    assert slots(url) == []


def test_the_refusal_names_what_stands_in_the_way_longest(guard: Guard, url: str) -> None:
    guard.take(redeploy("web"))
    guard.take(restart("db", "db"))
    for actions in ([*redeploy("web"), *restart("db")], [*restart("db"), *redeploy("web")]):
        refused = guard.take(actions)
        assert isinstance(refused, Refused)
        assert (refused.service, refused.kind, refused.limit) == ("web", ActionKind.REDEPLOY, REDEPLOYS)
        assert refused.next_at == slots(url)[0][2] + timedelta(hours=24)
    never = guard.take([*redeploy("web"), *restart("x", "x", "x")])
    assert isinstance(never, Refused)
    assert (never.service, never.next_at) == ("x", None)


def test_a_call_that_is_asked_about_again_takes_no_second_slot(guard: Guard, url: str) -> None:
    for _ in range(3):
        assert guard.take(restart("web", "db"), tool_use_id="same") == Granted()
    assert guard.take(restart("db", "web"), tool_use_id="same") == Granted()
    assert len(slots(url)) == 2
    assert guard.take(restart("web"), tool_use_id="other") == Granted()


def test_the_slots_of_a_call_are_good_for_nothing_else(guard: Guard) -> None:
    guard.take(restart("web"), tool_use_id="same")
    for actions in (restart("db"), redeploy("web"), restart("web", "web"), restart("web", "db")):
        with pytest.raises(Conflict, match="took slots for other actions"):
            guard.take(actions, tool_use_id="same")


def test_the_same_call_in_another_session_takes_slots_of_its_own(store: Store, session: Session, guard: Guard) -> None:
    fork = add_session(store, store.cycle(session.cycle_id), session)
    guard.take(redeploy("web"), tool_use_id="same")
    assert isinstance(guard.take(redeploy("web"), tool_use_id="same", session=fork.id), Refused)


def test_a_call_without_actions_needs_no_slot(guard: Guard, url: str) -> None:
    assert guard.take([]) == Granted()
    assert slots(url) == []


def test_a_session_that_is_not_there_gets_no_slot(guard: Guard) -> None:
    with pytest.raises(NotFound, match="no session 99"):
        guard.take(restart("web"), session=99)


def test_a_name_that_no_database_can_hold_has_a_limit_too(guard: Guard) -> None:
    odd = "web\x00\ud83d"
    assert guard.take(redeploy(odd), tool_use_id="same") == Granted()
    assert guard.take(redeploy(odd), tool_use_id="same") == Granted()
    assert isinstance(guard.take(redeploy(odd)), Refused)


def test_the_limits_in_use_are_listed_with_what_is_left(store: Store, guard: Guard, url: str) -> None:
    assert store.cooldowns(LIMITS) == []
    guard.take([*restart("web"), *redeploy("web")])
    guard.take(restart("db", "db"))
    at = {(service, kind): at for kind, service, at, _ in slots(url)}
    db, web_redeploy, web_restart = store.cooldowns(LIMITS)
    assert db == CooldownUse(
        service="db",
        kind=ActionKind.RESTART,
        used=2,
        limit=RESTARTS,
        next_at=at["db", "restart"] + timedelta(hours=4),
    )
    assert web_redeploy == CooldownUse(
        service="web",
        kind=ActionKind.REDEPLOY,
        used=1,
        limit=REDEPLOYS,
        next_at=at["web", "redeploy"] + timedelta(hours=24),
    )
    assert web_restart == CooldownUse(service="web", kind=ActionKind.RESTART, used=1, limit=RESTARTS, next_at=None)
    assert (db.left, web_restart.left) == (0, 1)
    let_pass(url, timedelta(hours=4))
    assert [(use.service, use.kind) for use in store.cooldowns(LIMITS)] == [("web", ActionKind.REDEPLOY)]


TAKE_IN_EACH_ROUND = """
import os, sys
from datetime import timedelta
from supervisor.model.guarding import CooldownLimit, Granted
from supervisor.model.permission import ActionKind, ServiceAction
from supervisor.store import open_store
limits = {ActionKind.RESTART: CooldownLimit(max=2, window=timedelta(hours=4))}
with open_store(sys.argv[1]) as store:
    store.switch()
    print("ready", flush=True)
    for line in sys.stdin:
        # Half of the processes name the services the other way round.
        names = line.split()[:: 1 if os.getpid() % 2 else -1]
        slot = store.take_slot(
            actions=[ServiceAction(kind=ActionKind.RESTART, service=name) for name in names],
            limits=limits, session=1, tool_use_id=f"{os.getpid()} {line}",
        )
        print("granted" if slot == Granted() else "refused", flush=True)
"""

ROUNDS = [f"web{number} db{number}" for number in range(25)]


def assert_two_of_eight_win_each_round(url: str) -> None:
    with open_store(url) as store:
        add_session(store, begin(store))
    assert race_often(TAKE_IN_EACH_ROUND, url, ROUNDS) == [["granted"] * 2 + ["refused"] * 6] * len(ROUNDS)
    assert len(slots(url)) == 4 * len(ROUNDS)


def test_of_processes_that_want_the_last_slots_at_once_no_more_get_one_than_there_are(url: str) -> None:
    assert_two_of_eight_win_each_round(url)


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_slots_are_safe_whatever_isolation_a_server_has_by_default(postgres: Postgres) -> None:
    url = postgres.new_database()
    upgrade(url)
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
    assert_two_of_eight_win_each_round(url)


ASK_AGAIN_IN_EACH_ROUND = """
import sys
from datetime import timedelta
from supervisor.model.guarding import CooldownLimit, Granted
from supervisor.model.permission import ActionKind, ServiceAction
from supervisor.store import open_store
limits = {ActionKind.REDEPLOY: CooldownLimit(max=1, window=timedelta(hours=24))}
with open_store(sys.argv[1]) as store:
    store.switch()
    print("ready", flush=True)
    for line in sys.stdin:
        action = ServiceAction(kind=ActionKind.REDEPLOY, service=line.strip())
        slot = store.take_slot(actions=[action], limits=limits, session=1, tool_use_id=line)
        print("granted" if slot == Granted() else "refused", flush=True)
"""


def test_one_call_asked_about_by_many_processes_at_once_takes_one_slot(store: Store, url: str) -> None:
    add_session(store, begin(store))
    rounds = [f"web{number}" for number in range(10)]
    assert race_often(ASK_AGAIN_IN_EACH_ROUND, url, rounds, processes=4) == [["granted"] * 4] * 10
    assert len(slots(url)) == 10
