"""The README is true: every command line in it is run, and what it shows of files can be read."""

import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from climber import bash, report, scripts

from supervisor.rehearsal.scenario_file import parse_scenario
from tests.cli.command_line import CommandLine, command_line, scripted_api

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")

# Each `opsladder` line with something that it has to print. Record 18 stands for any record.
EXPECTED = {
    "opsladder init": "written  opsladder.toml",
    "opsladder doctor": "A cycle would run.",
    "opsladder rehearse demo": "cycle 1 resolved",
    "opsladder cycle --dry-run": "started (dry run)",
    "opsladder cycle": "healthy, $",
    "opsladder chains": "✓ healthy",
    "opsladder chains --status unresolved --limit 5": "No cycle is unresolved.",
    "opsladder chain 18": "└── Tier 1 haiku ✓ completed",
    "opsladder session 18": "runs  Bash: echo looked",
    "opsladder session 18 --follow": "runs  Bash: echo looked",
    "opsladder chain 18 --json": '{"schema": "opsladder.chain/1", ',
    "opsladder cost --since 7d --by tier": "total",
    "opsladder db upgrade": "The schema is at ",
    "opsladder db check": "is up to date.",
}
ANY_RECORD = "18"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def command_lines() -> list[str]:
    """Every line of the shell blocks, without its comment."""
    lines = (shlex.split(line, comments=True) for block in blocks("sh") for line in block.splitlines())
    return [shlex.join(words) for words in lines if words]


LINES = command_lines()


def lines_of(program: str) -> list[str]:
    return [line for line in LINES if line.split()[0] == program]


def test_this_test_knows_how_to_run_every_command_line() -> None:
    others = {line for line in LINES if line.split()[0] not in ("make", "pip", "opsladder")}
    assert others == set()
    assert set(lines_of("opsladder")) == set(EXPECTED)


@pytest.mark.parametrize(
    "target", sorted(set(re.findall(r"\bmake (\w+)\b", "\n".join(blocks("sh") + re.findall("`.*?`", README)))))
)
def test_a_make_target_exists_and_leads_to_commands(target: str) -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not installed")
    done = subprocess.run([make, "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    wanted = {"demo": "opsladder demo", "test": "/pytest ", "bench": "-m bench"}
    assert wanted[target] in done.stdout


@pytest.mark.parametrize("line", lines_of("pip"))
def test_what_pip_is_told_to_install_is_this_package_with_extras_it_has(line: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    program, verb, wanted = shlex.split(line)
    name, extras = re.fullmatch(r"([\w-]+)\[([\w,-]+)\]", wanted).groups()

    assert (program, verb, name) == ("pip", "install", project["name"])
    assert set(extras.split(",")) <= set(project["optional-dependencies"])


@pytest.mark.parametrize("extra", sorted(set(re.findall(r"opsladder\[([\w-]+)\]", README))))
def test_an_extra_that_is_mentioned_exists(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert extra in project["optional-dependencies"]


@pytest.fixture(scope="module")
def opsladder(tmp_path_factory: pytest.TempPathFactory, new_cli: Path) -> Iterator[CommandLine]:
    """A place where everything works and one cycle has run."""
    scenario = scripts((bash("echo looked"), report(False)))
    with scripted_api(scenario, tiers=(1,)) as base_url:
        opsladder = command_line(
            tmp_path_factory.mktemp("readme"), base_url=base_url, OPSLADDER_CLAUDE__BIN=str(new_cli)
        )
        assert opsladder.run("cycle").exit_code == 0
        yield opsladder


@pytest.mark.xdist_group("readme")
@pytest.mark.parametrize("line", lines_of("opsladder"))
def test_a_command_line_does_what_it_says(opsladder: CommandLine, line: str) -> None:
    records = opsladder.run("chains", "--json", "--status", "healthy").document["chains"][-1]["sessions"]
    _, *arguments = (str(records[0]["id"]) if word == ANY_RECORD else word for word in shlex.split(line))

    done = opsladder.run(*arguments)

    assert (done.exit_code, done.err) == (0, "")
    assert EXPECTED[line] in done.out


@pytest.mark.parametrize("scenario", blocks("toml"))
def test_a_scenario_that_is_shown_can_be_read(scenario: str) -> None:
    assert parse_scenario(scenario, name="README.md").scripts
