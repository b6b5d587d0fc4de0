"""Whatever happens to a chain in whatever order, what ``next_step`` answers keeps its promises.

An in-memory cycle is driven as ``climb`` drives one: ask, record, run, record the end, ask again. Between any two of
these the supervisor may die, a person may answer, pause, approve money or try again, and the sweep may come by.
"""

import datetime as dt
from collections import Counter
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from make import CONTINUITY, FINE, NEEDED, NOW, a_chain, a_session, policy, surroundings

from supervisor.decide.budget import Budget
from supervisor.decide.cut_off import left_no_trace
from supervisor.decide.lifecycle import CYCLE_MOVES, SESSION_MOVES
from supervisor.decide.next_step import next_step
from supervisor.model.cycle import CycleStatus
from supervisor.model.guarding import ApprovalStatus, SwitchState
from supervisor.model.outcome import POISONING, Failure
from supervisor.model.session import UNFINISHED, WAITING, ContinuityKind, Reason, Session, SessionStatus, ToolCalls
from supervisor.model.step import Finish, RunTier

TIERS = 3
BUDGET_USD = 5.0
MINUTE = dt.timedelta(minutes=1)

ENDS = (
    *((SessionStatus.PAUSED, failure) for failure in (Failure.APPROVAL, Failure.USAGE_LIMIT, Failure.BUDGET)),
    *((SessionStatus.TIMED_OUT, failure) for failure in (Failure.WALL_CLOCK, Failure.SILENCE, Failure.NO_OUTPUT)),
    *((SessionStatus.INTERRUPTED, failure) for failure in (Failure.KILLED, Failure.TURN_LIMIT, Failure.INTERRUPTED)),
    *((SessionStatus.FAILED, failure) for failure in (*sorted(POISONING), Failure.NETWORK, Failure.GUARD_BYPASSED)),
    (SessionStatus.STOPPED, Failure.STOPPED),
)
CUT_OFF = ((SessionStatus.INTERRUPTED, Failure.KILLED), (SessionStatus.TIMED_OUT, Failure.SILENCE))


class Climb(RuleBasedStateMachine):
    """One cycle, or after a retry the one that took its place."""

    @initialize(max_tier=st.integers(1, TIERS), dry_run=st.booleans(), max_resumes=st.integers(0, 2))
    def begin(self, max_tier: int, dry_run: bool, max_resumes: int) -> None:
        self.now = NOW
        self.max_resumes = max_resumes
        limits = replace(CONTINUITY, max_resumes=max_resumes)
        self.policy = policy(
            tiers=TIERS, max_tier=max_tier, dry_run=dry_run, continuity=limits, budget=Budget(cycle_usd=BUDGET_USD)
        )
        self.cycle = CycleStatus.RUNNING
        self.sessions: list[Session] = []
        self.earlier: list[Session] = []
        self.retried: Session | None = None
        self.approvals: dict[int, ApprovalStatus] = {}
        self.used: Counter[int] = Counter()
        self.off = False
        self.by_people = 0
        self.steps: list[RunTier] = []

    def around(self):
        return surroundings(
            switch=SwitchState(paused=self.off),
            approvals=self.approvals,
            earlier=self.retried,
            occasion=Reason.OPERATOR_RETRY if self.retried else Reason.FIRST_TIER,
        )

    def next(self):
        return next_step(a_chain(*self.sessions), self.policy, self.around(), now=self.now)

    def idle(self) -> bool:
        return not [s for s in self.sessions if s.status in UNFINISHED]

    def change(self, session: Session, **changes) -> None:
        to = changes.get("status", session.status)
        assert to is session.status or to in SESSION_MOVES[session.status]
        self.sessions[self.sessions.index(session)] = replace(session, **changes)

    def move_cycle(self, to: CycleStatus) -> None:
        assert to in CYCLE_MOVES[self.cycle]
        self.cycle = to

    def spent(self) -> float:
        return sum(s.cost_usd or 0.0 for s in self.sessions)

    # What the supervisor does.

    @precondition(lambda self: self.cycle is CycleStatus.RUNNING and self.idle())
    @rule()
    def ask_and_do(self) -> None:
        step = self.next()
        if isinstance(step, Finish):
            self.move_cycle(step.status)
            return
        self.check(step)
        plan = step.continuity
        number = len(self.earlier) + len(self.sessions) + 1
        for parent in self.sessions:
            if parent.id == plan.parent and parent.status is SessionStatus.PAUSED:
                self.change(parent, status=SessionStatus.COMPLETED)
        self.steps.append(step)
        self.sessions.append(
            a_session(
                id=number,
                session_id=f"cli-{number}",
                tier=step.tier,
                status=SessionStatus.CREATED,
                continuity=plan.kind,
                reason=plan.reason,
                parent_session_id=plan.parent,
                resumed_from=plan.resume_session_id,
                resumes=step.resumes,
                report=None,
                messages=0,
                tools_executed=0,
                created_at=self.now,
                started_at=None,
                last_message_at=None,
                ended_at=None,
            )
        )

    @precondition(lambda self: self.sessions and self.sessions[-1].status is SessionStatus.CREATED)
    @rule()
    def start(self) -> None:
        self.change(self.sessions[-1], status=SessionStatus.ACTIVE, started_at=self.now)

    @precondition(lambda self: self.sessions and self.sessions[-1].status is SessionStatus.ACTIVE)
    @rule()
    def work(self) -> None:
        """It says something and has a call let through; first of all the one that a person decided on."""
        last = self.sessions[-1]
        parent = last.parent_session_id
        if last.reason is Reason.APPROVED and parent is not None and not last.messages:
            assert self.approvals[parent] is ApprovalStatus.APPROVED, "a call would run that nobody approves any more"
            self.approvals[parent] = ApprovalStatus.USED
            self.used[parent] += 1
        allowed = last.tool_calls.allowed + 1
        self.change(last, messages=last.messages + 1, tools_executed=1, tool_calls=ToolCalls(allowed=allowed))

    @precondition(lambda self: self.sessions and self.sessions[-1].status is SessionStatus.ACTIVE)
    @rule(report=st.sampled_from([NEEDED, FINE, None]), cost=st.floats(0, 1))
    def complete(self, report, cost: float) -> None:
        self.end(SessionStatus.COMPLETED, None, report=report, cost_usd=cost)

    @precondition(lambda self: self.sessions and self.sessions[-1].status is SessionStatus.ACTIVE)
    @rule(end=st.sampled_from(ENDS), cost=st.floats(0, 1))
    def end_otherwise(self, end, cost: float) -> None:
        status, failure = end
        if failure is Failure.APPROVAL:
            self.approvals[self.sessions[-1].id] = ApprovalStatus.WAITING
        self.end(status, failure, cost_usd=cost)

    @precondition(
        lambda self: (
            self.sessions
            and self.sessions[-1].status is SessionStatus.ACTIVE
            and self.sessions[-1].continuity is ContinuityKind.RESUME
            and not self.sessions[-1].messages
        )
    )
    @rule()
    def reject_the_resume(self) -> None:
        self.end(SessionStatus.REJECTED, Failure.RESUME_REJECTED)

    @precondition(lambda self: self.cycle in (CycleStatus.RUNNING, CycleStatus.PAUSED) and self.idle())
    @rule(worked=st.booleans(), end=st.sampled_from((*ENDS, *CUT_OFF)))
    def a_whole_run(self, worked: bool, end) -> None:
        """All of it at once, so that chains grow long."""
        if self.cycle is CycleStatus.PAUSED:
            self.next_cycle_of_the_schedule()
        if self.cycle is CycleStatus.RUNNING:
            self.ask_and_do()
        if self.cycle is CycleStatus.RUNNING:
            self.start()
            if worked:
                self.work()
            self.end_otherwise(end, 0.1)

    def end(self, status: SessionStatus, failure: Failure | None, **changes) -> None:
        self.change(self.sessions[-1], status=status, failure=failure, ended_at=self.now, **changes)

    # What happens to it.

    @precondition(lambda self: self.cycle is CycleStatus.RUNNING)
    @rule()
    def kill(self) -> None:
        """The supervisor dies, and the next one settles the cycle."""
        if not self.idle():
            self.end(SessionStatus.INTERRUPTED, Failure.INTERRUPTED)
        step = self.next()
        self.move_cycle(step.status if isinstance(step, Finish) else CycleStatus.PAUSED)

    @precondition(lambda self: self.cycle is CycleStatus.PAUSED)
    @rule()
    def next_cycle_of_the_schedule(self) -> None:
        step = self.next()
        if isinstance(step, RunTier) or step.status is not CycleStatus.PAUSED:
            self.move_cycle(CycleStatus.RUNNING)

    @precondition(lambda self: ApprovalStatus.WAITING in self.approvals.values())
    @rule(answer=st.sampled_from([ApprovalStatus.APPROVED, ApprovalStatus.DENIED, ApprovalStatus.EXPIRED]))
    def answer(self, answer: ApprovalStatus) -> None:
        asked = next(record for record, status in self.approvals.items() if status is ApprovalStatus.WAITING)
        self.approvals[asked] = answer
        self.by_people += 1

    @rule(off=st.sampled_from([False, False, False, True]))
    def use_the_switch(self, off: bool) -> None:
        self.off = off

    @rule(minutes=st.sampled_from([1, 61, 24 * 60, -30]))
    def let_time_pass_or_set_the_clock(self, minutes: int) -> None:
        self.now += minutes * MINUTE
        # Another day is another occasion to spend, like a person who agrees to it.
        self.by_people += 1

    @rule()
    def approve_money(self) -> None:
        self.policy = replace(
            self.policy, budget_approved_at=self.now, budget=Budget(cycle_usd=self.spent() + BUDGET_USD)
        )
        self.by_people += 1

    @precondition(lambda self: self.cycle is not CycleStatus.RUNNING)
    @rule()
    def sweep(self) -> None:
        for session in self.sessions:
            asks = self.approvals.get(session.id) in (ApprovalStatus.WAITING, ApprovalStatus.APPROVED)
            gone_on_from = session.id in {s.parent_session_id for s in self.sessions}
            if session.status in WAITING and not asks and not gone_on_from:
                self.change(session, status=SessionStatus.EXPIRED)

    @precondition(lambda self: self.sessions and self.cycle is not CycleStatus.RUNNING)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        """A person has a record done again: a new cycle, in which what was below that record counts no more."""
        chosen = data.draw(st.sampled_from(self.sessions))
        if self.cycle is CycleStatus.PAUSED:
            self.move_cycle(CycleStatus.STOPPED)
        self.earlier = [*self.earlier, *self.sessions]
        self.retried = chosen
        self.policy = replace(self.policy, start_tier=chosen.tier, max_tier=max(chosen.tier, self.policy.max_tier))
        self.sessions, self.steps, self.cycle = [], [], CycleStatus.RUNNING
        self.by_people = 0

    # What always holds.

    def check(self, step: RunTier) -> None:
        plan, last = step.continuity, self.sessions[-1] if self.sessions else None
        assert not self.off
        assert self.spent() < self.policy.budget.cycle_usd
        assert step.tier <= self.policy.max_tier
        assert step.tier == self.policy.start_tier or not self.policy.dry_run
        assert step.resumes <= self.max_resumes
        known = {s.id: s for s in (*self.earlier, *self.sessions)}
        assert (plan.kind is ContinuityKind.RESUME) == (plan.resume_session_id is not None)
        if plan.kind is ContinuityKind.FRESH:
            before = [*self.sessions, *([self.retried] if self.retried else [])]
            assert all(left_no_trace(s) for s in before), "context would be lost"
        else:
            assert plan.parent in known
        if plan.kind is ContinuityKind.RESUME:
            parent = known[plan.parent]
            assert plan.resume_session_id == parent.session_id
            assert parent.got_a_message
            assert parent.failure not in POISONING
            assert parent.status not in (SessionStatus.EXPIRED, SessionStatus.REJECTED)
        if last is not None:
            escalates = last.status is SessionStatus.COMPLETED
            assert step.tier == last.tier + escalates
            assert step.resumes == (0 if escalates else last.resumes + self.counts(last))
            after = [s for s in self.sessions if plan.parent is not None and s.id > plan.parent]
            assert all(left_no_trace(s) for s in after), "it would be gone on from before what was done"
            if last.status is SessionStatus.REJECTED:
                assert plan.kind is not ContinuityKind.RESUME

    @staticmethod
    def counts(last: Session) -> bool:
        """Whether going on from it is one more time: nobody has to agree to it."""
        return last.failure not in (Failure.APPROVAL, Failure.BUDGET, Failure.RESUME_REJECTED)

    @invariant()
    def never_two_unfinished_records(self) -> None:
        assert len([s for s in self.sessions if s.status in UNFINISHED]) <= 1

    @invariant()
    def a_settled_cycle_has_nothing_unfinished(self) -> None:
        assert self.cycle is CycleStatus.RUNNING or self.idle()

    @invariant()
    def an_approval_is_used_at_most_once(self) -> None:
        assert all(times == 1 for times in self.used.values())

    @invariant()
    def without_people_the_number_of_runs_is_bounded(self) -> None:
        # Each tier once and so often again, each time once more for a resume that was rejected.
        assert len(self.steps) <= 2 * (TIERS * (self.max_resumes + 1) + self.by_people)


Climb.TestCase.settings = settings(max_examples=300, stateful_step_count=40)
TestClimb = Climb.TestCase


def test_after_a_rejected_resume_no_run_is_answered_while_the_switch_is_off():
    rejected = a_session(
        id=2, parent_session_id=1, tier=2, continuity=ContinuityKind.RESUME, messages=0, tools_executed=0, report=None
    )
    rejected = replace(rejected, status=SessionStatus.REJECTED, failure=Failure.RESUME_REJECTED)

    step = next_step(a_chain(a_session(), rejected), policy(), surroundings(switch=SwitchState(paused=True)), now=NOW)

    assert isinstance(step, Finish)
    assert (step.status, step.reason) == (CycleStatus.PAUSED, "switch")
