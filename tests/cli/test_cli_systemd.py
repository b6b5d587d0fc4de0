"""`opsladder systemd install`: what is put in place, and what a second time does."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.cli import systemd
from supervisor.cli.systemd import install
from supervisor.service.units import STATE_LINE, WORK_LINE, units
from tests.cli.command_line import OPSLADDER, CommandLine


def test_a_user_s_units_are_put_in_place_kept_and_renewed(opsladder: CommandLine) -> None:
    place = Path(opsladder.env["HOME"]) / ".config" / "systemd" / "user"
    expected = {unit.name: unit.text for unit in units(OPSLADDER, user=True)}

    first = opsladder.run("systemd", "install", "--user")
    assert (first.exit_code, first.err) == (0, "")
    assert {file.name: file.read_text() for file in place.iterdir()} == expected
    assert "systemctl --user enable --now opsladder.service" in first.out

    (place / "opsladder.service").write_text("[Service]\nExecStart=/bin/false\n")
    second = opsladder.run("systemd", "install", "--user")
    lines = [line.split()[0] for line in second.out.splitlines() if str(place) in line]
    assert sorted(lines) == sorted(["renewed", *["as"] * (len(expected) - 1)])
    assert (place / "opsladder.service").read_text() == expected["opsladder.service"]


def test_a_dry_run_shows_every_unit_and_writes_nothing(opsladder: CommandLine) -> None:
    home = Path(opsladder.env["HOME"])
    shown = opsladder.run("systemd", "install", "--user", "--dry-run")

    assert shown.exit_code == 0
    assert all(unit.text in shown.out for unit in units(OPSLADDER, user=True))
    assert not (home / ".config").exists()


def test_the_units_name_the_configuration_that_was_asked_for(opsladder: CommandLine) -> None:
    config = opsladder.work / "mine.toml"
    shown = opsladder.run("systemd", "install", "--user", "--dry-run", "--config", "mine.toml")

    assert shown.exit_code == 0
    assert all(unit.text in shown.out for unit in units(OPSLADDER, user=True, config=config))
    assert shown.out.count(f"--config {config}\n") == 3
    assert "%E" not in shown.out


def masked_by_link(path: Path) -> None:
    path.symlink_to(os.devnull)


@pytest.mark.parametrize("mask", [masked_by_link, Path.touch], ids=["a link to nothing", "an empty file"])
@pytest.mark.parametrize("how", [(), ("--dry-run",)], ids=["for good", "dry run"])
def test_a_masked_unit_stays_masked_and_nothing_is_put_in_place(
    opsladder: CommandLine, mask: Callable[[Path], None], how: tuple[str, ...]
) -> None:
    place = Path(opsladder.env["HOME"]) / ".config" / "systemd" / "user"
    place.mkdir(parents=True)
    # The last one in the order in which they are written, so that all others come before it.
    masked = place / max(unit.name for unit in units(OPSLADDER, user=True))
    mask(masked)

    refused = opsladder.run("systemd", "install", "--user", *how)

    assert (refused.exit_code, refused.out) == (1, "")
    assert f"nothing was installed: {masked.name}." in refused.err
    assert f"`systemctl --user unmask {masked.name}`" in refused.err
    assert list(place.iterdir()) == [masked]
    assert masked.read_text() == ""


def test_every_masked_unit_is_named_at_once(opsladder: CommandLine) -> None:
    place = Path(opsladder.env["HOME"]) / ".config" / "systemd" / "user"
    place.mkdir(parents=True)
    for name in ("opsladder.service", "opsladder-sweep.timer"):
        masked_by_link(place / name)

    refused = opsladder.run("systemd", "install", "--user")

    assert "`systemctl --user unmask opsladder-sweep.timer opsladder.service`" in refused.err


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration of a machine of the test's own, which is not there yet, and where its units go."""
    config = tmp_path / "etc" / "opsladder.toml"
    config.parent.mkdir()
    monkeypatch.setattr(systemd, "SYSTEM_PLACE", tmp_path / "units")
    monkeypatch.setattr(systemd, "SYSTEM_CONFIG", config)
    monkeypatch.setattr("sys.argv", [str(OPSLADDER)])
    return config


def said_by_an_install(capsys: pytest.CaptureFixture[str]) -> str:
    install(user=False, dry_run=False)
    return capsys.readouterr().out


def test_a_configuration_that_is_not_there_yet_is_to_be_written_first(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = said_by_an_install(capsys)

    assert f"{machine} does not exist yet" in said
    assert f"`opsladder init {machine.parent}`" in said


UNSET = {"nothing in it": "", "another setting": "[escalation]\nmax_tier = 2\n", "off": '[state]\n#dir = "/x"\n'}


@pytest.mark.parametrize("text", UNSET.values(), ids=UNSET.keys())
def test_a_configuration_that_leaves_the_records_where_they_are_is_named_with_the_lines_it_lacks(
    machine: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    machine.write_text(text)
    said = said_by_an_install(capsys)

    assert f"{machine} does not set state.dir" in said
    assert f"{STATE_LINE} under [state]" in said
    assert f"{WORK_LINE} under [claude]" in said


def test_a_configuration_that_says_where_the_records_are_needs_nothing(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.write_text('[state]\ndir = "/srv/opsladder"\n')

    assert "state.dir" not in said_by_an_install(capsys)


def test_a_configuration_that_cannot_be_read_does_not_keep_units_from_being_installed(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.write_text("[state\n")

    assert f"{machine}:1: is not TOML" in said_by_an_install(capsys)


def test_a_configuration_of_another_name_is_looked_at_instead_of_the_usual_one(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.write_text('[state]\ndir = "/srv/opsladder"\n')
    mine = machine.with_name("my own.toml")
    install(user=False, dry_run=False, config=mine)

    said = capsys.readouterr().out
    assert f"{mine} does not exist yet" in said
    assert f"`opsladder init --config '{mine}'`" in said
    assert f"The service cannot see {mine}" in said
