"""`opsladder approvals`, `approve` and `deny`: tool calls that wait for a person. Called from ``app``.

Answering goes on with the paused cycle at once, as `cycle` would: there may be no daemon to do it.
"""

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.cli import logs, words
from supervisor.cli.cycle import CycleOptions, climb_and_tell
from supervisor.cli.exits import SETTLED, SKIPPED, exit_code
from supervisor.cli.person import who
from supervisor.cli.show import existing_store, find, recorded
from supervisor.errors import Conflict, NotFound, UsageError
from supervisor.model.cycle import Cycle, CycleStatus
from supervisor.model.document import approval_document
from supervisor.model.guarding import Approval, ApprovalStatus
from supervisor.settings import Settings, settings_from_process

if TYPE_CHECKING:
    from supervisor.store import Store

_PAUSED_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a person says to a waiting call."""

    approval: int
    approved: bool
    reason: str | None = None
    as_json: bool = False
    verbose: bool = False


def show_approvals(config: Path | None, *, as_json: bool) -> None:
    store = existing_store(settings_from_process(config))
    now = dt.datetime.now(dt.UTC)
    waiting = store.pending_approvals(now) if store else []
    if as_json:
        print(json.dumps({"schema": "opsladder.approvals/1", "approvals": [approval_document(a) for a in waiting]}))
    elif store is not None and waiting:
        for number, approval in enumerate(waiting):
            print(end="\n" if number else "")
            _print(approval, store.cycle(approval.cycle_id), now)
    else:
        print("Nothing waits for a person's approval.")
        for chain in store.chains(_PAUSED_SHOWN, CycleStatus.PAUSED) if store else []:
            print(_without_a_question(chain.cycle))


def answer(config: Path | None, said: Answer) -> int:
    """Keep the answer and go on with the cycle that waits for it."""
    logs.set_up(verbose=said.verbose)
    settings = settings_from_process(config)
    logs.keep_secret(settings.masker())
    with recorded(settings) as store:
        decided = _decide(store, settings, said)
        cycle = store.cycle(decided.cycle_id)
        switch = store.switch()
    done = "Approved" if said.approved else "Refused"
    if cycle.status is not CycleStatus.PAUSED:
        # A CLI that cannot put calls off: its run is waiting for this answer right now.
        _tell(said, decided, f"{done}. Cycle {cycle.id} is {cycle.status.value}.")
        return SETTLED
    if switch.paused:
        by = f" by {switch.by}" if switch.by else ""
        why = f" ({words.one_line(switch.reason, 200)})" if switch.reason else ""
        off = f"{done}. The answer is kept: opsladder is paused{by}{why}, so nothing runs now."
        on = f"Cycle {cycle.id} goes on after `opsladder unpause`, with `opsladder cycle {cycle.schedule}`."
        _tell(said, decided, f"{off}\n{on}")
        return SKIPPED
    if not said.as_json:
        print(f"{done}. Cycle {cycle.id} goes on.", flush=True)
    return _go_on(settings, said, cycle.id, cycle.schedule)


def _tell(said: Answer, decided: Approval, text: str) -> None:
    """Say what becomes of an answer where no cycle goes on here."""
    if said.as_json:
        text = json.dumps({"schema": "opsladder.approval/1", **approval_document(decided)})
    print(text)


def _decide(store: "Store", settings: Settings, said: Answer) -> Approval:
    try:
        asked = find(store.approval, said.approval)
    except NotFound as error:
        raise NotFound(error.message, remedy="`opsladder approvals` lists those that wait.") from error
    cycle = store.cycle(asked.cycle_id)
    if cycle.status is CycleStatus.PAUSED and not settings.has_schedule(cycle.schedule):
        raise UsageError(
            f"Cycle {cycle.id} cannot go on: there is no schedule {cycle.schedule} any more. Nothing was changed.",
            remedy=f"Configure it again, or end the cycle with `opsladder stop {asked.session_id}`.",
        )
    reason = None if said.reason is None else settings.masker().text(said.reason)
    now = dt.datetime.now(dt.UTC)
    try:
        return store.decide_approval(asked.id, approved=said.approved, by=who(), reason=reason, now=now)
    except Conflict as error:
        # Looked at again: somebody else may have answered a moment ago.
        found = store.approval(asked.id)
        cycle = store.cycle(found.cycle_id)
        remedy = None
        if cycle.status is CycleStatus.PAUSED and found.status is not ApprovalStatus.USED:
            remedy = f"`opsladder cycle {cycle.schedule}` goes on with cycle {cycle.id}."
        raise Conflict(f"{_settled(found)} Nothing was changed.", remedy=remedy) from error


def _settled(approval: Approval) -> str:
    """Why an approval can no longer be given or refused."""
    by = f" by {approval.decided_by}" if approval.decided_by else ""
    at = f" at {_time(approval.decided_at)}" if approval.decided_at else ""
    match approval.status:
        case ApprovalStatus.APPROVED:
            return f"Approval {approval.id} was given already{by}{at}."
        case ApprovalStatus.USED:
            return f"Approval {approval.id} was given already{by}{at}, and the call was let through, once."
        case ApprovalStatus.DENIED:
            return f"Approval {approval.id} was refused already{by}{at}."
        case ApprovalStatus.EXPIRED if approval.reason:
            return f"Approval {approval.id} was withdrawn{at}: {approval.reason}."
        case _:
            late = f"Approval {approval.id} had to be given by {_time(approval.expires_at)}"
            return f"{late}; nobody answered, so the call is refused."


def _go_on(settings: Settings, said: Answer, cycle: int, schedule: str) -> int:
    options = CycleOptions(schedule=schedule, paused_cycle=cycle, as_json=said.as_json, verbose=said.verbose)
    return exit_code(climb_and_tell(settings, options).cycle.status)


def _without_a_question(cycle: Cycle) -> str:
    """What to do about a paused cycle of which no call waits, or no longer."""
    on = f"`opsladder cycle {cycle.schedule}`" if cycle.reason == "approval" else words.way_on(cycle)
    return f"Cycle {cycle.id} of {cycle.schedule} is paused ({cycle.reason}). To go on: {on}."


def _print(approval: Approval, cycle: Cycle, now: dt.datetime) -> None:
    from rich.text import Text

    from supervisor.cli.screen import Screen

    screen = Screen()
    dry = ", a dry run" if cycle.dry_run else ""
    title = f"Approval {approval.id}: tier {approval.tier} of cycle {cycle.id} ({cycle.schedule}{dry})"
    screen.print(Text(title, "bold"), highlight=False)
    for name, text in _rows(approval, now):
        screen.hang(Text(f"  {name:<9} ", "bright_black"), Text(words.harmless(text)))


def _rows(approval: Approval, now: dt.datetime) -> Iterator[tuple[str, str]]:
    left = words.duration(max(0.0, (approval.expires_at - now).total_seconds()))
    yield "wants", f"{approval.tool}: {approval.text}"
    for name, value in approval.input.items():
        # All of it: what a person cannot see, they cannot approve.
        if value != approval.text:
            shown = value.rstrip("\n") if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield "with", f"{name} = {shown}"
    yield "concerns", ", ".join(approval.services) or "no service that could be told from it"
    yield "why", approval.sentence
    if f"the rule {approval.rule}" not in approval.sentence:
        yield "rule", approval.rule
    yield "before", f"`opsladder session {approval.session_id}` shows what led to it"
    yield "until", f"{_time(approval.expires_at)}, {left} from now; then it is refused"
    yield "yes", f"`opsladder approve {approval.id}` runs exactly this call, once, and the tier goes on"
    yield "no", f"`opsladder deny {approval.id} --reason TEXT` tells the model why, and the tier goes on"


def _time(at: dt.datetime) -> str:
    return f"{at.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
