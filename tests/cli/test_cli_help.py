"""Every command and setting is explained somewhere, and the explanations can be read."""

import re
from pathlib import Path

import pytest
import typer.main

from supervisor.cli.app import app
from supervisor.settings.outline import outline
from tests.cli.command_line import CommandLine

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONFIG = (ROOT / "config" / "opsladder.toml").read_text(encoding="utf-8")


def commands() -> dict[str, typer.core.TyperCommand]:
    """Every command by the words that call it."""
    found = {}
    waiting = [((), typer.main.get_command(app))]
    while waiting:
        words, command = waiting.pop()
        inner = getattr(command, "commands", {})
        waiting += [((*words, name), below) for name, below in inner.items()]
        if not inner:
            found[" ".join(words)] = command
    return found


COMMANDS = commands()


def help_of(name: str) -> str:
    command = COMMANDS[name]
    with typer.Context(command, info_name=f"opsladder {name}", terminal_width=80) as context:
        return command.get_help(context)


def test_all_commands_are_looked_at() -> None:
    assert {"init", "cycle", "chain", "db upgrade"} <= set(COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_stands_in_the_readme(name: str) -> None:
    assert re.search(rf"opsladder {name}\b|make {name}\b", README), f"README.md never shows `opsladder {name}`"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_and_each_of_its_options_is_explained(name: str) -> None:
    command = COMMANDS[name]

    assert command.help
    unexplained = [parameter.name for parameter in command.params if not getattr(parameter, "help", None)]
    assert unexplained == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_takes_a_config_unless_it_needs_none(name: str) -> None:
    options = {option for parameter in COMMANDS[name].params for option in parameter.opts}

    assert ("--config" in options) == (name not in {"init", "demo", "systemd install"})


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_help_page_fits_80_columns(name: str) -> None:
    page = help_of(name)

    assert [line for line in page.splitlines() if len(line) > 80] == []


def test_the_list_of_commands_is_read_without_a_command_and_none_is_cut_short(opsladder: CommandLine) -> None:
    asked, bare = opsladder.run("--help"), opsladder.run()

    assert (asked.exit_code, bare.exit_code) == (0, 2)
    assert asked.out.strip() == (bare.out + bare.err).strip()
    assert {name.split()[0] for name in COMMANDS} <= set(asked.out.split())
    assert "..." not in asked.out.partition("Commands:")[2]


def test_the_version_is_printed(opsladder: CommandLine) -> None:
    from supervisor import __version__

    assert opsladder.run("--version").out == f"opsladder {__version__}\n"


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
