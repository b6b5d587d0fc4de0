"""What the doctor says about standing for years, with records and clocks of the test's own."""

import datetime as dt
import os
from pathlib import Path

import pytest

from supervisor.cli import doctor_service
from supervisor.cli.doctor_service import standing
from supervisor.cli.findings import Finding, Grade
from supervisor.model.cycle import Trigger
from supervisor.service.units import STATE_LINE, WORK_LINE, units
from supervisor.settings import Settings, load_settings
from supervisor.store import Owner, open_store

HOURLY = '[[schedules]]\nname = "hourly"\nevery = "1h"\n'
NOW = dt.datetime.now(dt.UTC)


def settings_with(tmp_path: Path, config: str) -> Settings:
    file = tmp_path / "opsladder.toml"
    file.write_text(config)
    environ = {"HOME": str(tmp_path), "OPSLADDER_STATE__DIR": str(tmp_path / "state")}
    (tmp_path / "state").mkdir(mode=0o700)
    return load_settings(file, environ, cwd=tmp_path)


def found(settings: Settings, check: str) -> list[Finding]:
    return [finding for finding in standing(settings) if finding.check == check]


def test_a_schedule_that_should_have_fired_is_named(tmp_path: Path) -> None:
    settings = settings_with(tmp_path, HOURLY)
    with open_store(settings.database_url()) as store:
        store.register(["hourly"], NOW - dt.timedelta(hours=5))

    [late] = found(settings, "firings")
    assert late.grade is Grade.WARNING
    assert late.detail.startswith("hourly was due at ")


def test_a_schedule_that_is_up_to_date_is_not(tmp_path: Path) -> None:
    settings = settings_with(tmp_path, HOURLY)
    with open_store(settings.database_url()) as store:
        store.register(["hourly"], NOW)

    assert found(settings, "firings") == []


def test_a_clock_behind_the_records_is_noticed(tmp_path: Path) -> None:
    settings = settings_with(tmp_path, HOURLY)
    with open_store(settings.database_url()) as store:
        store.begin_cycle(
            schedule="hourly",
            trigger=Trigger.MANUAL,
            dry_run=False,
            owner=Owner(host="h", pid=1, started=1.0),
            now=NOW + dt.timedelta(days=1),
        )

    [clock] = found(settings, "clock")
    assert clock.remedy is not None


def test_little_room_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_with(tmp_path, HOURLY)
    assert found(settings, "room")[0].grade is Grade.OK
    monkeypatch.setattr(doctor_service, "_LITTLE_ROOM", 1 << 80)
    assert found(settings, "room")[0].grade is Grade.WARNING


def test_the_room_is_that_of_the_disk_on_which_directories_will_be_made(tmp_path: Path) -> None:
    fresh = load_settings(None, {"HOME": str(tmp_path)}, cwd=tmp_path)

    [room] = found(fresh, "room")

    assert (room.grade, room.detail.endswith(f" are free at {tmp_path}")) == (Grade.OK, True)


def test_nobody_who_is_told_is_a_warning_and_somebody_is_not(tmp_path: Path) -> None:
    assert found(settings_with(tmp_path, HOURLY), "messages")[0].grade is Grade.WARNING
    (tmp_path / "other").mkdir()
    told = settings_with(tmp_path / "other", HOURLY + '[notify]\ncritical = ["json://127.0.0.1:9/"]\n')
    assert found(told, "messages")[0].grade is Grade.OK


def test_an_address_that_cannot_be_read_is_a_problem_with_its_remedy(tmp_path: Path) -> None:
    [messages] = found(settings_with(tmp_path, '[notify]\ncritical = ["nonsense://x"]\n'), "messages")
    assert (messages.grade, "opsladder.toml:2: notify.critical.1: " in messages.detail) == (Grade.PROBLEM, True)
    assert messages.remedy == "Correct it; `opsladder notify test` tries it."


@pytest.mark.parametrize("place", ["/opt/opsladder", "/opt/100% run it"], ids=["ordinary", "odd"])
def test_installed_units_are_compared_with_those_of_this_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(doctor_service, "SYSTEM_PLACE", tmp_path / "units")
    settings = settings_with(tmp_path, HOURLY)
    assert found(settings, "units") == []

    (tmp_path / "units").mkdir()
    for unit in units(Path(place, "opsladder"), user=False):
        (tmp_path / "units" / unit.name).write_text(unit.text)
    [same] = found(settings, "units")
    assert same.grade is Grade.OK

    service = tmp_path / "units" / "opsladder.service"
    service.write_text(service.read_text().replace("WatchdogSec", "TimeoutAbortSec"))
    [other] = found(settings, "units")
    assert (other.grade, "opsladder systemd install" in (other.remedy or "")) == (Grade.WARNING, True)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed unit that reads a configuration of the test's own, which says where the records are."""
    monkeypatch.setattr(doctor_service, "SYSTEM_PLACE", tmp_path / "units")
    (tmp_path / "units").mkdir()
    config = tmp_path / "the service's $1.toml"
    config.write_text('[state]\ndir = "/srv/opsladder"\n')
    for unit in units(Path("/opt/opsladder"), user=False, config=config):
        (tmp_path / "units" / unit.name).write_text(unit.text)
    return config


def test_a_service_whose_configuration_says_where_its_records_are_is_seen_by_everybody(
    tmp_path: Path, service: Path
) -> None:
    settings = settings_with(tmp_path, HOURLY)
    assert found(settings, "service") == []
    [unit] = found(settings, "units")
    assert unit.grade is Grade.OK


def test_a_service_whose_configuration_leaves_its_records_to_chance_is_a_warning(tmp_path: Path, service: Path) -> None:
    service.write_text("[escalation]\nmax_tier = 1\n")

    [warning] = found(settings_with(tmp_path, HOURLY), "service")
    assert (warning.grade, str(service) in warning.detail) == (Grade.WARNING, True)
    assert f"{STATE_LINE} under [state]" in (warning.remedy or "")
    assert f"{WORK_LINE} under [claude]" in (warning.remedy or "")


def test_of_a_service_that_is_masked_nothing_is_said(tmp_path: Path, service: Path) -> None:
    service.unlink()
    unit = tmp_path / "units" / "opsladder.service"
    unit.unlink()
    unit.symlink_to(os.devnull)

    assert found(settings_with(tmp_path, HOURLY), "service") == []


def test_a_service_whose_configuration_is_gone_is_a_warning(tmp_path: Path, service: Path) -> None:
    service.unlink()

    [warning] = found(settings_with(tmp_path, HOURLY), "service")
    assert (warning.grade, f"{service} does not exist yet" in warning.detail) == (Grade.WARNING, True)
    assert "`opsladder init --config " in (warning.remedy or "")


SETS = "[Service]\nEnvironment=HOME=/var/lib/opsladder\nEnvironment=OPSLADDER_STATE__DIR=/var/lib/opsladder/state\n"


@pytest.mark.parametrize("name", ["opsladder.service", "opsladder.service.d/override.conf"], ids=["unit", "drop-in"])
def test_a_unit_that_says_itself_where_the_records_are_is_a_warning(tmp_path: Path, service: Path, name: str) -> None:
    file = tmp_path / "units" / name
    file.parent.mkdir(exist_ok=True)
    before = file.read_text() if file.exists() else ""
    file.write_text(before + SETS)

    [warning] = found(settings_with(tmp_path, HOURLY), "service")
    assert (warning.grade, f"{file} sets OPSLADDER_STATE__DIR" in warning.detail) == (Grade.WARNING, True)
    assert f"Take it out of {file}" in (warning.remedy or "")
    assert "under [state]" in (warning.remedy or "")
