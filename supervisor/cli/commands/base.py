"""The command itself, and the options that many commands share. No I/O. Used by every module of commands."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="opsladder",
    help="A tiered ops-escalation supervisor: look with a cheap model first, repair with a strong one only when "
    "needed, in one conversation all the way up.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
db = typer.Typer(help="The database schema.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(db, name="db")
notify = typer.Typer(help="Telling people what they have to know.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(notify, name="notify")
systemd = typer.Typer(help="Units for systemd.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(systemd, name="systemd")

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The configuration. Else $OPSLADDER_CONFIG, ./opsladder.toml, ~/.config/opsladder/opsladder.toml, "
        "/etc/opsladder/opsladder.toml.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
ApprovalId = Annotated[int, typer.Argument(metavar="ID", help="Which one; `opsladder approvals` lists them.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log every decision to standard error.")]
