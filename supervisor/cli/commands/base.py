"""The command itself, how its help is laid out, and what many commands share. Used by every module of commands.

No I/O, except that completing the name of a schedule reads the configuration.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Protocol

import typer
from typer.core import TyperCommand, TyperGroup


class _Context(Protocol):
    """What a page needs to know of its command."""

    @property
    def command_path(self) -> str: ...


class _Formatter(Protocol):
    """What a page needs of the formatter, whose class is Typer's own business."""

    current_indent: int

    def section(self, name: str) -> AbstractContextManager[None]: ...
    def indentation(self) -> AbstractContextManager[None]: ...
    def write(self, string: str) -> None: ...
    def write_text(self, text: str) -> None: ...
    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None: ...


class Command(TyperCommand):
    """A command whose help goes on below its options."""

    def format_epilog(self, ctx: _Context, formatter: _Formatter) -> None:
        _write_page(ctx.command_path, formatter)


class Group(TyperGroup):
    """The same for a command that has commands of its own."""

    def format_epilog(self, ctx: _Context, formatter: _Formatter) -> None:
        _write_page(ctx.command_path, formatter)


def _write_page(command_path: str, formatter: _Formatter) -> None:
    # Here, not above: a cycle does not read its own help.
    from supervisor.cli.commands.pages import PAGES

    page = PAGES.get(command_path.partition(" ")[2])
    if page is None:
        return
    for heading, text in page.notes:
        with formatter.section(heading):
            formatter.write_text(text)
    with formatter.section("Examples"):
        for line, purpose in page.examples:
            # As it is, however narrow the terminal: it is there to be copied.
            formatter.write(f"{'':{formatter.current_indent}}{line}\n")
            with formatter.indentation(), formatter.indentation():
                formatter.write_text(purpose)
    if page.exits:
        with formatter.section("Exit codes"):
            formatter.write_dl(page.exits)
    if page.also:
        with formatter.section("See also"):
            formatter.write_text(", ".join(page.also))


app = typer.Typer(
    name="opsladder",
    cls=Group,
    help="""Look after services with the Claude CLI, in tiers.

    A cycle looks with a cheap model that may only look, repairs with a stronger one only when needed, in one
    conversation all the way up. What happens next is decided outside the model, and so is every tool call: by rules,
    and by a person where a rule says so. Everything is on record, with its cost.

    \b
    The usual ways in:
      opsladder cycle    one cycle now: for cron, systemd timers and people
      opsladder run      the service: starts cycles by their schedules
      opsladder chains   look: what ran, how it ended, what it cost; then
                         opsladder chain ID and opsladder session ID

    `opsladder COMMAND --help` explains each with examples.
    """,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
db = typer.Typer(
    cls=Group,
    help="""The database schema.

    A SQLite file is made and brought up to date by the next cycle. PostgreSQL waits for `opsladder db upgrade`, so
    that a person chooses when.
    """,
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(db, name="db")
notify = typer.Typer(
    cls=Group,
    help="""Telling people what they have to know.

    Who is told of what stands in [notify] of the configuration, as Apprise addresses by level. `opsladder run` and
    `opsladder cycle` send messages every few seconds while they run.
    """,
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(notify, name="notify")
systemd = typer.Typer(
    cls=Group,
    help="""Units for systemd.

    A service for those who want `opsladder run` to stand for years, and timers for those who prefer one-shot cycles.
    """,
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(systemd, name="systemd")


def complete_schedule(ctx: typer.Context, incomplete: str) -> list[str]:
    """The schedules that begin so; none if the configuration is wrong, as a shell has no place to say it."""
    from supervisor.errors import OpsladderError
    from supervisor.settings import settings_from_process

    try:
        settings = settings_from_process(ctx.params.get("config"))
    except (OpsladderError, OSError):
        return []
    return [schedule.name for schedule in settings.schedules if schedule.name.startswith(incomplete)]


def one_of(*values: str) -> Callable[[str], list[str]]:
    """Completes to those of a few known words that begin so."""

    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return complete


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The configuration. Default: $OPSLADDER_CONFIG, else the first opsladder.toml in ., ~/.config/opsladder "
        "and /etc/opsladder, else none: every setting has its default.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
CycleAsJson = Annotated[
    bool,
    typer.Option("--json", help="Show nothing while it runs; print the chain as one JSON document at the end."),
]
ApprovalId = Annotated[
    int, typer.Argument(metavar="ID", help="The number of the approval; `opsladder approvals` lists those that wait.")
]
RecordId = Annotated[
    int, typer.Argument(metavar="ID", help="The number of a session record; `opsladder chains` lists them.")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log every decision to standard error.")]
