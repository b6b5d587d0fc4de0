"""Messages to people, through the real Apprise, at a real receiver on loopback."""

import datetime as dt
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from receiver import Receiver, receiving

from supervisor.decide.dispatch import LEASE, WAITS, standing_of
from supervisor.errors import StoreError
from supervisor.model.cycle import Chain, CycleStatus, EventKind, NewEvent
from supervisor.model.delivery import DeliveryStatus
from supervisor.model.report import Level
from supervisor.notify import DeliverySummary, deliver_after_cycle, deliver_due
from supervisor.notify.deliver import ATTEMPT_SECONDS
from supervisor.settings import Settings, load_settings
from supervisor.store import Store, open_store
from tests.store.store_examples import begin

NOON = dt.datetime(2026, 3, 1, 12, 0, tzinfo=dt.UTC)
GROUP = dt.timedelta(seconds=30)
MINUTE = dt.timedelta(minutes=1)
LATER = NOON + GROUP

Configure = Callable[..., Settings]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as started:
        yield started


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """``configure(critical=[url], max_per_hour=2)``: settings with this [notify] section."""

    def with_section(schedule: str = 'name = "default"', **section: object) -> Settings:
        lines = [f"{key} = {value!r}".replace("'", '"') for key, value in section.items()]
        file = tmp_path / "opsladder.toml"
        file.write_text("\n".join(["[notify]", *lines, "[[schedules]]", schedule]))
        environ = {"HOME": str(tmp_path), "OPSLADDER_STATE__DIR": str(tmp_path / "state")}
        return load_settings(file, environ, cwd=tmp_path)

    return with_section


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/state/opsladder.db") as opened:
        yield opened


def notice(
    store: Store,
    reason: str = "top_tier",
    *,
    level: Level = Level.CRITICAL,
    at: dt.datetime = NOON,
    text: str = "Tier 3, the last one, still reports trouble with web.",
    status: CycleStatus = CycleStatus.UNRESOLVED,
) -> Chain:
    """A cycle that ended so that a person has to know."""
    cycle = begin(store, now=at)
    data = {"status": status.value, "reason": reason, "services": ["web"]}
    store.append_events(cycle.id, [NewEvent(kind=EventKind.NOTICE, at=at, level=level, text=text, data=data)])
    store.finish_cycle(cycle.id, status=status, reason=reason, detail=text, now=at)
    return store.chain(cycle.id)


def statuses(store: Store) -> list[str]:
    return [delivery.status.value for delivery in reversed(store.deliveries(100))]


def test_a_notice_arrives_with_what_why_and_what_to_type(
    store: Store, configure: Configure, receiver: Receiver
) -> None:
    settings = configure(critical=[receiver.url()])
    chain = notice(store)

    assert deliver_due(store, settings, now=NOON) == DeliverySummary(collected=1)
    assert receiver.messages == [], "it waits for others to go with it"
    assert deliver_due(store, settings, now=LATER) == DeliverySummary(sent=1)
    assert deliver_due(store, settings, now=LATER + MINUTE) == DeliverySummary()

    [(_, said)] = receiver.messages
    assert said["title"] == "[critical] default: unresolved (top_tier), web"
    assert said["type"] == "failure"
    assert "still reports trouble with web" in said["message"]
    assert f"`opsladder chain --cycle {chain.cycle.id}`" in said["message"]
    [delivery] = store.deliveries(10)
    assert (delivery.status, delivery.sent_at, delivery.error) == (DeliveryStatus.SENT, LATER, None)


def test_each_level_goes_to_its_own_targets(store: Store, configure: Configure, receiver: Receiver) -> None:
    settings = configure(critical=[receiver.url("/pager"), receiver.url("/chat")], warning=[receiver.url("/chat")])
    notice(store, "one", level=Level.WARNING)
    notice(store, "two", level=Level.CRITICAL)
    notice(store, "three", level=Level.INFO)

    deliver_due(store, settings, now=NOON, at_once=True)

    [paged] = receiver.at("/pager")
    assert "(two)" in paged["title"]
    assert "(one)" not in paged["message"]
    [chatted] = receiver.at("/chat")
    assert chatted["title"] == "[critical] default: unresolved (two), web (and 1 more)"
    assert "[warning] default: unresolved (one), web" in chatted["message"]
    assert statuses(store) == ["sent", "sent"], "nobody asked to be told of what is only for information"


def test_without_targets_nothing_is_done_and_nothing_old_is_told_later(
    store: Store, configure: Configure, receiver: Receiver
) -> None:
    notice(store, "long_ago", at=NOON - dt.timedelta(hours=2))
    notice(store, "just_now")
    assert deliver_due(store, configure(), now=NOON) == DeliverySummary()
    assert store.deliveries(10) == []

    settings = configure(critical=[receiver.url()])
    for minutes in range(3):
        deliver_due(store, settings, now=NOON + minutes * MINUTE, at_once=True)

    assert receiver.titles == ["[critical] default: unresolved (just_now), web"]


def test_a_flapping_service_is_told_once_and_then_with_how_often(
    store: Store, configure: Configure, receiver: Receiver
) -> None:
    settings = configure(critical=[receiver.url()], repeat_minutes=60)
    for minutes in (0, 15, 30, 45, 61):
        at = NOON + minutes * MINUTE
        notice(store, at=at)
        deliver_due(store, settings, now=at, at_once=True)

    assert statuses(store) == ["sent", "held_back", "held_back", "held_back", "sent"]
    first, again = (said["message"] for _, said in receiver.messages)
    assert "Held back" not in first
    assert "Held back since the last message about this: 3." in again


def test_a_rise_in_level_is_told_at_once(store: Store, configure: Configure, receiver: Receiver) -> None:
    settings = configure(warning=[receiver.url()])
    for minutes, level in enumerate((Level.WARNING, Level.CRITICAL, Level.WARNING, Level.CRITICAL)):
        at = NOON + minutes * MINUTE
        notice(store, level=level, at=at)
        deliver_due(store, settings, now=at, at_once=True)

    assert [title.split()[0] for title in receiver.titles] == ["[warning]", "[critical]"]


def test_above_the_ceiling_only_what_is_critical_passes_and_the_rest_goes_as_one(
    store: Store, configure: Configure, receiver: Receiver
) -> None:
    settings = configure(warning=[receiver.url()], max_per_hour=2)
    levels = (Level.WARNING, Level.WARNING, Level.WARNING, Level.CRITICAL, Level.WARNING)
    for minutes, level in enumerate(levels):
        at = NOON + minutes * MINUTE
        notice(store, f"reason_{minutes}", level=level, at=at)
        deliver_due(store, settings, now=at, at_once=True)

    assert [title.split("(")[1][:8] for title in receiver.titles] == ["reason_0", "reason_1", "reason_3"]
    held = [" are held back until 13:00 UTC" in said["message"] for _, said in receiver.messages]
    assert held == [False, True, False]
    deliver_due(store, settings, now=NOON + dt.timedelta(minutes=64), at_once=True)
    assert receiver.titles[3:] == ["[warning] default: unresolved (reason_2), web (and 1 more)"]
    assert statuses(store) == ["sent"] * 5


def test_however_much_waits_for_another_target_what_is_critical_goes(
    store: Store, configure: Configure, receiver: Receiver
) -> None:
    settings = configure(warning=["json://127.0.0.1:1/nobody"], critical=[receiver.url()])
    cycle = begin(store, now=NOON)
    told = [
        NewEvent(kind=EventKind.NOTICE, at=NOON, level=Level.WARNING, text="", data={"reason": f"trouble {number}"})
        for number in range(1_100)
    ]
    store.append_events(cycle.id, told)
    store.finish_cycle(cycle.id, status=CycleStatus.HEALTHY, reason=None, detail=None, now=NOON)
    deliver_due(store, settings, now=LATER, at_once=True)
    notice(store, at=LATER)

    deliver_due(store, settings, now=LATER, at_once=True)

    assert receiver.titles == ["[critical] default: unresolved (top_tier), web"]


def test_a_receiver_that_is_down_gets_it_once_when_it_is_up(store: Store, configure: Configure) -> None:
    with receiving() as gone:
        port = gone.port
        settings = configure(critical=[gone.url()])
    notice(store)

    assert deliver_due(store, settings, now=NOON, at_once=True).to_retry == 1
    [waiting] = store.deliveries(10)
    assert waiting.next_try_at == NOON + WAITS[0]
    [why] = standing_of(waiting).missed.values()
    assert why
    with receiving(port) as back:
        assert deliver_due(store, settings, now=NOON + WAITS[0] / 2) == DeliverySummary()
        assert deliver_due(store, settings, now=NOON + WAITS[0]).sent == 1
        assert deliver_due(store, settings, now=NOON + 2 * WAITS[0]) == DeliverySummary()
        assert len(back.messages) == 1


def test_only_the_target_that_missed_it_gets_it_again(store: Store, configure: Configure, receiver: Receiver) -> None:
    with receiving() as broken:
        broken.status = 500
        settings = configure(critical=[receiver.url(), broken.url()])
        notice(store)
        assert deliver_due(store, settings, now=NOON, at_once=True).to_retry == 1
        broken.status = 200
        assert deliver_due(store, settings, now=NOON + WAITS[0]).sent == 1
        assert (len(receiver.messages), len(broken.messages)) == (1, 1)


def test_what_cannot_be_delivered_for_a_day_is_given_up_and_says_why(
    store: Store, configure: Configure, receiver: Receiver
) -> None:
    settings = configure(critical=[receiver.url()])
    receiver.status = 403
    notice(store)
    now = NOON
    deliver_due(store, settings, now=now, at_once=True)
    for wait in WAITS[:-1]:
        now += wait
        assert deliver_due(store, settings, now=now).to_retry == 1
    now += WAITS[-1]
    assert deliver_due(store, settings, now=now) == DeliverySummary(failed=1)

    assert dt.timedelta(hours=22) < now - NOON < dt.timedelta(hours=24)
    [given_up] = store.deliveries(10)
    assert (given_up.status, given_up.attempts) == (DeliveryStatus.FAILED, len(WAITS) + 1)
    [why] = standing_of(given_up).missed.values()
    assert "403" in why
    assert deliver_due(store, settings, now=now + WAITS[-1]) == DeliverySummary()


def test_a_receiver_that_hangs_holds_up_neither_us_nor_another_target(
    store: Store, configure: Configure, receiver: Receiver
) -> None:
    with receiving() as stuck:
        stuck.hangs = threading.Event()
        settings = configure(critical=[f"{stuck.url()}?rto=25", receiver.url()])
        notice(store)

        done = deliver_due(store, settings, now=NOON, at_once=True, seconds=1.0)

        assert stuck.arrived.is_set()
        assert not stuck.hangs.is_set(), "it was not waited for until it let go"
        assert done == DeliverySummary(collected=1, to_retry=1)
        assert len(receiver.messages) == 1
        [delivery] = store.deliveries(10)
        assert set(standing_of(delivery).missed.values()) == {"no answer within 1 s"}


def test_an_address_that_apprise_does_not_know_is_a_reason_and_nothing_worse(
    store: Store, configure: Configure
) -> None:
    settings = configure(critical=["nonsense://very-secret-part"])
    notice(store)

    assert deliver_due(store, settings, now=NOON, at_once=True).to_retry == 1
    [delivery] = store.deliveries(10)
    assert "no address that Apprise knows" in (delivery.error or "")
    assert "very-secret-part" not in (delivery.error or "")


def test_a_message_whose_targets_were_taken_away_is_held_back(
    store: Store, configure: Configure, receiver: Receiver
) -> None:
    notice(store, level=Level.INFO)
    deliver_due(store, configure(info=[receiver.url()]), now=NOON)
    done = deliver_due(store, configure(critical=[receiver.url()]), now=LATER)
    assert (done.held_back, statuses(store), receiver.messages) == (1, ["held_back"], [])


def test_a_message_does_not_wait_for_ever_for_a_target_that_was_taken_away(
    store: Store, configure: Configure, receiver: Receiver
) -> None:
    with receiving() as broken:
        broken.status = 500
        notice(store)
        deliver_due(store, configure(critical=[receiver.url(), broken.url()]), now=NOON, at_once=True)
    deliver_due(store, configure(critical=[receiver.url()]), now=NOON + WAITS[0])
    assert (statuses(store), len(receiver.messages)) == (["sent"], 1)


DELIVERS = """
import datetime as dt, sys
from pathlib import Path
from supervisor.notify import deliver_due, sending
from supervisor.settings import load_settings
from supervisor.store import open_store
config = Path(sys.argv[1])
settings = load_settings(config, {{"HOME": str(config.parent), "OPSLADDER_STATE__DIR": str(config.parent / "state")}},
                         cwd=config.parent)
store = open_store(settings.database_url())
{prelude}
sending.load()
print("ready", flush=True)
sys.stdin.readline()
print(deliver_due(store, settings, now=dt.datetime.fromisoformat({now!r}), at_once=True,
                  seconds={seconds}).sent, flush=True)
"""


def start(
    tmp_path: Path, now: dt.datetime, prelude: str = "", *, seconds: float = ATTEMPT_SECONDS
) -> "subprocess.Popen[str]":
    program = DELIVERS.format(now=now.isoformat(), prelude=prelude, seconds=seconds)
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "opsladder.toml")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_of_several_processes_one_sends_a_message(
    store: Store, configure: Configure, receiver: Receiver, tmp_path: Path
) -> None:
    configure(critical=[receiver.url()])
    for number in range(5):
        notice(store, f"reason_{number}")
    processes = [start(tmp_path, NOON) for _ in range(3)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    sent = [int(process.communicate(timeout=60)[0]) for process in processes]

    assert sum(sent) == 5
    said = "".join(message["message"] + message["title"] for _, message in receiver.messages)
    told = [said.count(f"(reason_{number})") for number in range(5)]
    # In a group the title of the first one is also the beginning of the body.
    assert all(1 <= count <= 2 for count in told)
    assert len(receiver.messages) <= 3
    assert statuses(store) == ["sent"] * 5


@pytest.mark.parametrize(
    ("prelude", "arrived"),
    [
        ("sending.send = lambda *_, **__: __import__('os').kill(__import__('os').getpid(), 9)", 1),
        (
            "send = sending.send\n"
            "sending.send = lambda *a, **k: (send(*a, **k), __import__('os').kill(__import__('os').getpid(), 9))",
            2,
        ),
    ],
    ids=["before it is sent", "before it is recorded"],
)
def test_a_process_that_is_killed_leaves_a_message_that_the_next_one_sends(
    store: Store, configure: Configure, receiver: Receiver, tmp_path: Path, prelude: str, arrived: int
) -> None:
    settings = configure(critical=[receiver.url()])
    notice(store)
    killed = start(tmp_path, NOON, prelude)
    killed.communicate("\n", timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert statuses(store) == ["waiting"]

    assert deliver_due(store, settings, now=NOON + LEASE / 2, at_once=True) == DeliverySummary()
    assert deliver_due(store, settings, now=NOON + LEASE).sent == 1
    assert len(receiver.messages) == arrived
    assert statuses(store) == ["sent"]


def test_a_process_ends_although_a_receiver_hangs(store: Store, configure: Configure, tmp_path: Path) -> None:
    with receiving() as stuck:
        stuck.hangs = threading.Event()
        configure(critical=[f"{stuck.url()}?rto=25"])
        notice(store)
        process = start(tmp_path, NOON, seconds=0.5)
        assert process.communicate("\n", timeout=60)[0] == "0\n"
        assert (process.returncode, stuck.hangs.is_set()) == (0, False)


def test_secrets_are_masked_in_what_is_sent_even_if_the_record_knew_no_better(
    store: Store, configure: Configure, receiver: Receiver
) -> None:
    settings = configure(critical=[receiver.url("/hook-12345678")])
    notice(store, text="it said hook-12345678")
    deliver_due(store, settings, now=NOON, at_once=True)
    [said] = receiver.at("/hook-12345678")
    assert "it said [masked]" in said["message"]


def test_at_the_end_of_a_cycle_what_it_noted_is_told_without_waiting(
    store: Store, configure: Configure, receiver: Receiver
) -> None:
    ping = f'name = "default"\nping_url = "{receiver.http("/ping")}"'
    settings = configure(ping, critical=[receiver.url()])
    chain = notice(store, at=dt.datetime.now(dt.UTC))

    deliver_after_cycle(settings, store, chain)

    assert len(receiver.messages) == 1
    assert receiver.asked == ["/ping/fail"]


def test_a_store_that_is_gone_does_not_fail_the_end_of_a_cycle(
    tmp_path: Path, configure: Configure, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    settings = configure(critical=[receiver.url()])
    with open_store(f"sqlite:///{tmp_path}/gone/opsladder.db") as gone:
        chain = notice(gone)
        for file in (tmp_path / "gone").iterdir():
            file.unlink()
        gone.close()
        with pytest.raises(StoreError):
            deliver_due(gone, settings, now=NOON)
        deliver_after_cycle(settings, gone, chain)
    assert "Messages wait for the next cycle" in caplog.messages
