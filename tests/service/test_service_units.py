"""The unit files, by systemd's own judgement."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from supervisor.service.units import units

ROOT = Path(__file__).resolve().parent.parent.parent
ANALYZE = shutil.which("systemd-analyze")
COMMAND = Path("/bin/true")


@pytest.fixture
def analyze() -> str:
    if ANALYZE is None:
        if os.environ.get("OPSLADDER_NO_SKIP"):
            pytest.fail("systemd-analyze is not installed")
        pytest.skip("systemd-analyze is not installed")
    return ANALYZE


def placed(directory: Path, *, user: bool) -> list[Path]:
    directory.mkdir(exist_ok=True)
    for unit in units(COMMAND, user=user):
        (directory / unit.name).write_text(unit.text)
    return sorted(directory.iterdir())


@pytest.mark.parametrize("user", [False, True], ids=["system", "user"])
def test_the_units_are_clean(analyze: str, tmp_path: Path, user: bool) -> None:
    scope = ["--user"] if user else []
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    for file in placed(tmp_path / "units", user=user):
        done = subprocess.run(
            [analyze, *scope, "verify", str(file)], capture_output=True, text=True, check=False, env=env
        )
        said = [line for line in (done.stdout + done.stderr).splitlines() if "opsladder" in line]
        assert (done.returncode, said) == (0, []), done.stderr


def test_the_service_is_exposed_by_at_most_two_of_ten(analyze: str, tmp_path: Path) -> None:
    for file in placed(tmp_path / "units", user=False):
        if file.suffix != ".service":
            continue
        done = subprocess.run(
            [analyze, "security", "--offline=yes", str(file)], capture_output=True, text=True, check=False
        )
        [level] = re.findall(r"exposure level for .*?: ([\d.]+)", done.stdout)
        assert float(level) <= 2.0, done.stdout


def test_a_user_s_units_ask_for_nothing_that_only_root_can_give(tmp_path: Path) -> None:
    for file in placed(tmp_path / "units", user=True):
        text = file.read_text()
        assert "DynamicUser" not in text
        assert "/etc/" not in text
        assert "/usr/bin/env opsladder" not in text


def test_every_unit_says_in_its_first_line_what_it_is_for() -> None:
    for unit in units(COMMAND, user=False):
        assert unit.text.startswith("# ")
