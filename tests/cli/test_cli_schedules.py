"""Schedules as a person sees them: when they fire, how the last time went, what was missed."""

import datetime as dt
from pathlib import Path

import pytest
from rich.cells import cell_len

from supervisor.cli.schedules import next_start
from supervisor.model.cycle import CycleStatus
from supervisor.settings import load_settings
from supervisor.store import open_store
from supervisor.store.tallies import Tally, TallyName
from tests.cli.command_line import CommandLine, Onlooker, command_line
from tests.store.store_examples import begin

CONFIG = """
[[schedules]]
name = "web"
every = "15m"

[[schedules]]
name = "a-long-name-for-the-nightly-look"
cron = "30 2 * * mon-fri"
timezone = "America/Argentina/ComodRivadavia"
jitter_seconds = 600

[[schedules]]
name = "quiet"
every = "1h"
blackout = ["00:30-00:00"]

[[schedules]]
name = "by-hand"
"""
LAST = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def opsladder(tmp_path_factory: pytest.TempPathFactory) -> Onlooker:
    made = command_line(tmp_path_factory.mktemp("schedules"))
    made.state.mkdir(mode=0o700)
    (made.work / "opsladder.toml").write_text(CONFIG, encoding="utf-8")
    with open_store(f"sqlite:///{made.state}/opsladder.db") as store:
        cycle = begin(store, "web", now=LAST)
        end = {"status": CycleStatus.UNRESOLVED, "reason": "top_tier", "detail": "web is still down"}
        store.finish_cycle(cycle.id, now=LAST + dt.timedelta(minutes=5), **end)
        begin(store, "by-hand", now=LAST)
        store.tally(Tally.of(TallyName.MISSED_FIRES, 3, schedule="web"))
    return Onlooker(directory=made.directory, env=made.env)


def test_the_document_has_the_next_firing_the_last_result_and_what_was_missed(opsladder: Onlooker) -> None:
    document = opsladder.run("schedules", "--json").document
    web, nightly, _, by_hand = document["schedules"]
    now = dt.datetime.now(dt.UTC)

    assert document["schema"] == "opsladder.schedules/1"
    assert dt.datetime.fromisoformat(web.pop("next_fire_at")) <= now + dt.timedelta(minutes=15)
    assert web == {
        "name": "web",
        "cron": None,
        "every_seconds": 900,
        "timezone": "UTC",
        "last": {
            "cycle": 1,
            "trigger": "manual",
            "status": "unresolved",
            "reason": "top_tier",
            "started_at": "2026-03-01T12:00:00.000Z",
            "ended_at": "2026-03-01T12:05:00.000Z",
        },
        "missed": 3,
    }
    assert (nightly["cron"], nightly["last"], nightly["missed"]) == ("30 2 * * mon-fri", None, 0)
    assert nightly["next_fire_at"] is not None
    assert (by_hand["next_fire_at"], by_hand["last"]["status"]) == (None, "running")


def test_the_next_firing_is_one_that_no_window_holds_back(opsladder: Onlooker) -> None:
    quiet = opsladder.run("schedules", "--json").document["schedules"][2]

    assert quiet["next_fire_at"].endswith("T00:00:00.000Z")


def test_a_person_reads_it_at_80_columns(opsladder: Onlooker) -> None:
    out = opsladder.run("schedules").out

    assert [line for line in out.splitlines() if cell_len(line) > 80] == []
    assert out.splitlines()[0].split() == ["schedule", "when", "next", "(UTC)", "last", "(UTC)", "missed"]
    assert out.splitlines()[1].split()[-3:] == ["2026-03-01", "12:00", "3"]
    for text in ("every 15m", "✗ unresolved", "(top_tier)", "by hand", "… running", "30 2 * * mon-fri"):
        assert text in out


def test_without_records_or_a_configuration_there_is_one_schedule_for_people(tmp_path: Path) -> None:
    bare: CommandLine = command_line(tmp_path)
    done = bare.run("schedules")

    assert (done.exit_code, done.err) == (0, "")
    assert "by hand" in done.out
    assert not bare.state.exists()


@pytest.mark.parametrize("every", ["10s", "1m", "1h"])
def test_the_next_start_is_after_a_window_however_many_it_holds_back(tmp_path: Path, every: str) -> None:
    file = tmp_path / "opsladder.toml"
    file.write_text(f'[[schedules]]\nname = "web"\nevery = "{every}"\nblackout = ["Sat 00:00-Mon 00:00"]\n')
    settings = load_settings(file, {"HOME": str(tmp_path)}, cwd=tmp_path)

    on_saturday = dt.datetime(2026, 11, 14, 1, tzinfo=dt.UTC)

    assert next_start(settings, settings.schedules[0], on_saturday) == dt.datetime(2026, 11, 16, tzinfo=dt.UTC)
