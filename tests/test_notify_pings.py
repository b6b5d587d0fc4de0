"""A dead-man's switch hears how cycles end, from a real receiver's view, and never holds anything up."""

import datetime as dt
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from receiver import Receiver, receiving

from supervisor.model.cycle import Chain, Cycle, CycleStatus, Trigger
from supervisor.notify import ping, ping_after
from supervisor.settings import Settings, load_settings


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as started:
        yield started


def settings(tmp_path: Path, ping_url: str) -> Settings:
    file = tmp_path / "opsladder.toml"
    file.write_text(f'[[schedules]]\nname = "shop"\nping_url = "{ping_url}"\n[[schedules]]\nname = "quiet"\n')
    return load_settings(file, {"HOME": str(tmp_path)}, cwd=tmp_path)


def chain(status: CycleStatus, schedule: str = "shop") -> Chain:
    at = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
    cycle = Cycle(id=1, schedule=schedule, trigger=Trigger.MANUAL, status=status, dry_run=False, started_at=at)
    return Chain(cycle=cycle, sessions=())


@pytest.mark.parametrize(
    ("status", "asked"),
    [
        (CycleStatus.HEALTHY, ["/id"]),
        (CycleStatus.RESOLVED, ["/id"]),
        (CycleStatus.UNRESOLVED, ["/id/fail"]),
        (CycleStatus.FAILED, ["/id/fail"]),
        (CycleStatus.BLOCKED, ["/id/fail"]),
        (CycleStatus.PAUSED, []),
        (CycleStatus.SKIPPED, []),
    ],
)
def test_what_is_asked_for_after_a_cycle(
    tmp_path: Path, receiver: Receiver, status: CycleStatus, asked: list[str]
) -> None:
    ping_after(settings(tmp_path, receiver.http("/id")), chain(status))
    assert receiver.asked == asked


@pytest.mark.parametrize("schedule", ["quiet", "gone"])
def test_a_schedule_without_a_url_asks_nobody(tmp_path: Path, receiver: Receiver, schedule: str) -> None:
    ping_after(settings(tmp_path, receiver.http("/id")), chain(CycleStatus.HEALTHY, schedule))
    assert receiver.asked == []


@pytest.mark.parametrize(
    ("path", "fails"), [("/id", "/id/fail"), ("/id/", "/id/fail"), ("/id?rid=7", "/id/fail?rid=7"), ("", "/fail")]
)
def test_fail_goes_at_the_end_of_the_path(receiver: Receiver, path: str, fails: str) -> None:
    assert ping(receiver.http(path), False)
    assert receiver.asked == [fails]


def test_a_ping_that_is_refused_is_logged_without_its_url(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    receiver.status = 404
    assert not ping(receiver.http("/secret-id"), True, schedule="shop")
    [record] = caplog.records
    assert (record.message, record.schedule, record.why) == ("A ping did not arrive", "shop", "it answered 404")


def test_a_ping_to_nobody_fails_and_nothing_worse() -> None:
    with receiving() as gone:
        url = gone.http("/id")
    assert not ping(url, True)


@pytest.mark.parametrize("ok", [True, False])
def test_a_url_that_cannot_be_read_fails_and_nothing_worse(ok: bool, caplog: pytest.LogCaptureFixture) -> None:
    assert not ping("https://[ping.example/id", ok)
    assert [(record.message, record.why) for record in caplog.records] == [
        ("A ping did not arrive", "it cannot be asked: ValueError")
    ]


def test_a_ping_that_hangs_is_not_waited_for(receiver: Receiver) -> None:
    receiver.hangs = threading.Event()
    assert not ping(receiver.http("/id"), True, seconds=0.5)
    assert receiver.arrived.wait(5)
    assert not receiver.hangs.is_set()
