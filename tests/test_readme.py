"""The README is true: every command line in it is run, and what it shows of files can be read."""

import datetime as dt
import re
import shlex
import shutil
import subprocess
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from climber import bash, report, scripts
from receiver import receiving

from supervisor.notify import deliver_due
from supervisor.rehearsal.scenario import Scenario, Script
from supervisor.rehearsal.scenario_file import parse_scenario
from supervisor.settings import load_settings
from supervisor.store import open_store
from tests.cli.command_line import DEADLINE_SECONDS, CommandLine, command_line, scripted_api

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")

# Each `opsladder` line with something that it has to print. 18 stands for any record, 7 for any approval, 3 for any
# incident.
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
    "opsladder approvals": "Nothing waits for a person's approval.",
    "opsladder approve 7": "cycle 1 healthy, $",
    "opsladder deny 7 --reason 'not during business hours'": "cycle 1 healthy, $",
    "opsladder retry 18": "resume (operator_retry)",
    "opsladder stop 18": "cycle 1 is stopped.",
    "opsladder run": "Serving",
    "opsladder systemd install --dry-run": "[Service]",
    "opsladder services": "✓ healthy",
    "opsladder incidents": "web",
    "opsladder incident 3": "Incident 1 default",
    "opsladder reset": "nothing was dropped.",
    "opsladder schedules": "last (UTC)",
    "opsladder sweep": "Nothing to do.",
    "opsladder metrics": 'opsladder_cycles_total{schedule="default",status="healthy"} ',
    "opsladder metrics --textfile opsladder.prom": "",
    "opsladder notify test": "✓ warning.1 (json://…): arrived",
    "opsladder notify list": "✓ sent",
    "opsladder cycle --approve-budget": "healthy, $",
    "opsladder pause --reason 'the database moves'": "(the database moves).",
    "opsladder unpause": "Runs and tool calls go through again.",
    "opsladder db upgrade": "The schema is at ",
    "opsladder db check": "is up to date.",
    "opsladder backup records.gz": "verified",
    "opsladder restore records.gz": "verified",
}
ANY_RECORD = "18"
ANY_APPROVAL = "7"
ANY_INCIDENT = "3"
# These change how all that follows goes, so each is run in a place of its own, after a command with its exit code.
BEFORE = {
    "approve": ("cycle", 4),
    "deny": ("cycle", 4),
    "stop": ("cycle", 4),
    "pause": ("services", 0),
    "unpause": ("pause", 0),
}
ASKS = """
[[tiers]]
name = "observe"
model = "haiku"
prompt = "tier1.md"
approve = ["touch ..."]
"""


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
    """A place where everything works, one cycle has run and there was an incident."""
    scenario = scripts((bash("echo looked"), report(False)))
    with scripted_api(scenario, tiers=(1,)) as base_url, receiving() as receiver:
        opsladder = command_line(
            tmp_path_factory.mktemp("readme"),
            base_url=base_url,
            OPSLADDER_CLAUDE__BIN=str(new_cli),
            OPSLADDER_NOTIFY__WARNING=receiver.url(),
        )
        assert opsladder.run("cycle").exit_code == 0
        now = dt.datetime.now(dt.UTC)
        with open_store(f"sqlite:///{opsladder.state}/opsladder.db") as store:
            store.judge_cycle(1, trouble=["web"], reopen_within=dt.timedelta(hours=4), now=now)
            settings = load_settings(None, opsladder.environment(), cwd=opsladder.work)
            deliver_due(store, settings, now=now, at_once=True)
        yield opsladder


def is_run_apart(line: str) -> bool:
    return shlex.split(line)[1] in BEFORE


def is_the_service(line: str) -> bool:
    return shlex.split(line)[1] == "run"


@pytest.mark.parametrize("line", [line for line in lines_of("opsladder") if is_the_service(line)])
def test_the_service_serves_until_it_is_told_to_end(opsladder: CommandLine, line: str) -> None:
    _, *arguments = shlex.split(line)
    with opsladder.started(*arguments, OPSLADDER_WEB__PORT="0") as (process, output):
        deadline = time.monotonic() + DEADLINE_SECONDS
        while EXPECTED[line] not in output.read_text():
            assert process.poll() is None, output.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.terminate()
        assert process.wait(DEADLINE_SECONDS) == 0


def is_a_restore(line: str) -> bool:
    return shlex.split(line)[1] == "restore"


@pytest.mark.xdist_group("readme")
@pytest.mark.parametrize(
    "line",
    [line for line in lines_of("opsladder") if not (is_run_apart(line) or is_a_restore(line) or is_the_service(line))],
)
def test_a_command_line_does_what_it_says(opsladder: CommandLine, line: str) -> None:
    records = opsladder.run("chains", "--json", "--status", "healthy").document["chains"][-1]["sessions"]
    meant = {ANY_RECORD: str(records[0]["id"]), ANY_INCIDENT: "1"}
    _, *arguments = (meant.get(word, word) for word in shlex.split(line))

    done = opsladder.run(*arguments)

    assert (done.exit_code, done.err) == (0, "")
    assert EXPECTED[line] in done.out


@pytest.mark.xdist_group("readme")
@pytest.mark.parametrize("line", [line for line in lines_of("opsladder") if is_a_restore(line)])
def test_a_restore_brings_the_records_to_another_place(opsladder: CommandLine, tmp_path: Path, line: str) -> None:
    _, *arguments, file = shlex.split(line)
    elsewhere = command_line(tmp_path)
    assert opsladder.run("backup", str(elsewhere.work / file)).exit_code == 0

    done = elsewhere.run(*arguments, file)

    assert (done.exit_code, done.err) == (0, "")
    assert EXPECTED[line] in done.out
    assert elsewhere.run("chains").out == opsladder.run("chains").out


@pytest.mark.parametrize("line", [line for line in lines_of("opsladder") if is_run_apart(line)])
def test_a_command_line_with_consequences_does_what_it_says(tmp_path: Path, new_cli: Path, line: str) -> None:
    _, *arguments = ("1" if word in (ANY_APPROVAL, ANY_RECORD) else word for word in shlex.split(line))
    before, code = BEFORE[arguments[0]]
    turns = ((bash("touch made"),), (report(False),))
    attempts = tuple(Script(tier=1, attempt=number, turns=played) for number, played in enumerate(turns, start=1))
    with scripted_api(Scenario(title="test", scripts=attempts), tiers=(1,)) as base_url:
        opsladder = command_line(tmp_path, base_url=base_url, OPSLADDER_CLAUDE__BIN=str(new_cli))
        (opsladder.work / "opsladder.toml").write_text(ASKS)
        assert opsladder.run(before).exit_code == code
        done = opsladder.run(*arguments)

    assert (done.exit_code, done.err) == (0, "")
    assert EXPECTED[line] in done.out


def is_a_scenario(block: str) -> bool:
    return "[[tier]]" in block


@pytest.mark.parametrize("scenario", [block for block in blocks("toml") if is_a_scenario(block)])
def test_a_scenario_that_is_shown_can_be_read(scenario: str) -> None:
    assert parse_scenario(scenario, name="README.md").scripts


@pytest.mark.parametrize("config", [block for block in blocks("toml") if not is_a_scenario(block)])
def test_a_configuration_that_is_shown_can_be_read_with_its_rules(tmp_path: Path, config: str) -> None:
    file = tmp_path / "opsladder.toml"
    file.write_text(config, encoding="utf-8")
    settings = load_settings(file, {"HOME": str(tmp_path)}, cwd=tmp_path)

    own = [rule for rule in settings.rules_for(1).rules if rule.set == "tier observe"]
    assert {rule.effect.value for rule in own} == {"allow", "approve", "deny"}
