"""Windows in which nothing starts: how they are written, and what they cover."""

import datetime as dt

import pytest

from supervisor.decide.blackout import read_blackout


def wall(day: str, time: str) -> dt.datetime:
    number = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"].index(day)
    # The second of March 2026 is a Monday.
    return dt.datetime.combine(dt.date(2026, 3, 2 + number), dt.time.fromisoformat(time), tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("window", "covered", "free"),
    [
        pytest.param(
            "02:00-03:00",
            [("mon", "02:00"), ("sun", "02:59:59")],
            [("mon", "01:59:59"), ("sun", "03:00"), ("wed", "14:30")],
            id="every day",
        ),
        pytest.param(
            "22:30-06:00",
            [("mon", "22:30"), ("tue", "00:00"), ("sun", "05:59")],
            [("mon", "22:29"), ("tue", "06:00"), ("fri", "12:00")],
            id="over midnight",
        ),
        pytest.param(
            "Sat 22:00-Sun 06:00",
            [("sat", "22:00"), ("sun", "05:59")],
            [("sat", "21:59"), ("sun", "06:00"), ("fri", "23:00"), ("mon", "03:00")],
            id="every week",
        ),
        pytest.param(
            "fri 18:00 - mon 07:00",
            [("fri", "18:00"), ("sat", "12:00"), ("sun", "23:59"), ("mon", "06:59")],
            [("fri", "17:59"), ("mon", "07:00"), ("wed", "00:00")],
            id="over the end of the week",
        ),
        pytest.param(
            "MON 09:00-MON 08:00",
            [("mon", "09:00"), ("sun", "12:00"), ("mon", "07:59")],
            [("mon", "08:00"), ("mon", "08:59")],
            id="all but an hour",
        ),
    ],
)
def test_a_window_covers_its_beginning_and_not_its_end(
    window: str, covered: list[tuple[str, str]], free: list[tuple[str, str]]
) -> None:
    found = read_blackout(window)

    assert [moment for moment in covered if not found.covers(wall(*moment))] == []
    assert [moment for moment in free if found.covers(wall(*moment))] == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "like", id="nothing"),
        pytest.param("02:00", "like", id="no end"),
        pytest.param("24:00-25:00", "like", id="no such hour"),
        pytest.param("02:60-03:00", "like", id="no such minute"),
        pytest.param("2:00-3:00", "like", id="one digit"),
        pytest.param("Sat 22:00-06:00", "like", id="only one day"),
        pytest.param("Sat-Sun", "like", id="no times"),
        pytest.param("Sam 22:00-Sun 06:00", "Sam is none of", id="no such day"),
        pytest.param("02:00-02:00", "never or always", id="empty"),
        pytest.param("02:00–03:00", "like", id="a long dash"),
    ],
)
def test_anything_else_is_no_window(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_blackout(text)
