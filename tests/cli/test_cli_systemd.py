"""`opsladder systemd install`: what is put in place, and what a second time does."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

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
