"""What people are told of a notice, and when the same is held back."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.decide.telling import (
    HELD_BACK,
    STALE_AFTER,
    TITLE_LIMIT,
    TOPIC_LIMIT,
    Earlier,
    Judgement,
    Telling,
    judge,
    message,
    ping_for,
    rank,
    with_held_back,
)
from supervisor.model.cycle import CycleStatus, Event, EventKind
from supervisor.model.report import Level

NOON = dt.datetime(2026, 3, 1, 12, 0, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
INFO, WARNING, CRITICAL = Level


def notice(text: str = "Something happened.", *, level: Level = CRITICAL, number: int = 7, **data: object) -> Event:
    return Event(id=number, cycle_id=42, kind=EventKind.NOTICE, at=NOON, text=text, level=level, data=data)


def told(minutes_ago: float, level: Level = CRITICAL) -> Earlier:
    return Earlier(level=level, at=NOON - dt.timedelta(minutes=minutes_ago), told=True)


def held(minutes_ago: float, level: Level = CRITICAL) -> Earlier:
    return Earlier(level=level, at=NOON - dt.timedelta(minutes=minutes_ago), told=False)


JUDGED = {
    "nothing before": (WARNING, [], Judgement(telling=Telling.FIRST)),
    "told a moment ago": (WARNING, [told(5, WARNING)], Judgement(telling=Telling.REPEATED)),
    "told just within the time": (CRITICAL, [told(59.9)], Judgement(telling=Telling.REPEATED)),
    "told as long ago as the time": (CRITICAL, [told(60)], Judgement(telling=Telling.AGAIN)),
    "a held one does not begin the time anew": (
        CRITICAL,
        [held(10), held(40), told(61)],
        Judgement(telling=Telling.AGAIN, held_back=2),
    ),
    "told by a clock that is ahead": (CRITICAL, [told(-1)], Judgement(telling=Telling.REPEATED)),
    "told by a clock that was put back since": (CRITICAL, [told(-180)], Judgement(telling=Telling.AGAIN)),
    "graver": (CRITICAL, [held(1, WARNING), told(5, WARNING)], Judgement(telling=Telling.RISEN, held_back=1)),
    "less grave": (INFO, [told(5, WARNING)], Judgement(telling=Telling.REPEATED)),
    "graver than the last, not than the one before": (
        CRITICAL,
        [told(5, WARNING), told(20, CRITICAL)],
        Judgement(telling=Telling.REPEATED),
    ),
    "graver than what was told within the time": (
        CRITICAL,
        [told(5, WARNING), told(70, CRITICAL)],
        Judgement(telling=Telling.RISEN),
    ),
    "never told, only held back": (WARNING, [held(5), held(9)], Judgement(telling=Telling.FIRST, held_back=2)),
}


@pytest.mark.parametrize(("level", "earlier", "judgement"), JUDGED.values(), ids=JUDGED.keys())
def test_whether_a_notice_is_told(level: Level, earlier: list[Earlier], judgement: Judgement) -> None:
    assert judge(level, NOON, earlier, repeat=HOUR, now=NOON) == judgement


def test_what_happened_too_long_ago_is_held_back_however_grave() -> None:
    assert judge(CRITICAL, NOON - STALE_AFTER, [], repeat=HOUR, now=NOON).telling is Telling.STALE
    moment = dt.timedelta(seconds=1)
    assert judge(CRITICAL, NOON - STALE_AFTER + moment, [], repeat=HOUR, now=NOON).telling is Telling.FIRST


FLAPPING = st.lists(st.tuples(st.integers(0, 40), st.sampled_from(Level)), max_size=60)


@given(FLAPPING, st.integers(1, 120))
def test_however_it_flaps_a_level_is_told_once_in_the_time_and_none_is_forgotten(
    beats: list[tuple[int, Level]], repeat_minutes: int
) -> None:
    repeat, now = dt.timedelta(minutes=repeat_minutes), NOON
    past: list[Earlier] = []
    accounted = 0
    for wait, level in beats:
        now += dt.timedelta(minutes=wait)
        judged = judge(level, now, past, repeat=repeat, now=now)
        is_told = judged.telling not in HELD_BACK
        if is_told:
            recent = [one for one in past if one.told and one.at > now - repeat]
            assert all(rank(one.level) < rank(level) for one in recent)
            accounted += 1 + judged.held_back
            assert accounted == len(past) + 1
        past.insert(0, Earlier(level=level, at=now, told=is_told))
    if beats:
        assert past[-1].told


def test_the_same_trouble_of_a_schedule_is_one_topic_whatever_the_words() -> None:
    one = notice("web is down since 12:01", status="unresolved", reason="top_tier", services=["web", "api"])
    two = notice("no answer from web", number=9, status="unresolved", reason="top_tier", services=["api", "web"])

    assert message(one, "shop").topic == message(two, "shop").topic


OTHER_TOPICS = {
    "another reason": notice(status="failed", reason="network", services=["web"]),
    "another service": notice(status="failed", reason="overloaded", services=["api"]),
    "no service": notice(status="failed", reason="overloaded"),
    "an incident": notice(incident=3, what="opened"),
    "another incident": notice(incident=4, what="opened"),
    "an approval": notice(status="paused", reason="approval"),
    "another approval": notice(number=8, status="paused", reason="approval"),
    "a budget that is used up": notice(status="paused", reason="budget"),
    "what was approved is used up too": notice(number=8, status="paused", reason="budget"),
    "only words": notice("The guard was bypassed: Bash ran unasked."),
    "other words": notice("Tier 2 was kept from acting: web was restarted 2 times since 09:10."),
    "a question": notice("Tier 2 asks for approval 7: Bash: reboot (until 2026-03-01)"),
    "the same question again": notice("Tier 2 asks for approval 8: Bash: reboot (until 2026-03-01)"),
}


def test_what_is_not_the_same_has_topics_of_its_own() -> None:
    topics = [message(event, "shop").topic for event in OTHER_TOPICS.values()]
    topics.append(message(OTHER_TOPICS["only words"], "other").topic)
    assert len(set(topics)) == len(topics)


def test_times_and_counts_in_words_make_no_other_topic() -> None:
    first = notice("Tier 2 was kept from acting: web may be restarted from 09:10 on, 2 of 2 used.")
    second = notice("Tier 2 was kept from acting: web may be restarted from 13:55 on, 3 of 2 used.", number=8)
    assert message(first, "shop").topic == message(second, "shop").topic


LEVELS = {
    "as recorded": (CRITICAL, {"status": "unresolved", "reason": "top_tier"}, CRITICAL),
    "a warning stays one": (WARNING, {"incident": 3}, WARNING),
    "interrupted, and goes on by itself": (CRITICAL, {"status": "paused", "reason": "interrupted"}, WARNING),
    "a usage limit that passes": (CRITICAL, {"status": "paused", "reason": "usage_limit"}, WARNING),
    "an approval does not pass": (CRITICAL, {"status": "paused", "reason": "approval"}, CRITICAL),
    "a run that was interrupted too often": (CRITICAL, {"status": "failed", "reason": "interrupted"}, CRITICAL),
    "information": (INFO, {"status": "paused", "reason": "interrupted"}, INFO),
}


@pytest.mark.parametrize(("recorded", "data", "level"), LEVELS.values(), ids=LEVELS.keys())
def test_how_grave_a_notice_is(recorded: Level, data: dict[str, object], level: Level) -> None:
    assert message(notice(level=recorded, **data), "shop").level is level


NEXT = {
    "always": ({"status": "failed", "reason": "network"}, "`opsladder chain --cycle 42`"),
    "approval": ({"status": "paused", "reason": "approval"}, "`opsladder approvals`"),
    "budget": ({"status": "paused", "reason": "budget"}, "`opsladder cycle shop --approve-budget`"),
    "switch": ({"status": "paused", "reason": "switch"}, "`opsladder unpause`"),
    "incident": ({"incident": 3, "what": "opened"}, "`opsladder incident 3`"),
}


@pytest.mark.parametrize(("data", "typed"), NEXT.values(), ids=NEXT.keys())
def test_a_message_says_what_to_type_next(data: dict[str, object], typed: str) -> None:
    assert typed in message(notice(**data), "shop").body


def test_a_message_says_what_of_what_and_when() -> None:
    said = message(notice("web does not answer.", status="unresolved", reason="top_tier", services=["web"]), "shop")

    assert said.title == "shop: unresolved (top_tier), web"
    what, services, when, *_ = said.body.splitlines()
    assert (what, services) == ("web does not answer.", "Services: web.")
    assert when == "Cycle 42 of shop, 2026-03-01 12:00:00 UTC."


def test_how_many_were_held_back_is_said_only_when_any_were() -> None:
    assert with_held_back("body", 0) == "body"
    assert with_held_back("body", 3) == "body\nHeld back since the last message about this: 3."


ANYTHING = st.one_of(st.none(), st.text(max_size=50), st.integers(), st.lists(st.text(max_size=2_000), max_size=30))


@given(
    st.text(max_size=5_000), st.dictionaries(st.sampled_from(["status", "reason", "services", "incident"]), ANYTHING)
)
def test_whatever_a_notice_holds_a_message_is_short_and_has_nothing_a_terminal_obeys(
    text: str, data: dict[str, object]
) -> None:
    said = message(notice(text, **data), "shop")

    assert len(said.title) <= TITLE_LIMIT
    assert len(said.topic) <= TOPIC_LIMIT
    assert len(said.body) < 2_500
    assert said.title.isprintable()
    assert all(line.replace("\t", "").isprintable() for line in said.body.split("\n"))


def test_long_topics_that_differ_at_their_end_stay_apart() -> None:
    first, second = (notice(reason="top_tier", services=["x" * 100, "y" * 100, "z" * 100 + end]) for end in "ab")
    assert message(first, "shop").topic != message(second, "shop").topic


@pytest.mark.parametrize("status", CycleStatus)
def test_what_a_dead_mans_switch_hears(status: CycleStatus) -> None:
    heard = {
        CycleStatus.HEALTHY: True,
        CycleStatus.RESOLVED: True,
        CycleStatus.FAILED: False,
        CycleStatus.UNRESOLVED: False,
        CycleStatus.BLOCKED: False,
    }
    assert ping_for(status) is heard.get(status)
