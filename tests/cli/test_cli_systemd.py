"""`opsladder systemd install`: what is put in place, and what a second time does."""

from pathlib import Path

from supervisor.service.units import units
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
