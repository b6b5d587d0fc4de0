"""What becomes of due times: on time, late, missed, in a window, while something runs."""

import datetime as dt
from dataclasses import dataclass

import pytest

from supervisor.decide.firing import (
    MOST,
    Fire,
    FiringPolicy,
    Misfire,
    Overlap,
    Queue,
    Skip,
    SkipReason,
    UnderWay,
    believed,
    deal,
    fire_key,
    newest,
)

SECOND, MINUTE, HOUR = dt.timedelta(seconds=1), dt.timedelta(minutes=1), dt.timedelta(hours=1)
NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
IDLE, RUNNING, WAITING = UnderWay(), UnderWay(running=True), UnderWay(waiting=True)


@dataclass
class Every:
    """Due every so often, at whole multiples since the epoch; ``asked`` counts the questions."""

    every: dt.timedelta = 10 * MINUTE
    jitter: dt.timedelta = dt.timedelta()
    asked: int = 0

    def next_after(self, moment: dt.datetime) -> dt.datetime | None:
        self.asked += 1
        epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        return epoch + ((moment - epoch) // self.every + 1) * self.every

    def starts_at(self, due: dt.datetime) -> dt.datetime:
        return due + self.jitter


class Never:
    def next_after(self, moment: dt.datetime) -> dt.datetime | None:
        return None

    def starts_at(self, due: dt.datetime) -> dt.datetime:
        return due


def policy(misfire: str = "once", overlap: str = "skip", *blackouts: dt.datetime) -> FiringPolicy:
    """Nothing starts in the minute of a blackout."""
    return FiringPolicy(
        misfire=Misfire(misfire),
        grace=MINUTE,
        overlap=Overlap(overlap),
        blacked_out=lambda moment: moment.replace(second=0, microsecond=0) in blackouts,
    )


def at(minutes: float) -> dt.datetime:
    return NOON + minutes * MINUTE


def skip(due: dt.datetime, reason: str, count: int = 1) -> Skip:
    return Skip(due=due, reason=SkipReason(reason), count=count)


@pytest.mark.parametrize(
    ("now", "rules", "under_way", "decisions", "missed", "until"),
    [
        pytest.param(-1, policy(), IDLE, (), 0, -10, id="nothing is due yet"),
        pytest.param(0, policy(), IDLE, (Fire(due=at(0)),), 0, 0, id="on time"),
        pytest.param(1, policy(), IDLE, (Fire(due=at(0)),), 0, 0, id="as late as is bearable"),
        pytest.param(1.1, policy(), IDLE, (Fire(due=at(0), made_up=True),), 1, 0, id="too late: made up"),
        pytest.param(1.1, policy("skip"), IDLE, (skip(at(0), "missed"),), 1, 0, id="too late: skipped"),
        pytest.param(35, policy(), IDLE, (Fire(due=at(30), made_up=True),), 4, 30, id="four missed: made up once"),
        pytest.param(35, policy("skip"), IDLE, (skip(at(30), "missed", 4),), 4, 30, id="four missed: skipped"),
        pytest.param(30, policy(), IDLE, (Fire(due=at(30)),), 3, 30, id="the one on time makes up for the others"),
        pytest.param(
            30, policy("skip"), IDLE, (skip(at(20), "missed", 3), Fire(due=at(30))), 3, 30, id="skipped, then on time"
        ),
        pytest.param(0, policy(), RUNNING, (skip(at(0), "overlap"),), 0, 0, id="still running: skipped"),
        pytest.param(0, policy("once", "queue"), RUNNING, (Queue(due=at(0)),), 0, 0, id="still running: queued"),
        pytest.param(0, policy("once", "queue"), WAITING, (skip(at(0), "waiting"),), 0, 0, id="one waits already"),
        pytest.param(0, policy(), WAITING, (skip(at(0), "waiting"),), 0, 0, id="one has not started yet"),
        pytest.param(35, policy(), RUNNING, (skip(at(30), "overlap"),), 4, 30, id="missed, and another runs"),
        pytest.param(
            35,
            policy("once", "queue"),
            RUNNING,
            (Queue(due=at(30), made_up=True),),
            4,
            30,
            id="missed, queued behind another",
        ),
        pytest.param(0, policy("once", "skip", at(0)), IDLE, (skip(at(0), "blackout"),), 0, 0, id="in a window"),
        pytest.param(
            1, policy("once", "skip", at(1)), IDLE, (skip(at(0), "blackout"),), 0, 0, id="a window has just opened"
        ),
        pytest.param(
            35, policy("once", "skip", at(35)), IDLE, (skip(at(30), "blackout"),), 4, 30, id="nothing is made up in one"
        ),
        pytest.param(
            35,
            policy("once", "skip", at(10), at(30)),
            IDLE,
            (Fire(due=at(30), made_up=True),),
            2,
            30,
            id="what a window held back was not missed",
        ),
        pytest.param(5, policy("once", "skip", at(0)), IDLE, (), 0, 0, id="nothing missed but in a window"),
        pytest.param(-60, policy(), IDLE, (), 0, -10, id="the clock was put back"),
    ],
)
def test_each_due_time_is_decided_once_with_a_reason(
    now: float, rules: FiringPolicy, under_way: UnderWay, decisions: tuple[object, ...], missed: int, until: float
) -> None:
    dealt = deal(Every(), rules, under_way, dealt_until=at(-10), now=at(now))

    assert dealt.decisions == decisions
    assert (dealt.missed, dealt.until) == (missed, at(until))
    again = deal(Every(), rules, under_way, dealt_until=dealt.until, now=at(now))
    assert (again.decisions, again.missed, again.until) == ((), 0, dealt.until)


def test_of_several_within_the_grace_the_first_fires_and_stands_for_the_others() -> None:
    dealt = deal(Every(20 * SECOND), policy(), IDLE, dealt_until=at(0), now=at(1))

    assert dealt.decisions == (
        Fire(due=at(1 / 3)),
        skip(at(2 / 3), "waiting"),
        skip(at(1), "waiting"),
    )
    assert dealt.until == at(1)


def test_a_firing_with_jitter_waits_for_its_start_and_is_late_only_after_that() -> None:
    late = Every(10 * MINUTE, jitter=5 * MINUTE)
    early, started, missed = (deal(late, policy(), IDLE, dealt_until=at(-10), now=at(m)) for m in (4, 5.5, 7))

    assert (early.decisions, early.until) == ((), at(-10))
    assert started.decisions == (Fire(due=at(0)),)
    assert missed.decisions == (Fire(due=at(0), made_up=True),)


@pytest.mark.parametrize("misfire", ["once", "skip"])
def test_a_clock_a_year_ahead_costs_no_more_than_a_bounded_number_of_questions(misfire: str) -> None:
    each_second = Every(SECOND)
    now = NOON + dt.timedelta(days=366)

    dealt = deal(each_second, policy(misfire), IDLE, dealt_until=NOON, now=now)

    assert each_second.asked < 2 * MOST
    assert dealt.missed == MOST
    assert dealt.until == now
    assert [type(d) for d in dealt.decisions if getattr(d, "reason", None) is not SkipReason.WAITING] == (
        [Fire] if misfire == "once" else [Skip, Fire]
    )


def test_what_never_comes_is_never_dealt_with() -> None:
    dealt = deal(Never(), policy(), IDLE, dealt_until=NOON, now=at(1000))
    assert (dealt.decisions, dealt.until) == ((), NOON)


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        pytest.param(9, None, id="none yet"),
        pytest.param(10, 10, id="the first"),
        pytest.param(1234.5, 1230, id="one of many"),
        pytest.param(10_000_000, 10_000_000, id="years later"),
    ],
)
def test_the_newest_is_found_however_many_there_are(by: float, expected: float | None) -> None:
    times = Every()

    assert newest(times, after=NOON, by=at(by)) == (None if expected is None else at(expected))
    assert times.asked < 50


@pytest.mark.parametrize(
    ("ahead", "expected"),
    [
        pytest.param(-1000, -1000, id="in the past"),
        pytest.param(59, 59, id="a clock that was put right"),
        pytest.param(61, 0, id="a clock that was wrong"),
    ],
)
def test_what_a_wrong_clock_has_left_does_not_silence_a_schedule(ahead: float, expected: float) -> None:
    assert believed(at(ahead), NOON) == at(expected)


def test_a_firing_is_named_by_its_due_time_in_utc() -> None:
    berlin = dt.timezone(HOUR)
    assert fire_key(NOON) == fire_key(NOON.astimezone(berlin)) == "2026-03-01T12:00:00Z"
