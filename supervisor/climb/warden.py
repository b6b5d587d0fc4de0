"""Answer the tool calls of one run, and see whether it heeds the answers. Reads and writes the store.

Made by climb.run for each run and asked by ``guard.server``. Nothing here decides: it gathers what ``decide`` needs,
records the answer and only then gives it. It also follows the run's stream, because a CLI that does not ask is noticed
only by what it did.
"""

import asyncio
import datetime as dt
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import cast

from supervisor.climb.entries import REPORT_TOOL, describe_input
from supervisor.climb.insist import insist
from supervisor.climb.ladder import Ladder
from supervisor.climb.recorder import Recorder
from supervisor.climb.spending import Spending
from supervisor.climb.stop import StopRequest
from supervisor.decide.breach import ran_unasked
from supervisor.decide.clearance import APPROVED, COOLDOWN, Circumstances, clearance, needs_a_person, out_of_slots
from supervisor.errors import ConfigError, Conflict, StoreUnavailable
from supervisor.guard.bounds import ANSWER_SECONDS
from supervisor.model.cycle import EventKind, NewEvent
from supervisor.model.events import CallUsage, RateLimit, StreamEvent, ToolResult, ToolUse
from supervisor.model.guarding import Approval, ApprovalStatus, NewApproval, Refused, hash_of_input
from supervisor.model.outcome import Ended
from supervisor.model.permission import CallEnd, Decision, Remedies, ToolCall, Verdict
from supervisor.model.progress import Notice
from supervisor.model.report import Level
from supervisor.model.session import Session

logger = logging.getLogger(__name__)

_ANSWER_POLL_SECONDS = 0.5
# A store that is back within this costs a call only time: deciding twice takes no second slot and no second approval.
_STORE_PATIENCE_SECONDS = ANSWER_SECONDS / 2
_TRIAL = ToolCall(tool_use_id="trial", tool="Bash", input={"command": "true"})
_REPORT = Decision(verdict=Verdict.ALLOW, rule="report", sentence="This is your report.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """What one run is held to. ``own_paths`` and ``own_pids`` are the supervisor's, and nothing to an agent.

    ``waits`` when its CLI cannot put a call off, so that the hook has to wait for a person; in either case no longer
    than ``approval_limit``.
    """

    own_paths: tuple[str, ...]
    own_pids: frozenset[int]
    dry_run: bool
    waits: bool
    approval_limit: dt.timedelta


class Warden:
    """Guards one run: ``answer`` and ``ended`` for its hooks, ``on_event`` for its stream."""

    def __init__(
        self,
        ladder: Ladder,
        session: Session,
        regime: Regime,
        *,
        recorder: Recorder,
        spending: Spending,
        stop: StopRequest,
    ) -> None:
        self.breached = False
        self._ladder = ladder
        self._session = session
        self._regime = regime
        self._recorder = recorder
        self._spending = spending
        self._stop = stop
        self._mask = ladder.settings.masker()
        self._answers: dict[str, Decision] = {}
        self._results: dict[str, bool] = {}
        self._reports: set[str] = set()

    async def answer(self, call: ToolCall) -> Decision:
        """What happens to a call. It is recorded when this returns; when this raises, the call is refused."""
        if call.tool == REPORT_TOOL:
            return _REPORT
        using: set[int] = set()
        decision, approval = await insist(_STORE_PATIENCE_SECONDS, self._decide, call, using)
        if decision.verdict is Verdict.DEFER and approval is not None:
            self._tell(_waiting(approval), Level.WARNING)
            if self._regime.waits:
                await self._answer_of_a_person(approval)
                decision, _ = await insist(_STORE_PATIENCE_SECONDS, self._decide, call, using)
        if decision.rule == COOLDOWN:
            self._tell(f"Tier {self._session.tier} was kept from acting: {decision.sentence}", Level.WARNING)
        # Known before the CLI is: the result of a call it lets through may come at once.
        self._answers[call.tool_use_id] = decision
        return decision

    def prepare(self) -> None:
        """Load what the first answer needs, while the CLI has not asked yet."""
        with suppress(ConfigError):
            # Told when it is needed: this only saves time.
            self._rule_on(_TRIAL)

    async def ended(self, end: CallEnd) -> None:
        """Keep how a call ended."""
        if end.tool_use_id in self._answers and not self._cut_off(failed=end.failed):
            await asyncio.to_thread(self._end, end.tool_use_id, failed=end.failed)

    def _cut_off(self, *, failed: bool) -> bool:
        """Whether a call failed only because its run was being ended: what it had done by then nobody knows."""
        return failed and self._stop.event.is_set()

    def settle(self) -> None:
        """Keep the end of calls whose result was in the stream, while the hook that says so came too late."""
        for tool_use_id, failed in list(self._results.items()):
            with suppress(Conflict):
                self._end(tool_use_id, failed=failed)

    def on_event(self, event: StreamEvent) -> None:
        """Look for what must end the run at once: a call that nobody decided on, a used-up budget or usage window."""
        match event:
            case ToolUse(name=name) if name == REPORT_TOOL:
                self._reports.add(event.tool_use_id)
            case ToolResult() if event.tool_use_id not in self._reports:
                self._look_for_a_breach(event)
            case CallUsage() if self._spending.limited:
                over = self._spending.over(self._recorder.cost_so_far())
                if over is not None and not self._stop.event.is_set():
                    self._tell(f"{over.sentence} The run is stopped.", Level.WARNING)
                    self._stop.ask(Ended.BUDGET)
            case RateLimit(reached=True):
                # The CLI would go on asking until its retries are used up.
                self._stop.ask(Ended.USAGE_LIMIT)
            case _:
                pass

    def _end(self, tool_use_id: str, *, failed: bool) -> None:
        self._ladder.store.end_call(
            session=self._session.id, tool_use_id=tool_use_id, failed=failed, now=self._ladder.clock()
        )
        self._results.pop(tool_use_id, None)

    def _decide(self, call: ToolCall, using: set[int]) -> tuple[Decision, Approval | None]:
        """Decide and record, in one go off the event loop. Done again when the store went away in the middle of it.

        ``using`` are the approvals that were being used up then: nobody was told so, and the call has not run.
        """
        ladder, session, now = self._ladder, self._session, self._ladder.clock()
        ruled, wanted = self._rule_on(call)
        fingerprint = hash_of_input(call.input)
        around = Circumstances(
            switch=ladder.store.switch(),
            over_budget=self._spending.over_by_now(self._recorder.cost_so_far()),
            approval=self._asked(call, fingerprint, using) if ruled.verdict is Verdict.DEFER else None,
        )
        decision = clearance(ruled, wanted, around)
        if decision.verdict is Verdict.ALLOW:
            decision = self._take_slots(call, decision)
        if decision.verdict is Verdict.ALLOW and decision.rule == APPROVED and around.approval is not None:
            self._use(around.approval, using)
        approval = None
        if decision.verdict is Verdict.DEFER:
            services = tuple(dict.fromkeys(action.service for action in decision.actions))
            decision = replace(decision, sentence=f"{decision.sentence} {needs_a_person(services)}")
            approval = self._ask(call, decision, fingerprint, services)
        ladder.store.record_call(
            session=session.id,
            cycle=session.cycle_id,
            call=self._masked(call),
            text=self._mask.text(describe_input(call.input)),
            decision=replace(decision, sentence=self._mask.text(decision.sentence)),
            now=now,
        )
        logger.info(
            "Tool call decided",
            extra={
                "session": session.id,
                "tool": call.tool,
                "verdict": decision.verdict.value,
                "rule": decision.rule,
            },
        )
        return decision, approval

    def _rule_on(self, call: ToolCall) -> tuple[Decision, Remedies]:
        from supervisor.climb.ruling import rule_on
        from supervisor.model.rule import OffLimits

        settings, regime = self._ladder.settings, self._regime
        off_limits = OffLimits(
            paths=regime.own_paths,
            pids=regime.own_pids,
            work_dir=str(settings.claude.work_dir),
            home=settings.agent_env.get("HOME", ""),
        )
        return rule_on(call, settings.rules_for(self._session.tier), off_limits, dry_run=regime.dry_run)

    def _take_slots(self, call: ToolCall, decision: Decision) -> Decision:
        limits = self._ladder.settings.cooldown_limits()
        slot = self._ladder.store.take_slot(
            actions=decision.actions, limits=limits, session=self._session.id, tool_use_id=call.tool_use_id
        )
        return out_of_slots(slot, self._ladder.clock()) if isinstance(slot, Refused) else decision

    def _use(self, approval: Approval, using: set[int]) -> None:
        if approval.used_by is not None:
            return
        using.add(approval.id)
        self._ladder.store.use_approval(
            session=self._session.id,
            tool_use_id=approval.tool_use_id,
            input_hash=approval.input_hash,
            now=self._ladder.clock(),
        )

    def _asked(self, call: ToolCall, fingerprint: str, using: set[int]) -> Approval | None:
        """What a person was asked about this call; nothing when it then was another one under the same id."""
        store, now = self._ladder.store, self._ladder.clock()
        approval = store.approval_of_call(self._session.id, call.tool_use_id)
        if approval is None or approval.input_hash != fingerprint:
            return None
        if approval.status is ApprovalStatus.WAITING and approval.expires_at <= now:
            store.expire_approvals(now)
            return store.approval(approval.id)
        if approval.id in using and approval.used_by == self._session.id:
            return replace(approval, status=ApprovalStatus.APPROVED)
        return approval

    def _ask(self, call: ToolCall, decision: Decision, fingerprint: str, services: tuple[str, ...]) -> Approval:
        now = self._ladder.clock()
        return self._ladder.store.request_approval(
            NewApproval(
                session_id=self._session.id,
                cycle_id=self._session.cycle_id,
                tier=self._session.tier,
                tool_use_id=call.tool_use_id,
                tool=call.tool,
                input=self._masked(call).input,
                input_hash=fingerprint,
                text=self._mask.text(describe_input(call.input)),
                rule=decision.rule,
                sentence=decision.sentence,
                created_at=now,
                expires_at=now + self._regime.approval_limit,
                services=services,
            )
        )

    async def _answer_of_a_person(self, asked: Approval) -> None:
        """Wait until somebody has answered or the time for it is over. ``guard.server`` bounds the waiting too."""
        store = self._ladder.store
        while self._ladder.clock() < asked.expires_at and not self._stop.event.is_set():
            await asyncio.sleep(_ANSWER_POLL_SECONDS)
            # A store that is away for a moment must not be the answer.
            with suppress(StoreUnavailable):
                if (await asyncio.to_thread(store.approval, asked.id)).status is not ApprovalStatus.WAITING:
                    return

    def _look_for_a_breach(self, result: ToolResult) -> None:
        answer = self._answers.get(result.tool_use_id)
        if answer is not None and answer.verdict is Verdict.ALLOW and not self._cut_off(failed=result.is_error):
            self._results[result.tool_use_id] = result.is_error
        why = ran_unasked(result, answer, ending=self._stop.event.is_set())
        if why is None or self.breached:
            return
        self.breached = True
        self._stop.ask(Ended.GUARD_BYPASSED)
        logger.critical("The guard was bypassed", extra={"session": self._session.id, "why": why})
        self._tell(f"The guard was bypassed: {why} The run is ended.", Level.CRITICAL)

    def _masked(self, call: ToolCall) -> ToolCall:
        return replace(call, input=cast(Mapping[str, object], self._mask.value(dict(call.input))))

    def _tell(self, text: str, level: Level) -> None:
        """Put a notice on record and before whoever watches."""
        text = self._mask.text(text)
        self._recorder.note(
            NewEvent(
                kind=EventKind.NOTICE, at=self._ladder.clock(), text=text, session_id=self._session.id, level=level
            )
        )
        self._ladder.watch(Notice(text=text))


def _waiting(approval: Approval) -> str:
    about = f" for {', '.join(approval.services)}" if approval.services else ""
    return (
        f"Tier {approval.tier} asks for approval {approval.id}{about}: {approval.tool}: {approval.text} "
        f"(`opsladder approve {approval.id}` or `opsladder deny {approval.id}`, until "
        f"{approval.expires_at:%Y-%m-%dT%H:%M:%SZ})"
    )
