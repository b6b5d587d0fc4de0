"""`opsladder notify`: a test message right now, and a list of what was told."""

import datetime as dt
from collections.abc import Iterator

import pytest
from receiver import Receiver, receiving

from supervisor.model.cycle import CycleStatus, EventKind, NewEvent
from supervisor.model.report import Level
from supervisor.notify import deliver_due
from supervisor.settings import load_settings
from supervisor.store import open_store
from tests.cli.command_line import CommandLine
from tests.store.store_examples import begin

SECRET = "hook-12345678"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as started:
        yield started


def test_a_test_message_arrives_and_the_address_is_not_shown(opsladder: CommandLine, receiver: Receiver) -> None:
    done = opsladder.run("notify", "test", OPSLADDER_NOTIFY__WARNING=receiver.url(f"/{SECRET}"))

    assert (done.exit_code, done.out, done.err) == (0, "✓ warning.1 (json://…): arrived\n", "")
    [said] = receiver.at(f"/{SECRET}")
    assert said["title"] == "[warning] opsladder test"


def test_one_that_does_not_arrive_is_named_with_the_reason(opsladder: CommandLine, receiver: Receiver) -> None:
    with receiving() as broken:
        broken.status = 403
        addresses = f"{receiver.url('/a')}\n{broken.url(f'/{SECRET}')}"
        done = opsladder.run("notify", "test", "--level", "critical", OPSLADDER_NOTIFY__CRITICAL=addresses)

    assert done.exit_code == 1
    first, second = done.out.splitlines()
    assert first == "✓ critical.1 (json://…): arrived"
    assert second.startswith("✗ critical.2 (json://…): ")
    assert "403" in second
    assert SECRET not in done.out + done.err


REFUSED = {
    "nobody": ({}, ("test",), "Nobody is told of what is warning."),
    "no such level": ({}, ("test", "--level", "loud"), "There is no level 'loud'."),
    "unknown service": ({"OPSLADDER_NOTIFY__WARNING": f"nonsense://{SECRET}"}, ("test",), "notify.warning.1: "),
    "no address": ({"OPSLADDER_NOTIFY__WARNING": SECRET}, ("test",), "notify.warning.1: "),
}


@pytest.mark.parametrize(("env", "arguments", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_what_makes_no_sense_is_refused(
    opsladder: CommandLine, env: dict[str, str], arguments: tuple[str, ...], sentence: str
) -> None:
    done = opsladder.run("notify", *arguments, **env)
    assert (done.exit_code, done.out) == (2, "")
    assert sentence in done.err
    assert SECRET not in done.err


def test_before_anything_is_told_the_list_says_whether_anybody_would_be(opsladder: CommandLine) -> None:
    nobody = opsladder.run("notify", "list")
    assert nobody.out == "Nobody was told anything yet, and [notify] names nobody to tell.\n"
    somebody = opsladder.run("notify", "list", OPSLADDER_NOTIFY__WARNING="json://localhost")
    assert somebody.out == "Nobody was told anything yet.\n"
    assert opsladder.run("notify", "list", "--json").document == {"schema": "opsladder.deliveries/1", "deliveries": []}


@pytest.fixture
def told(opsladder: CommandLine, receiver: Receiver) -> dict[str, str]:
    """One message that arrived, one that was held back, one that only one of two got; and the environment of it."""
    with receiving() as broken:
        broken.status = 500
        urls = {"OPSLADDER_NOTIFY__WARNING": receiver.url("/w"), "OPSLADDER_NOTIFY__CRITICAL": broken.url(f"/{SECRET}")}
        settings = load_settings(None, {**opsladder.environment(), **urls}, cwd=opsladder.work)
        now = dt.datetime.now(dt.UTC)
        with open_store(settings.database_url()) as store:
            for level, reason in (
                (Level.WARNING, "max_tier"),
                (Level.WARNING, "max_tier"),
                (Level.CRITICAL, "top_tier"),
            ):
                cycle = begin(store, now=now)
                data = {"status": "unresolved", "reason": reason, "services": ["web"]}
                event = NewEvent(kind=EventKind.NOTICE, at=now, level=level, text="web is down \x1b[31m", data=data)
                store.append_events(cycle.id, [event])
                store.finish_cycle(cycle.id, status=CycleStatus.UNRESOLVED, reason=reason, detail=None, now=now)
            deliver_due(store, settings, now=now, at_once=True)
    return urls


def test_the_list_says_what_became_of_each_and_why(opsladder: CommandLine, told: dict[str, str]) -> None:
    done = opsladder.run("notify", "list", **told)

    assert (done.exit_code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].endswith("… waiting    [critical] default: unresolved (top_tier), web")
    assert lines[1].startswith("  critical.1 (json://…): ")
    assert "1 attempt so far, the next one at " in done.out
    assert lines[-2].endswith("- held back  [warning] default: unresolved (max_tier), web")
    assert lines[-1].endswith("✓ sent       [warning] default: unresolved (max_tier), web")
    assert SECRET not in done.out
    assert "\x1b" not in done.out


def test_the_list_as_a_document(opsladder: CommandLine, told: dict[str, str]) -> None:
    document = opsladder.run("notify", "list", "--json", "--limit", "2", **told).document

    assert document["schema"] == "opsladder.deliveries/1"
    waiting, held_back = document["deliveries"]
    assert (waiting["status"], waiting["attempts"], waiting["sent_at"]) == ("waiting", 1, None)
    assert [missed["target"] for missed in waiting["missed"]] == ["critical.1 (json://…)"]
    assert waiting["next_try_at"].endswith("Z")
    assert (held_back["status"], held_back["next_try_at"], held_back["missed"]) == ("held_back", None, [])
    assert (held_back["level"], held_back["schedule"], held_back["cycle"]) == ("warning", "default", 2)
