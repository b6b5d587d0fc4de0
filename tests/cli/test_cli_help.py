"""Every command and setting is explained somewhere, examples are true, and a shell can complete what is typed."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperCommand, TyperGroup
from typer.testing import CliRunner

from supervisor.cli.app import app
from supervisor.cli.commands.pages import PAGES
from supervisor.model.cycle import CycleStatus
from supervisor.model.incident import IncidentStatus
from supervisor.model.report import Level
from supervisor.rehearsal.scenario_file import builtin_scenarios
from supervisor.settings.outline import outline
from supervisor.store import CostBy
from tests.cli.command_line import OPSLADDER, CommandLine
from tests.cli.terminal import run_on_terminal

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONFIG = (ROOT / "config" / "opsladder.toml").read_text(encoding="utf-8")
SHELL_OPERATORS = {"|", "||", "&&", ";", ">"}
CLIMBING = {"cycle", "rehearse", "demo", "retry", "approve", "deny"}


def all_commands() -> dict[str, TyperCommand | TyperGroup]:
    """Every command by the words that call it; the program itself by none."""
    found = {}
    waiting = [("", typer.main.get_command(app))]
    while waiting:
        name, command = waiting.pop()
        found[name] = command
        waiting += [(f"{name} {word}".strip(), below) for word, below in getattr(command, "commands", {}).items()]
    return found


ALL = all_commands()
COMMANDS = {name: command for name, command in ALL.items() if not isinstance(command, TyperGroup)}


def help_of(name: str, *, columns: int = 80) -> str:
    # As on a terminal of so many columns, of which two are left free.
    shown = CliRunner().invoke(app, [*name.split(), "--help"], prog_name="opsladder", terminal_width=columns - 2)
    assert (shown.exit_code, shown.stderr) == (0, "")
    return shown.stdout


def test_all_commands_are_looked_at() -> None:
    assert {"init", "cycle", "chain", "db upgrade"} <= set(COMMANDS)
    assert set(ALL) - set(COMMANDS) == {"", "db", "notify", "systemd"}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_stands_in_the_readme(name: str) -> None:
    assert re.search(rf"opsladder {name}\b|make {name}\b", README), f"README.md never shows `opsladder {name}`"


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_command_and_each_of_its_options_is_explained(name: str) -> None:
    command = ALL[name]

    assert command.help
    unexplained = [parameter.name for parameter in command.params if not getattr(parameter, "help", None)]
    assert unexplained == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_takes_a_config(name: str) -> None:
    assert "--config" in {option for parameter in COMMANDS[name].params for option in parameter.opts}


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_help_page_fits_80_columns_and_breaks_no_word(name: str) -> None:
    lines = help_of(name).splitlines()

    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if re.search(r"\w-$", line)] == []


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_help_page_ends_with_its_examples_and_leaves_them_whole(name: str) -> None:
    below = {columns: help_of(name, columns=columns).partition("\nExamples:\n")[2] for columns in (80, 60)}

    for line, _ in PAGES[name].examples:
        assert all(f"  {line}\n" in page for page in below.values())


def test_there_is_no_page_without_its_command() -> None:
    assert set(PAGES) == set(ALL)


def words_of(example: str) -> list[list[str]]:
    """What the shell would hand to `opsladder`, as often as an example calls it."""
    lexer = shlex.shlex(example, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lines: list[list[str]] = [[]]
    for word in lexer:
        if word in SHELL_OPERATORS:
            lines.append([])
        else:
            lines[-1].append(word)
    return [line[line.index("opsladder") + 1 :] for line in lines if "opsladder" in line]


def called(words: list[str]) -> tuple[str, list[str]]:
    """The command that is called with these words, and those that are left for it."""
    name = ""
    while words and f"{name} {words[0]}".strip() in ALL:
        name, words = f"{name} {words[0]}".strip(), words[1:]
    return name, words


def complaint(example: str) -> str | None:
    """What is wrong with an example, as the commands would say that it calls; nothing if they would run."""
    calls = [called(words) for words in words_of(example)]
    if not calls:
        return "opsladder is not called"
    return next((said for name, rest in calls if (said := refusal(name, rest))), None)


def refusal(name: str, words: list[str]) -> str | None:
    command = ALL[name]
    if isinstance(command, TyperGroup):
        return f"opsladder {name} has no command {' '.join(words)}"
    try:
        context = command.make_context(f"opsladder {name}", words)
    except typer.TyperException as error:
        return error.format_message()
    for parameter in command.params:
        value, known = context.params[parameter.name], set()
        if parameter.param_type_name == "option":
            known = {item.value for item in parameter.shell_complete(context, "")}
        if known and value is not None and value not in known:
            return f"{value} is not one of {known}"
    return None


@pytest.mark.parametrize("name", sorted(ALL))
def test_an_example_is_a_command_line_that_the_command_takes(name: str) -> None:
    examples = [line for line, _ in PAGES[name].examples]

    assert {line: complaint(line) for line in examples} == dict.fromkeys(examples)
    used = {called(words)[0] for line in examples for words in words_of(line)}
    assert any(command == name or command.startswith(f"{name} ".lstrip()) for command in used)


@pytest.mark.parametrize(
    "example",
    [
        pytest.param("opsladder cycle --dryrun", id="an option that is not there"),
        pytest.param("opsladder chains --json | opsladder chain --last", id="behind a pipe"),
        pytest.param("*/5 * * * *  opsladder sweep --quiet", id="in a crontab"),
        pytest.param("opsladder backup a.gz && opsladder db rollback", id="a command that is not there"),
        pytest.param("opsladder session eighteen", id="no number"),
        pytest.param("opsladder cycle --max-tier 0", id="a number that is too small"),
        pytest.param("opsladder retry", id="nothing to retry"),
        pytest.param("opsladder backup a.gz b.gz", id="too much"),
        pytest.param("opsladder chains --status unresloved", id="a value that does not exist"),
        pytest.param("opsladder notify", id="only half of a command"),
        pytest.param("systemctl status opsladder.service", id="another program"),
    ],
)
def test_a_wrong_example_would_be_noticed(example: str) -> None:
    assert complaint(example)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_what_a_page_refers_to_exists(name: str) -> None:
    page = PAGES[name]

    assert set(page.also) <= set(COMMANDS) - {name}
    assert all(purpose.endswith((".", "?")) for _, purpose in page.examples)
    codes = [int(code) for code, _ in page.exits]
    assert codes in ([], [0, 1, 2]) if name not in {"", *CLIMBING} else codes == list(range(6))


def test_the_list_of_commands_is_read_without_a_command_and_none_is_cut_short(opsladder: CommandLine) -> None:
    asked, bare = opsladder.run("--help"), opsladder.run()

    assert (asked.exit_code, bare.exit_code) == (0, 2)
    assert asked.out.strip() == (bare.out + bare.err).strip()
    listed = asked.out.partition("\nCommands:\n")[2].partition("\n\n")[0]
    assert {name.split()[0] for name in COMMANDS} == {line.split()[0] for line in listed.splitlines()}
    assert "..." not in listed
    assert asked.out == help_of("")


def test_help_is_as_plain_on_a_terminal_as_in_a_pipe(opsladder: CommandLine) -> None:
    seen = run_on_terminal(
        [str(OPSLADDER), "cycle", "--help"],
        size=(80, 100),
        env=opsladder.environment(TERM="xterm-256color", COLUMNS=""),
        cwd=opsladder.work,
    )

    assert "\x1b" not in seen.raw
    assert seen.screen.strip() == help_of("cycle").strip()


def test_the_version_is_printed(opsladder: CommandLine) -> None:
    from supervisor import __version__

    assert opsladder.run("--version").out == f"opsladder {__version__}\n"


SCHEDULES = '[[schedules]]\nname = "nightly"\n\n[[schedules]]\nname = "night-db"\n\n[[schedules]]\nname = "weekly"\n'
STATUSES = [status.value for status in CycleStatus]


def completed(typed: str) -> list[str]:
    """What bash would be offered for the last of these words, by a process of our own."""
    words = typed.split(" ")
    asked = {"_OPSLADDER_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    answer = CliRunner().invoke(app, [], prog_name="opsladder", env=asked)
    assert (answer.exit_code, answer.stderr) == (0, "")
    return answer.stdout.split()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory to stand in, with nothing configured anywhere."""
    for name in [name for name in os.environ if name.startswith(("OPSLADDER_", "CLAUDEOPS_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        pytest.param("opsladder cha", ["chain", "chains"], id="a command"),
        pytest.param("opsladder notify ", ["list", "test"], id="a command of a command"),
        pytest.param("opsladder chains --s", ["--status"], id="an option"),
        pytest.param("opsladder chains --status ", STATUSES, id="statuses of a cycle"),
        pytest.param("opsladder chains --status un", ["unresolved"], id="the beginning of a status"),
        pytest.param("opsladder incidents --status ", list(IncidentStatus), id="statuses of an incident"),
        pytest.param("opsladder cost --by ", list(CostBy), id="what costs are shown by"),
        pytest.param("opsladder notify test --level ", list(Level), id="levels"),
        pytest.param("opsladder rehearse ", list(builtin_scenarios()), id="scenarios"),
        pytest.param("opsladder cycle ", ["nightly", "night-db", "weekly"], id="schedules"),
        pytest.param("opsladder cycle night", ["nightly", "night-db"], id="the beginning of a schedule"),
        pytest.param("opsladder cycle --dry-run n", ["nightly", "night-db"], id="a schedule after an option"),
        pytest.param("opsladder cycle --config b.toml ", ["other"], id="schedules of another configuration"),
        pytest.param("opsladder reset w", ["weekly"], id="a schedule to reset"),
        pytest.param("opsladder cycle weekly ", [], id="no second schedule"),
        pytest.param("opsladder cycle --config opsl", [], id="a file, which the shell knows best"),
        pytest.param("opsladder --version cha", ["chain", "chains"], id="nothing is done for what was typed before"),
    ],
)
def test_what_is_typed_is_completed(place: Path, typed: str, offered: list[str]) -> None:
    (place / "opsladder.toml").write_text(SCHEDULES)
    (place / "b.toml").write_text('[[schedules]]\nname = "other"\n')

    assert sorted(completed(typed)) == sorted(offered)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"[[schedules]\n", id="not TOML"),
        pytest.param(b"\xff\xfe\x00", id="not text"),
        pytest.param(SCHEDULES.encode() + b"[state]\nno_such_key = 1\n", id="a key that does not exist"),
        pytest.param(SCHEDULES.encode() + b"[continuity]\nmax_resumes = -1\n", id="a bad value"),
        pytest.param(None, id="a directory"),
    ],
)
def test_a_broken_configuration_completes_nothing_and_says_nothing(place: Path, content: bytes | None) -> None:
    file = place / "opsladder.toml"
    file.mkdir() if content is None else file.write_bytes(content)

    assert completed(f"opsladder cycle --config {file} ") == []


def test_a_directory_that_is_gone_completes_nothing_and_says_nothing(place: Path) -> None:
    gone = place / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()

    assert completed("opsladder cycle ") == []


@pytest.mark.parametrize(
    ("shell", "sign"),
    [("bash", "complete -o default -F"), ("zsh", "compdef _opsladder_completion opsladder"), ("fish", "complete --c")],
)
def test_there_is_a_completion_script_for_each_shell(shell: str, sign: str) -> None:
    shown = CliRunner().invoke(app, [], prog_name="opsladder", env={"_OPSLADDER_COMPLETE": f"source_{shell}"})

    assert (shown.exit_code, shown.stderr) == (0, "")
    assert sign in shown.stdout


@pytest.mark.parametrize(("shell", "extra"), [("zsh", {}), ("fish", {"_TYPER_COMPLETE_FISH_ACTION": "get-args"})])
def test_other_shells_are_answered_as_well(shell: str, extra: dict[str, str]) -> None:
    asked = {"_OPSLADDER_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": "opsladder chains --status re"}
    answer = CliRunner().invoke(app, [], prog_name="opsladder", env=asked | extra)

    assert (answer.exit_code, answer.stderr) == (0, "")
    assert "resolved" in answer.stdout
    assert "unresolved" not in answer.stdout


# An empty last word is one that is yet to be typed. The database is broken, which must not matter.
IN_BASH = """
complete -p opsladder
offer() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _opsladder_completion opsladder; echo "${COMPREPLY[*]}"; }
offer opsladder unp
offer opsladder cycle ''
offer opsladder chains --status re
"""


def test_a_real_bash_completes_once_it_was_installed(opsladder: CommandLine) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    (opsladder.work / "opsladder.toml").write_text(SCHEDULES)
    opsladder.state.mkdir()
    (opsladder.state / "opsladder.db").write_bytes(b"not a database")
    home = Path(opsladder.env["HOME"])
    environment = opsladder.environment(PATH=f"{OPSLADDER.parent}:{os.defpath}")

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [bash, *arguments], cwd=opsladder.work, env=environment, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        return done.stdout

    # `:` last, so that bash stays to be found: without it, it would become what it starts.
    assert "bash completion installed" in run("--norc", "-c", "opsladder --install-completion; :")

    assert run("--norc", "-c", f"source {shlex.quote(str(home / '.bashrc'))}\n{IN_BASH}").splitlines() == [
        "complete -o default -F _opsladder_completion opsladder",
        "unpause",
        "nightly night-db weekly",
        "resolved",
    ]


def settings() -> list[str]:
    return [".".join((*table, key)) for table, keys in outline().tables.items() for key in keys]


@pytest.mark.parametrize("setting", settings())
def test_a_setting_is_explained(setting: str) -> None:
    """In the configuration that `init` writes, if only in a comment; else in the README or on a help page."""
    *table, key = setting.split(".")
    inside = ".".join(part for part in table if part != "*")
    headed = re.search(rf"^\[+{re.escape(setting)}[\].]", CONFIG, re.MULTILINE)
    told = headed or re.search(rf"\b{re.escape(key)} = ", _section(inside))
    assert told or setting in README or any(setting in help_of(name) for name in COMMANDS), (
        f"neither config/opsladder.toml nor README.md nor --help explains {setting}"
    )


def _section(name: str) -> str:
    """What stands below the heading of a table, as often as it has one."""
    parts = re.split(r"^\[+([\w.]+)\]+$", CONFIG, flags=re.MULTILINE)
    return "\n".join(body for heading, body in zip(parts[1::2], parts[2::2], strict=True) if heading == name)
