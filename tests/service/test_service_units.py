"""The unit files, by systemd's own judgement."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from supervisor.errors import OpsladderError
from supervisor.service.units import STATE_LINE, WORK_LINE, read_argument, started_by, units
from supervisor.settings import load_settings

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


def placed(directory: Path, *, user: bool, command: Path = COMMAND) -> list[Path]:
    directory.mkdir(exist_ok=True)
    for unit in units(command, user=user):
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


def test_no_unit_sets_what_stands_in_the_configuration() -> None:
    """Else the service would see other records than a person who types a command with the same configuration."""
    for unit in units(COMMAND, user=False):
        assert "OPSLADDER_" not in unit.text


def environment_in(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in re.findall(r"^Environment=(.*)$", text, re.MULTILINE))


def test_the_service_and_a_person_see_the_same_records(tmp_path: Path) -> None:
    config = tmp_path / "opsladder.toml"
    config.write_text(f"[state]\n{STATE_LINE}\n[claude]\n{WORK_LINE}\n")
    person = load_settings(config, {"HOME": "/root", "XDG_STATE_HOME": "/root/state"}, cwd=tmp_path)

    for unit in units(COMMAND, user=False):
        service = load_settings(config, environment_in(unit.text), cwd=tmp_path)
        assert service.database_url() == person.database_url()
        assert (service.state.dir, service.claude.work_dir) == (person.state.dir, person.claude.work_dir)


def test_the_service_may_write_where_these_lines_say() -> None:
    for unit in units(COMMAND, user=False):
        if unit.name.endswith(".service"):
            [made] = re.findall(r"^StateDirectory=(.*)$", unit.text, re.MULTILINE)
            wanted = tomllib.loads(f"{STATE_LINE}\n{WORK_LINE}\n")
            assert set(wanted.values()) <= {f"/var/lib/{name}" for name in made.split()}


def test_every_unit_says_in_its_first_line_what_it_is_for() -> None:
    for unit in units(COMMAND, user=False):
        assert unit.text.startswith("# ")


ODD = {
    "ordinary": "opt",
    "blank": "a b",
    "two blanks and an edge": " a  b ",
    "per cent": "100%h%%i",
    "semicolon": "a ; b",
    "equals sign": "A=b c",
    "hash": "# a",
    "letters of others": "größe 長",
}


def told(program: Path) -> list[str]:
    """What the stand-in was started with, itself first."""
    return program.with_name("told").read_text().split("\0")[:-1]


@pytest.fixture(params=ODD.values(), ids=ODD.keys())
def oddly_placed(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A stand-in for opsladder, in a directory with such a name."""
    program = tmp_path / request.param / "opsladder"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s\\0" "$0" "$@" > "$(dirname -- "$0")/told"\n')
    program.chmod(0o700)
    return program


def read_by_systemd(analyze: str, unit: Path) -> list[str]:
    """The arguments of ExecStart= as systemd has read them: in its own trace, quoted for a shell."""
    env = {"PATH": os.environ["PATH"], "SYSTEMD_LOG_LEVEL": "debug"}
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    about = done.stdout[done.stdout.index(f"-> Unit {unit.name}:") :]
    [line] = re.findall(r"-> ExecStart:\s+Command Line: (.*)", about)[:1]
    words = subprocess.run(["bash", "-c", f'printf "%s\\0" {line}'], capture_output=True, text=True, check=True)
    return words.stdout.split("\0")[:-1]


@pytest.mark.parametrize("name", ["opsladder.service", "opsladder-sweep.service"])
def test_the_command_is_started_wherever_it_is(analyze: str, tmp_path: Path, oddly_placed: Path, name: str) -> None:
    placed(tmp_path / "units", user=False, command=oddly_placed)

    program, *arguments = read_by_systemd(analyze, tmp_path / "units" / name)

    subprocess.run([program, *arguments], check=True)
    started, verb, *config = told(oddly_placed)
    assert (started, verb in ("run", "sweep")) == (str(oddly_placed), True)
    assert config == ["--config", "/etc/opsladder/opsladder.toml"]


ODD_ARGUMENTS = {**ODD, "quotes": 'the "best" of\'em', "backslash": "a\\b", "dollar": "$HOME ${x}", "both": 'a \\"b'}


@pytest.mark.parametrize("odd", ODD_ARGUMENTS.values(), ids=ODD_ARGUMENTS.keys())
def test_another_configuration_is_named_as_systemd_reads_it(analyze: str, tmp_path: Path, odd: str) -> None:
    config = Path("/srv", odd, "ladder.toml")
    [text] = [u.text for u in units(COMMAND, user=False, config=config) if u.name == "opsladder.service"]
    unit = tmp_path / "opsladder.service"
    unit.write_text(text)

    *_, named = read_by_systemd(analyze, unit)

    # Systemd shows a dollar sign as it stands in the unit, and makes one of two when it starts the program.
    assert named.replace("$$", "$") == str(config)
    assert read_argument((started_by(text) or ("", ""))[1]) == config


@pytest.mark.parametrize("odd", ['the "best"', "it's", "a\\b", "$HOME", "a\nb"])
def test_a_place_from_which_systemd_starts_nothing_is_refused_with_a_remedy(odd: str) -> None:
    with pytest.raises(OpsladderError, match="systemd cannot start") as refused:
        units(Path("/opt", odd, "opsladder"), user=False)
    assert "/opt/opsladder" in str(refused.value)
