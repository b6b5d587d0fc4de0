"""Keep what a cycle learned of services, and tell prompts and people what is in cooldown. Writes store and a file.

Called from climb.cycle. ``cooldown.json`` only shows the ledger, which is in the store: whatever happens to the file,
it is written anew from there.
"""

import datetime as dt
import json
import logging
from pathlib import Path

from supervisor.climb.ladder import Ladder
from supervisor.decide.health import found_in
from supervisor.durable import write_durably
from supervisor.model.cycle import Chain, EventKind, NewEvent
from supervisor.model.document import timestamp
from supervisor.model.guarding import CooldownUse
from supervisor.model.progress import Notice
from supervisor.model.report import Level

logger = logging.getLogger(__name__)

FILE = "cooldown.json"
SCHEMA = "opsladder.cooldowns/1"


def record_health(ladder: Ladder, chain: Chain) -> None:
    """Keep the cycle's word on each service; two healthy cycles in a row end its cooldowns."""
    found = found_in(s.report for s in chain.sessions if s.report is not None)
    now = ladder.clock()
    cleared = ladder.store.record_health(chain.cycle.id, found, now)
    if cleared:
        text = f"Healthy twice in a row, so out of cooldown: {', '.join(cleared)}."
        ladder.store.append_events(chain.cycle.id, [NewEvent(kind=EventKind.DECISION, at=now, text=text)])


def show_cooldowns(ladder: Ladder, cycle_id: int) -> tuple[CooldownUse, ...]:
    """Write what is used up of each limit to the file, and give it back. A file that was damaged is reported."""
    uses = tuple(ladder.store.cooldowns(ladder.settings.cooldown_limits()))
    path = ladder.settings.state.dir / FILE
    text = json.dumps({"schema": SCHEMA, "cooldowns": [_shown(use) for use in uses]}, indent=1) + "\n"
    try:
        before = _read(path)
        if before is not None and _is_damaged(before):
            said = f"{path} was damaged and is written anew from the records."
            event = NewEvent(kind=EventKind.NOTICE, at=ladder.clock(), level=Level.WARNING, text=said)
            ladder.store.append_events(cycle_id, [event])
            ladder.watch(Notice(text=said, needs_a_person=False))
        if before != text:
            # For reading only, also for its owner: the ledger is elsewhere.
            write_durably(path, text, mode=0o400)
    except OSError as error:
        logger.warning("The cooldowns are not shown in their file", extra={"path": str(path), "why": error.strerror})
    return uses


def in_words(uses: tuple[CooldownUse, ...]) -> list[str]:
    """The cooldowns in use, one line each, for prompts."""
    return [
        f"{use.service}: {use.used} of {use.limit.max} {use.kind.value}s used"
        + (f", none before {use.next_at.astimezone(dt.UTC):%Y-%m-%dT%H:%MZ}" if use.next_at else "")
        for use in uses
    ]


def _shown(use: CooldownUse) -> dict[str, object]:
    return {
        "service": use.service,
        "kind": use.kind.value,
        "used": use.used,
        "max": use.limit.max,
        "per_seconds": int(use.limit.window.total_seconds()),
        "next_at": timestamp(use.next_at),
    }


def _is_damaged(text: str) -> bool:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return True
    return not (isinstance(said, dict) and said.get("schema") == SCHEMA and isinstance(said.get("cooldowns"), list))


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
