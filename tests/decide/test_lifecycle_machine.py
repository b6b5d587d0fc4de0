"""Whatever is asked of records in whatever order, the table of transitions keeps its promises."""

from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from supervisor.decide.lifecycle import (
    CYCLE_MOVES,
    CYCLE_STARTS,
    SESSION_MOVES,
    SESSION_STARTS,
    before,
)
from supervisor.model.cycle import CycleStatus
from supervisor.model.session import UNFINISHED, WAITING, SessionStatus

RAN = frozenset({SessionStatus.COMPLETED, SessionStatus.PAUSED, SessionStatus.TIMED_OUT, SessionStatus.REJECTED})
SETTLED = frozenset(CycleStatus) - {CycleStatus.RUNNING, CycleStatus.PAUSED}


class Records(RuleBasedStateMachine):
    """A cycle and its sessions, moved as the store moves them: when the table says that they may."""

    def __init__(self) -> None:
        super().__init__()
        self.cycle = [CycleStatus.RUNNING]
        self.sessions: list[list[SessionStatus]] = []

    @precondition(lambda self: self.cycle[-1] is CycleStatus.RUNNING and not self.unfinished())
    @rule(start=st.sampled_from(sorted(SESSION_STARTS)))
    def record(self, start: SessionStatus) -> None:
        self.sessions.append([start])

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), to=st.sampled_from(SessionStatus))
    def move_a_session(self, data: st.DataObject, to: SessionStatus) -> None:
        history = data.draw(st.sampled_from(self.sessions))
        if history[-1] in before(to):
            history.append(to)

    @precondition(lambda self: not self.unfinished())
    @rule(to=st.sampled_from(CycleStatus))
    def move_the_cycle(self, to: CycleStatus) -> None:
        if self.cycle[-1] in before(to):
            self.cycle.append(to)

    def unfinished(self) -> list[SessionStatus]:
        return [history[-1] for history in self.sessions if history[-1] in UNFINISHED]

    @invariant()
    def a_session_that_is_over_is_never_active_again(self) -> None:
        for history in self.sessions:
            assert history.count(SessionStatus.ACTIVE) <= 1
            over = next((n for n, status in enumerate(history) if status not in UNFINISHED), len(history))
            assert not UNFINISHED.intersection(history[over:])

    @invariant()
    def only_what_ran_completes_pauses_times_out_or_is_rejected(self) -> None:
        for history in self.sessions:
            if RAN.intersection(history):
                assert SessionStatus.ACTIVE in history

    @invariant()
    def what_waited_is_left_only_by_expiry_an_end_or_somebody_who_went_on_from_it(self) -> None:
        for history in self.sessions:
            for status, following in pairwise(history):
                if status in WAITING:
                    assert following in {SessionStatus.EXPIRED, SessionStatus.STOPPED, SessionStatus.COMPLETED}
                    assert status is SessionStatus.PAUSED or following is SessionStatus.EXPIRED

    @invariant()
    def a_settled_cycle_stays_settled_and_only_a_paused_one_goes_on(self) -> None:
        for status, following in pairwise(self.cycle):
            assert status not in SETTLED
            assert following is not CycleStatus.RUNNING or status is CycleStatus.PAUSED

    @invariant()
    def never_two_unfinished_records(self) -> None:
        assert len(self.unfinished()) <= 1


Records.TestCase.settings = settings(max_examples=150, stateful_step_count=30)
TestRecords = Records.TestCase


@pytest.mark.parametrize(
    ("moves", "starts", "statuses"),
    [(SESSION_MOVES, SESSION_STARTS, SessionStatus), (CYCLE_MOVES, CYCLE_STARTS, CycleStatus)],
    ids=["session", "cycle"],
)
def test_every_status_is_in_the_table_and_can_be_come_to(moves, starts, statuses):
    reached = set(starts)
    while following := {to for status in reached for to in moves[status]} - reached:
        reached |= following

    assert set(moves) == set(statuses)
    assert reached == set(statuses)
    assert {(a, b) for a, follow in moves.items() for b in follow} == {(a, b) for b in statuses for a in before(b)}
