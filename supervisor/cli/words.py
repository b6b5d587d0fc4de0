"""Figures and states as people read them. No I/O. Used by everything that prints for people."""

import datetime as dt
from collections.abc import Sequence

from supervisor.model.cycle import Cycle, CycleStatus
from supervisor.model.money import dollars
from supervisor.model.permission import Verdict
from supervisor.model.session import CostBasis, Session, SessionStatus

# A sign beside every word: colour is never the only signal.
CYCLE_SIGNS = {
    CycleStatus.RUNNING: ("…", "cyan"),
    CycleStatus.HEALTHY: ("✓", "green"),
    CycleStatus.RESOLVED: ("✓", "green"),
    CycleStatus.UNRESOLVED: ("✗", "red"),
    CycleStatus.BLOCKED: ("■", "yellow"),
    CycleStatus.PAUSED: ("‖", "yellow"),
    CycleStatus.FAILED: ("✗", "red"),
    CycleStatus.STOPPED: ("■", "red"),
    CycleStatus.SKIPPED: ("-", "bright_black"),
}
SESSION_SIGNS = {
    SessionStatus.CREATED: ("·", "cyan"),
    SessionStatus.ACTIVE: ("…", "cyan"),
    SessionStatus.PAUSED: ("‖", "yellow"),
    SessionStatus.COMPLETED: ("✓", "green"),
    SessionStatus.FAILED: ("✗", "red"),
    SessionStatus.TIMED_OUT: ("✗", "red"),
    SessionStatus.INTERRUPTED: ("■", "red"),
    SessionStatus.STOPPED: ("■", "yellow"),
    SessionStatus.REJECTED: ("↺", "yellow"),
    SessionStatus.EXPIRED: ("-", "bright_black"),
}
VERDICT_SIGNS = {
    Verdict.ALLOW: ("✓", "green"),
    Verdict.DENY: ("✗", "red"),
    Verdict.DEFER: ("‖", "yellow"),
}

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def money(usd: float | None, *, exact: bool = True, unknown: str = "cost unknown") -> str:
    if usd is None:
        return unknown
    return f"{'' if exact else '≈'}{dollars(usd)}"


def session_cost(session: Session) -> str:
    return money(session.cost_usd, exact=session.cost_basis is CostBasis.REPORTED)


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s"


def every(interval: dt.timedelta) -> str:
    """How often something is done, as it is written in the configuration."""
    seconds = int(interval.total_seconds())
    unit, length = next((unit, length) for unit, length in _UNITS if seconds % length == 0)
    return f"every {seconds // length}{unit}"


def count(number: int | None) -> str:
    if number is None:
        return "unknown"
    if number < 1_000:
        return str(number)
    return f"{number / 1_000:.1f}k" if number < 999_950 else f"{number / 1_000_000:.2f}M"


def several(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def numbers(ids: Sequence[int]) -> str:
    """Ids in their order: ``12-14`` when nothing is missing between the first and the last, else each."""
    if len(ids) > 1 and ids[-1] - ids[0] == len(ids) - 1:
        return f"{ids[0]}-{ids[-1]}"
    return ",".join(map(str, ids)) or "-"


def tool_calls(session: Session) -> str:
    """How many of its tool calls were let through; also how many were not, if any."""
    calls = session.tool_calls
    denied = f", {calls.denied} denied" if calls.denied else ""
    deferred = f", {calls.deferred} deferred" if calls.deferred else ""
    return f"{several(calls.allowed, 'tool call')}{denied}{deferred}"


def context(session: Session) -> str:
    if session.context_tokens is None:
        return "context unknown"
    ratio = session.context_ratio
    share = f"/{count(session.context_window)} ({ratio:.0%})" if ratio is not None else ""
    return f"context {count(session.context_tokens)}{share}"


# Instead of a way on. What is said before it may name commands that answer.
REHEARSAL_ENDS = "rehearsal ends here: its records are thrown away, so there is nothing to answer or to go on with"


def way_on(cycle: Cycle) -> str | None:
    """What a person types so that a paused cycle goes on; nothing for one that is not paused."""
    if cycle.status is not CycleStatus.PAUSED:
        return None
    # With its schedule: the first one is meant where none is named.
    again = f"opsladder cycle {cycle.schedule}"
    match cycle.reason:
        case "approval":
            return "`opsladder approvals` shows the call, and how to let it run or refuse it"
        case "budget":
            return f"`{again} --approve-budget` now, or `{again}` from tomorrow (UTC) on"
        case "usage_limit":
            return f"`{again}`, once the limit is reset"
        case "switch":
            return f"`opsladder unpause`, then `{again}`"
        case _:
            return f"`{again}`"


def harmless(text: str) -> str:
    """The text with nothing in it that a terminal would obey: it comes from a model, a tool or a log."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return " " if character.isspace() else character.encode("unicode_escape").decode("ascii")


def one_line(text: str, limit: int) -> str:
    line = " ".join(harmless(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
