"""`opsladder approvals`, `approve` and `deny`: tool calls that wait for a person. Called from ``app``.

Answering goes on with the paused cycle at once, as `cycle` would: there may be no daemon to do it.
"""

import asyncio
import datetime as dt
import json
from dataclasses import dataclass
from pathlib import Path

from supervisor.cli import logs, words
from supervisor.cli.cycle import CycleOptions, climb_once, show_while
from supervisor.cli.exits import SETTLED, exit_code
from supervisor.cli.person import who
from supervisor.cli.show import existing_store, find, recorded
from supervisor.model.cycle import CycleStatus
from supervisor.model.document import approval_document
from supervisor.model.guarding import Approval
from supervisor.settings import Settings, settings_from_process


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
    waiting = store.pending_approvals(dt.datetime.now(dt.UTC)) if store else []
    if as_json:
        print(json.dumps({"schema": "opsladder.approvals/1", "approvals": [approval_document(a) for a in waiting]}))
        return
    if not waiting:
        print("Nothing waits for a person.")
    for approval in waiting:
        _print(approval)


def answer(config: Path | None, said: Answer) -> int:
    """Keep the answer and go on with the cycle that waits for it."""
    logs.set_up(verbose=said.verbose)
    settings = settings_from_process(config)
    logs.keep_secret(settings.masker())
    with recorded(settings) as store:
        find(store.approval, said.approval)
        decided = store.decide_approval(
            said.approval, approved=said.approved, by=who(), reason=said.reason, now=dt.datetime.now(dt.UTC)
        )
        cycle = store.cycle(decided.cycle_id)
    if cycle.status is not CycleStatus.PAUSED:
        # A CLI that cannot put calls off: its run is waiting for this answer right now.
        if said.as_json:
            print(json.dumps(approval_document(decided)))
        else:
            print(f"{'Approved' if said.approved else 'Refused'}. Cycle {cycle.id} is {cycle.status.value}.")
        return SETTLED
    return _go_on(settings, said, cycle.id, cycle.schedule)


def _go_on(settings: Settings, said: Answer, cycle: int, schedule: str) -> int:
    options = CycleOptions(schedule=schedule, paused_cycle=cycle, as_json=said.as_json, verbose=said.verbose)
    chain = show_while(said.as_json, lambda watch: asyncio.run(climb_once(settings, options, watch=watch)))
    return exit_code(chain.cycle.status)


def _print(approval: Approval) -> None:
    from rich.text import Text

    from supervisor.cli.screen import Screen

    screen = Screen()
    left = max(0.0, (approval.expires_at - dt.datetime.now(dt.UTC)).total_seconds())
    screen.print(Text(f"Approval {approval.id}: tier {approval.tier} of cycle {approval.cycle_id}", "bold"))
    services = ", ".join(approval.services)
    for name, text in (
        ("wants", f"{approval.tool}: {approval.text}"),
        ("concerns", services or "no service that could be told from it"),
        ("why", f"{approval.sentence} (rule: {approval.rule})"),
        ("until", f"{approval.expires_at:%Y-%m-%d %H:%M:%S} UTC, {words.duration(left)} from now; then it is refused"),
        ("yes", f"`opsladder approve {approval.id}` runs exactly this call, once, and the tier goes on"),
        ("no", f"`opsladder deny {approval.id} --reason TEXT` tells the model why, and the tier goes on"),
    ):
        screen.hang(Text(f"  {name:<9} ", "bright_black"), Text(words.harmless(text)))
