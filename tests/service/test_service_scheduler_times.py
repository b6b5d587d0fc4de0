"""Due times where clocks are changed: in every IANA zone, every expected one exactly once, none out of order.

What is expected is found the slow way: by asking of every minute on the wall whether it exists, and when.
"""

import datetime as dt
from collections.abc import Iterator
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.service.triggers import ScheduleTimes
from supervisor.settings import Schedule

ZONES = sorted(available_timezones())
YEARS = range(1971, 2037)
MINUTE, HOUR, DAY = dt.timedelta(minutes=1), dt.timedelta(hours=1), dt.timedelta(days=1)


def times(place: str = "here", **keys: object) -> ScheduleTimes:
    return ScheduleTimes(Schedule(name="web", **keys), place)


def utc(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def from_to(found: ScheduleTimes, start: dt.datetime, end: dt.datetime) -> list[dt.datetime]:
    """All due times after ``start`` up to ``end``, asked for one after the other."""
    dues = []
    due = found.next_after(start)
    while due is not None and due <= end:
        dues.append(due)
        due = found.next_after(due)
    return dues


@cache
def changes(zone: str, year: int) -> list[dt.datetime]:
    """The moments of a year from which the clock of a zone is another."""
    tz, found = ZoneInfo(zone), []
    low = dt.datetime(year, 1, 1, tzinfo=dt.UTC)
    for _ in range(366):
        high = low + DAY
        if low.astimezone(tz).utcoffset() != high.astimezone(tz).utcoffset():
            found.append(_first_other(tz, low, high))
        low = high
    return found


def _first_other(tz: ZoneInfo, low: dt.datetime, high: dt.datetime) -> dt.datetime:
    before = low.astimezone(tz).utcoffset()
    while high - low > dt.timedelta(seconds=1):
        middle = low + (high - low) // 2
        if middle.astimezone(tz).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)


def moments(wall: dt.datetime, tz: ZoneInfo) -> list[dt.datetime]:
    """When a time is on the wall: once, twice or never."""
    both = [wall.replace(tzinfo=tz, fold=fold).astimezone(dt.UTC) for fold in (0, 1)]
    return sorted({at for at in both if at.astimezone(tz).replace(tzinfo=None) == wall})


def daily(at: dt.time, tz: ZoneInfo, start: dt.datetime, end: dt.datetime, change: dt.datetime) -> list[dt.datetime]:
    """When a time of the day should fire, with no other change within these days."""
    days = ((start - 2 * DAY).date() + number * DAY for number in range((end - start).days + 5))
    existing = (moments(dt.datetime.combine(day, at.replace(second=0)), tz) for day in days)
    # What does not exist is in the gap, which ends when the clock is changed.
    expected = {found[0] if found else change for found in existing}
    return sorted(due for due in expected if start < due <= end)


def walls(tz: ZoneInfo, start: dt.datetime, end: dt.datetime) -> Iterator[dt.datetime]:
    wall = (start - 25 * HOUR).astimezone(tz).replace(tzinfo=None, second=0, microsecond=0)
    last = (end + 25 * HOUR).astimezone(tz).replace(tzinfo=None)
    while wall < last:
        yield wall
        wall += MINUTE


@st.composite
def changed_clocks(draw: st.DrawFn) -> tuple[str, dt.datetime]:
    """A zone and a moment in which its clock is changed, or any moment where it never is."""
    zone, year = draw(st.sampled_from(ZONES)), draw(st.sampled_from(YEARS))
    found = changes(zone, year)
    return zone, draw(st.sampled_from(found)) if found else dt.datetime(year, 2, 28, 23, tzinfo=dt.UTC)


@settings(max_examples=120)
@given(changed_clocks(), st.integers(-100, 100))
def test_a_fixed_time_near_a_change_fires_once_a_day_and_right_after_a_gap(
    where: tuple[str, dt.datetime], away: int
) -> None:
    zone, change = where
    tz = ZoneInfo(zone)
    meant = (change + away * MINUTE).astimezone(tz)
    found = times(cron=f"{meant.minute} {meant.hour} * * *", timezone=zone)
    start, end = change - 2 * DAY, change + 2 * DAY

    assert from_to(found, start, end) == daily(meant.time(), tz, start, end, change)


@settings(max_examples=120)
@given(changed_clocks(), st.sampled_from(["*", "*/7", "0", "30", "59", "0,20,45"]))
def test_a_line_for_every_hour_goes_on_with_the_time_that_passes(where: tuple[str, dt.datetime], minute: str) -> None:
    zone, change = where
    tz = ZoneInfo(zone)
    found = times(cron=f"{minute} * * * *", timezone=zone)
    start, end = change - 3 * HOUR, change + 3 * HOUR

    wanted = {int(m) for m in minute.split(",")} if minute[0] != "*" else set(range(0, 60, int(minute[2:] or 1)))
    around = (wall for wall in walls(tz, start, end) if wall.minute in wanted)
    expected = sorted({at for wall in around for at in moments(wall, tz) if start < at <= end})

    assert from_to(found, start, end) == expected


@settings(max_examples=100)
@given(changed_clocks(), st.integers(-200_000, 200_000), st.sampled_from(["*/20 * * * *", "15 0-3 * * *", "0 3 1 * *"]))
def test_whoever_asks_in_between_gets_the_same_answer_as_who_asked_all_along(
    where: tuple[str, dt.datetime], seconds: int, line: str
) -> None:
    zone, change = where
    found = times(cron=line, timezone=zone)
    asked = change + dt.timedelta(seconds=seconds)
    due = found.next_after(asked)

    assert due > asked
    assert found.next_after(due - dt.timedelta(seconds=1)) == due
    assert due in from_to(found, asked - DAY, due)
    assert found.next_after(asked + (due - asked) / 2) == due


def test_in_no_zone_a_daily_time_is_lost_or_doubled_this_year() -> None:
    for zone in ZONES:
        tz = ZoneInfo(zone)
        for change in changes(zone, 2026):
            for hour in (0, 1, 2, 3):
                found = times(cron=f"30 {hour} * * *", timezone=zone)
                start, end = change - DAY, change + DAY
                assert from_to(found, start, end) == daily(dt.time(hour, 30), tz, start, end, change), (zone, hour)


@pytest.mark.parametrize(
    ("line", "zone", "start", "expected"),
    [
        pytest.param("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", "2026-03-29T01:00", id="in a gap: at its end"),
        pytest.param("30 2 * * *", "Europe/Berlin", "2026-03-29T01:00", "2026-03-30T00:30", id="and then as ever"),
        pytest.param("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", "2026-10-25T00:30", id="twice: the first"),
        pytest.param("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30", "2026-10-26T01:30", id="not the second"),
        pytest.param("0 0 * * *", "America/Santiago", "2026-09-05T12:00", "2026-09-06T04:00", id="a gap at midnight"),
        pytest.param(
            "30 12 * * *", "Pacific/Apia", "2011-12-29T23:00", "2011-12-30T10:00", id="a day that is left out"
        ),
        pytest.param("10 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00", "2026-10-03T15:30", id="half an hour"),
        pytest.param("*/30 * * * *", "Europe/Berlin", "2026-10-25T00:30", "2026-10-25T01:00", id="both equal hours"),
        pytest.param("30 * * * *", "Europe/Berlin", "2026-03-29T00:30", "2026-03-29T01:30", id="nothing made up for"),
        pytest.param("0 0 29 2 *", "UTC", "2026-01-01T00:00", "2028-02-29T00:00", id="a leap day"),
        pytest.param("0 0 29 2 *", "Asia/Tokyo", "2096-03-01T00:00", "2104-02-28T15:00", id="eight years without one"),
        pytest.param("0 0 last * *", "UTC", "2028-02-01T00:00", "2028-02-29T00:00", id="the last day of a month"),
    ],
)
def test_known_changes(line: str, zone: str, start: str, expected: str) -> None:
    assert times(cron=line, timezone=zone).next_after(utc(start)) == utc(expected)


@given(
    st.integers(1, 400),
    st.sampled_from(["s", "m", "h", "d"]),
    st.integers(946_684_800_000_000, 4_102_444_800_000_000),
)
def test_an_interval_keeps_its_place_whenever_it_is_asked(number: int, unit: str, asked: int) -> None:
    found = times(every=f"{number}{unit}")
    now = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=asked)
    every = number * {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit]
    due = found.next_after(now)

    assert due.timestamp() % every == 0
    assert now < due <= now + dt.timedelta(seconds=every)
    assert found.next_after(due) == due + dt.timedelta(seconds=every)


@given(st.integers(1, 86_400), st.sampled_from(["7s", "1m", "3h"]), st.integers(0, 10**9))
def test_jitter_is_the_same_for_everyone_and_never_overtakes_the_next_firing(jitter: int, every: str, at: int) -> None:
    found, other = (times(every=every, jitter_seconds=jitter) for _ in range(2))
    due = found.next_after(dt.datetime.fromtimestamp(at, dt.UTC))
    start, following = found.starts_at(due), found.next_after(due)

    assert other.starts_at(due) == start
    assert due <= start <= due + dt.timedelta(seconds=jitter)
    assert start < following <= found.starts_at(following)
    assert found.next_start(start - dt.timedelta(microseconds=1)) == start
    assert found.next_start(start) > start


def test_jitter_differs_from_place_to_place_and_from_time_to_time() -> None:
    dues = [utc(f"2026-05-{day:02}T00:00") for day in range(1, 29)]
    here, there = (times(place, every="1d", jitter_seconds=3600) for place in ("here", "there"))

    assert len({here.starts_at(due) - due for due in dues}) > 20
    assert [here.starts_at(due) for due in dues] != [there.starts_at(due) for due in dues]


def test_a_schedule_for_people_is_never_due() -> None:
    by_hand = times()

    assert by_hand.next_after(utc("2026-01-01T00:00")) is None
    assert by_hand.next_start(utc("2026-01-01T00:00")) is None
