"""Commands that keep the installation in order. Called from ``main`` through ``app``."""

from pathlib import Path
from typing import Annotated

import typer

from supervisor.cli.commands.base import AsJson, Command, Config, app, db, notify, one_of, systemd
from supervisor.cli.exits import exit_with


@app.command(cls=Command, short_help="Expire, archive and prune what is past its time.")
def sweep(config: Config = None, as_json: AsJson = False) -> None:
    """Expire idle sessions and unanswered approvals, archive old messages, prune old records and archives, remove files
    left behind; and say how much of each.

    What is old, [continuity] and [retention] of the configuration say. Nothing that runs, is paused or belongs to an
    open incident is archived or pruned, and no totals are lost. Safe at any time, and to be cut off; a second sweep
    leaves it to the first. The service does it every five minutes; without one, cron or a timer should.
    """
    with exit_with():
        from supervisor.cli.sweep import run_sweep

        run_sweep(config, as_json=as_json)


@app.command(cls=Command, short_help="Write all records into a file, while they are in use.")
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file; none is overwritten.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Write all records as they are at this moment into FILE, read it back to verify it, and say what is in it. Nothing
    has to stop meanwhile.

    The file is compressed, and the same for SQLite and PostgreSQL. Not part of it are archived messages, which are
    files under state.dir/archive, the configuration, and the CLI's own transcripts.
    """
    with exit_with():
        from supervisor.cli.backup import back_up

        back_up(config, file, as_json=as_json)


@app.command(cls=Command, short_help="Put the records of a backup into an empty database.")
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `opsladder backup` wrote.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Put the records of a backup into the configured database, all or nothing, and compare them with FILE.

    The database must not hold records: nothing is ever replaced. It may be of the other kind, so this is also the way
    from SQLite to PostgreSQL and back. What ran when the backup was written is recovered by the next cycle, like after
    a kill.
    """
    with exit_with():
        from supervisor.cli.backup import restore as put_back

        put_back(config, file, as_json=as_json)


@systemd.command("install", cls=Command, short_help="Put the unit files in place.")
def systemd_install(
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="The configuration that the units name. Default: /etc/opsladder/opsladder.toml, with --user "
            "~/.config/opsladder/opsladder.toml.",
        ),
    ] = None,
    user: Annotated[
        bool,
        typer.Option(
            "--user", help="For your own user manager, in ~/.config/systemd/user. Default: /etc/systemd/system."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be written, and where, and write nothing.")
    ] = False,
) -> None:
    """Write the unit files of this version, with the path of this command in them, and say what to type next: a service
    for `opsladder run`, and timers for one-shot cycles and sweeps.

    Nothing is enabled or started. Files of the same names are renewed, so settings of your own belong into `systemctl
    edit opsladder`. What the configuration still lacks that the units name, is said, too.
    """
    with exit_with():
        from supervisor.cli.systemd import install

        install(user=user, dry_run=dry_run, config=config)


@notify.command("test", cls=Command, short_help="Send a test message right now.")
def notify_test(
    config: Config = None,
    level: Annotated[
        str,
        typer.Option(
            "--level",
            metavar="L",
            help="Whose targets: info, warning or critical.",
            autocompletion=one_of("info", "warning", "critical"),
        ),
    ] = "warning",
) -> None:
    """Send a test message to each target of a level right now, and say of each whether it arrived.

    Targets are shown by their place in [notify], never by their address. A level without targets of its own uses those
    of the nearest other level, the higher first; only info does not. Nothing goes on record.
    """
    with exit_with():
        from supervisor.cli.notify import send_test

        raise typer.Exit(send_test(config, level=level))


@notify.command("list", cls=Command, short_help="List what people were told.")
def notify_list(
    config: Config = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="How many at most.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List messages to people, the newest first: what was told, what waits, what was held back because the same had
    just been told, what failed and why. It only reads.
    """
    with exit_with():
        from supervisor.cli.notify import show_deliveries

        show_deliveries(config, limit=limit, as_json=as_json)


@db.command("upgrade", cls=Command, short_help="Bring the database schema up to date.")
def db_upgrade(config: Config = None) -> None:
    """Bring the schema of the configured database up to date, keeping all records, and say which one it has now.

    Also sets an empty database up. There is no way back: make a backup before, which only the version that you come
    from can do. A database of a newer opsladder is refused.
    """
    with exit_with():
        from supervisor.cli.database import upgrade_schema

        upgrade_schema(config)


@db.command("check", cls=Command, short_help="Say whether the database schema is up to date.")
def db_check(config: Config = None, as_json: AsJson = False) -> None:
    """Say whether the schema of the configured database is the one this version needs, table by table. Nothing is
    changed.
    """
    with exit_with():
        from supervisor.cli.database import check_schema

        raise typer.Exit(check_schema(config, as_json=as_json))
