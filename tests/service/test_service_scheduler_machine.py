"""Whatever happens to two services and their clock in whatever order, no firing runs twice and none gets stuck.

They share a real store. Between any two steps a service may be killed, the clock may be put forward or back, and a
firing may start, end or be put off. What is left of a killed service's cycles is settled, as recovery does it.
"""

import asyncio
import datetime as dt
from itertools import count
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from supervisor.errors import Conflict
from supervisor.service.scheduler import Firing
from supervisor.store import Store, open_store
from tests.service.scheduled import HOUR, NOON, Clock, Service, schedules

EVERY = dt.timedelta(minutes=10)
WHICH = st.sampled_from([0, 1])
_numbers = count()


class Services(RuleBasedStateMachine):
    """Two services with one schedule, whose name is new in each run."""

    def __init__(self, store: Store, directory: Path) -> None:
        super().__init__()
        self.store = store
        self.directory = directory
        self.runner = asyncio.Runner()

    @initialize(overlap=st.sampled_from(["skip", "queue"]), misfire=st.sampled_from(["skip", "once"]))
    def begin(self, overlap: str, misfire: str) -> None:
        self.clock = Clock(NOON)
        self.name = f"s{next(_numbers)}"
        rhythm = 'cron = "*/10 * * * *"\ntimezone = "America/New_York"'
        table = f'name = "{self.name}"\n{rhythm}\noverlap = "{overlap}"\nmisfire = "{misfire}"'
        self.settings = schedules(self.directory, table)
        self.services = [self.service(), self.service()]
        self.taken: list[list[Firing]] = [[], []]
        self.ran: list[str] = []
        self.step()

    def service(self) -> Service:
        return Service(self.runner, self.store, self.settings, self.clock)

    def step(self) -> None:
        for service, taken in zip(self.services, self.taken, strict=True):
            taken += service.offers()

    @rule(seconds=st.integers(1, 1500))
    def time_passes(self, seconds: int) -> None:
        self.clock.now += dt.timedelta(seconds=seconds)
        self.step()

    @rule(hours=st.sampled_from([-9000, -3, -0.9, -0.2, 0.9, 3, 9000]))
    def the_clock_jumps(self, hours: float) -> None:
        self.clock.now += hours * HOUR
        self.step()

    @rule(which=WHICH)
    def a_service_is_killed_and_started(self, which: int) -> None:
        for firing in list(self.services[which].cycles):
            self.services[which].finish(firing)
        self.services[which] = self.service()
        self.taken[which] = []
        self.step()

    @precondition(lambda self: any(self.taken))
    @rule(which=WHICH)
    def a_firing_starts(self, which: int) -> None:
        for firing in self.taken[which][:1]:
            self.taken[which].remove(firing)
            try:
                self.services[which].begin(firing)
                self.ran.append(firing.fire_key)
            except Conflict:
                self.services[which].scheduler.ended(firing)
        self.step()

    @precondition(lambda self: any(self.taken))
    @rule(which=WHICH)
    def a_firing_is_put_off(self, which: int) -> None:
        for firing in self.taken[which][:1]:
            self.taken[which].remove(firing)
            self.services[which].scheduler.put_off(firing)

    @rule(which=WHICH)
    def a_cycle_ends(self, which: int) -> None:
        for firing in list(self.services[which].cycles)[:1]:
            self.services[which].finish(firing)
        self.step()

    @invariant()
    def no_firing_ran_twice(self) -> None:
        assert len(self.ran) == len(set(self.ran))

    @invariant()
    def each_service_has_one_firing_in_hand_at_most(self) -> None:
        assert all(len(taken) <= 1 for taken in self.taken)

    @invariant()
    def the_next_firing_is_never_far(self) -> None:
        for service in self.services:
            following = service.scheduler.next_fires()[self.name]
            assert self.clock.now < following <= self.clock.now + HOUR + EVERY

    def teardown(self) -> None:
        """In the end everything goes on: a firing that nothing stands in the way of runs."""
        for which in (0, 1):
            self.a_service_is_killed_and_started(which)
        before = len(self.ran)
        for _ in range(2):
            self.clock.now = max(service.scheduler.next_fires()[self.name] for service in self.services)
            self.step()
            for which in (0, 1):
                self.a_firing_starts(which)
                self.a_cycle_ends(which)
        self.no_firing_ran_twice()
        self.runner.close()
        assert len(self.ran) > before


def test_no_firing_runs_twice_and_none_gets_stuck(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/state/opsladder.db") as store:
        run_state_machine_as_test(
            lambda: Services(store, tmp_path), settings=settings(max_examples=20, stateful_step_count=20)
        )
