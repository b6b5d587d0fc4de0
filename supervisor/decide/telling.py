"""Decide what people are told of a notice, and whether it is told at all. Pure.

Called from ``store.deliveries`` for each notice on record. When a message goes to whom is ``decide.dispatch``.
"""

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from supervisor.model.cycle import CycleStatus, Event
from supervisor.model.report import Level

# Below what the stricter services take in one message, with room for the lines around it.
TEXT_LIMIT = 700
TITLE_LIMIT = 120
# An index of PostgreSQL refuses entries above 2,700 bytes.
TOPIC_LIMIT = 300
# Who hears of it later than this has looked by themselves.
STALE_AFTER = dt.timedelta(days=1)
# Clocks of hosts differ by seconds. What lies further ahead was written by a clock that was wrong, and put back since.
AHEAD = dt.timedelta(minutes=5)

_RANK = {Level.INFO: 0, Level.WARNING: 1, Level.CRITICAL: 2}
_GOES_ON_BY_ITSELF = frozenset({"interrupted", "usage_limit"})
# What a cycle waits for a person with, until somebody answers: it says so once, and its schedule is silent meanwhile.
_QUESTIONS = ("approval", "budget")
_DIGEST_LENGTH = 16


class Telling(StrEnum):
    """Why a notice is told, or held back."""

    FIRST = "first"
    RISEN = "risen"
    AGAIN = "again"
    REPEATED = "repeated"
    STALE = "stale"


HELD_BACK = frozenset({Telling.REPEATED, Telling.STALE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a notice says to people. Messages of one ``topic`` are about the same trouble of the same schedule."""

    level: Level
    topic: str
    title: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """An earlier notice of the same topic, and whether it was told or is about to be."""

    level: Level
    at: dt.datetime
    told: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Whether a notice is told, and how many of its topic were held back since the last one that was."""

    telling: Telling
    held_back: int = 0


def rank(level: Level) -> int:
    """Levels in their order: their names do not sort."""
    return _RANK[level]


def judge(
    level: Level, happened_at: dt.datetime, earlier: Sequence[Earlier], *, repeat: dt.timedelta, now: dt.datetime
) -> Judgement:
    """Whether a notice is told. ``earlier`` is its topic's past, the newest first.

    A topic is told again only after ``repeat``, counted from when it was told last, so that trouble that lasts is not
    forgotten either; a rise in level is told at once.
    """
    if happened_at <= now - STALE_AFTER:
        return Judgement(telling=Telling.STALE)
    newest_told = next((place for place, one in enumerate(earlier) if one.told), None)
    held = len(earlier) if newest_told is None else newest_told
    if newest_told is None:
        return Judgement(telling=Telling.FIRST, held_back=held)
    recent = [one.level for one in earlier if one.told and now - repeat < one.at <= now + AHEAD]
    if not recent:
        return Judgement(telling=Telling.AGAIN, held_back=held)
    if rank(level) > max(map(rank, recent)):
        return Judgement(telling=Telling.RISEN, held_back=held)
    return Judgement(telling=Telling.REPEATED)


def message(event: Event, schedule: str) -> Message:
    """What people are told of this notice of a cycle of ``schedule``."""
    return Message(
        level=_level(event),
        topic=_topic(event, schedule),
        title=_one_line(f"{schedule}: {_headline(event)}", TITLE_LIMIT),
        body="\n".join(_body(event, schedule)),
    )


def with_held_back(body: str, held_back: int) -> str:
    """The body of a message that comes after others of its topic were held back."""
    if not held_back:
        return body
    return f"{body}\nHeld back since the last message about this: {held_back}."


def ping_for(status: CycleStatus) -> bool | None:
    """What a dead-man's switch hears of a cycle: all is well, it is not, or nothing.

    Nothing for one that waits or did not run: if that lasts, the silence is what the switch is there for.
    """
    match status:
        case CycleStatus.HEALTHY | CycleStatus.RESOLVED:
            return True
        case CycleStatus.FAILED | CycleStatus.UNRESOLVED | CycleStatus.BLOCKED:
            return False
        case _:
            return None


def goes_on_by_itself(status: object, reason: object) -> bool:
    """Whether a cycle only waits for something that comes without anybody's help."""
    return status == CycleStatus.PAUSED and reason in _GOES_ON_BY_ITSELF


def _level(event: Event) -> Level:
    """As recorded, but what goes on by itself is no reason to wake somebody."""
    waits = goes_on_by_itself(event.data.get("status"), event.data.get("reason"))
    return Level.WARNING if waits and event.level is Level.CRITICAL else event.level


def _topic(event: Event, schedule: str) -> str:
    services = ",".join(sorted(_services(event)))
    if (asked := event.data.get("reason")) in _QUESTIONS:
        # Each is a question of its own, and somebody has to answer it.
        about = f"{asked} {event.id}"
    elif isinstance(incident := event.data.get("incident"), int):
        about = f"incident {incident}"
    elif said := event.data.get("reason") or event.data.get("status"):
        about = str(said)
    else:
        # Times and counts differ each time the same is said; which approval is meant has to stay.
        about = re.sub(r"(?<!approval )(?<!\d)\d+", "#", event.text)
    topic = " ".join(part for part in (schedule, about, services) if part)
    if len(topic) <= TOPIC_LIMIT:
        return topic
    digest = sha256(topic.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    return f"{topic[: TOPIC_LIMIT - _DIGEST_LENGTH - 1]} {digest}"


def _headline(event: Event) -> str:
    services = ", ".join(_services(event))
    status, reason = event.data.get("status"), event.data.get("reason")
    if status is None:
        return event.text
    why = f" ({reason})" if reason else ""
    return f"{status}{why}" + (f", {services}" if services else "")


def _body(event: Event, schedule: str) -> list[str]:
    lines = [_cut(_harmless(event.text).strip(), TEXT_LIMIT)]
    if services := _services(event):
        lines.append(_one_line(f"Services: {', '.join(services)}.", TEXT_LIMIT))
    lines.append(f"Cycle {event.cycle_id} of {schedule}, {event.at.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC.")
    lines += [f"Next: {step}" for step in _next_steps(event, schedule)]
    return lines


def _next_steps(event: Event, schedule: str) -> list[str]:
    """What a person types: first what helps, then what explains."""
    steps = []
    match event.data.get("reason"):
        case "approval":
            steps.append("`opsladder approvals` shows the call, and how to let it run or refuse it")
        case "budget":
            steps.append(f"`opsladder cycle {schedule} --approve-budget` goes on at once")
        case "switch":
            steps.append(f"`opsladder unpause`, then `opsladder cycle {schedule}`")
        case _:
            pass
    if isinstance(incident := event.data.get("incident"), int):
        steps.append(f"`opsladder incident {incident}`")
    steps.append(f"`opsladder chain --cycle {event.cycle_id}`")
    if event.session_id is not None:
        steps.append(f"`opsladder session {event.session_id}`")
    return steps


def _services(event: Event) -> list[str]:
    named = event.data.get("services")
    return [_one_line(str(name), TITLE_LIMIT) for name in named] if isinstance(named, list | tuple) else []


def _one_line(text: str, limit: int) -> str:
    return _cut(" ".join(_harmless(text).split()), limit)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _harmless(text: str) -> str:
    """Without control characters: it may come from a model, a tool or a log."""
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)
