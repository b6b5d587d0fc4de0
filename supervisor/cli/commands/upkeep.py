"""Commands that keep the installation in order. Called from ``main`` through ``app``."""

from pathlib import Path
from typing import Annotated

import typer

from supervisor.cli.commands.base import AsJson, Config, app, db, notify, systemd
from supervisor.cli.exits import exit_with


@app.command(short_help="Expire, archive and prune what is past its time.")
def sweep(config: Config = None, as_json: AsJson = False) -> None:
    """Expire idle sessions, archive old messages, prune old records and archives, remove files left behind.

    What that is, [continuity] and [retention] of the configuration say. Nothing that runs, is paused or belongs to an
    open incident is touched, and no totals are lost. Safe at any time, and to be cut off; meant for cron.
    """
    with exit_with():
        from supervisor.cli.sweep import run_sweep

        run_sweep(config, as_json=as_json)


@app.command(short_help="Write all records into a file, while they are in use.")
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file; none is overwritten.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Write all records as they are at this moment into FILE, and read it back to verify it. Nothing has to stop.

    Example: `opsladder backup /var/backups/opsladder.gz`
    """
    with exit_with():
        from supervisor.cli.backup import back_up

        back_up(config, file, as_json=as_json)


@app.command(short_help="Put the records of a backup into an empty database.")
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `opsladder backup` wrote.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Put the records of a backup into the configured database, all or nothing, and compare them with FILE.

    The database must not hold records. It may be of the other kind: SQLite's records can go into PostgreSQL and back.

    Example: `opsladder restore /var/backups/opsladder.gz`
    """
    with exit_with():
        from supervisor.cli.backup import restore as put_back

        put_back(config, file, as_json=as_json)


@systemd.command("install")
def systemd_install(
    user: Annotated[bool, typer.Option("--user", help="For your own user manager instead of the machine's.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")] = False,
) -> None:
    """Put the unit files in place: the service, and timers for those who prefer them.

    Example: opsladder systemd install --dry-run
    """
    with exit_with():
        from supervisor.cli.systemd import install

        install(user=user, dry_run=dry_run)


@notify.command("test", short_help="Send a test message right now.")
def notify_test(
    config: Config = None,
    level: Annotated[
        str, typer.Option("--level", metavar="L", help="Whose targets: info, warning or critical.")
    ] = "warning",
) -> None:
    """Send a test message to each target of a level right now, and say of each whether it arrived.

    Targets are shown by their place in [notify], never by their address. Exit 1 if one was not reached.

    Example: `opsladder notify test --level critical`
    """
    with exit_with():
        from supervisor.cli.notify import send_test

        raise typer.Exit(send_test(config, level=level))


@notify.command("list", short_help="List what people were told.")
def notify_list(
    config: Config = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="How many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List messages to people, the newest first: what was told, what waits or was held back, what failed and why.

    Example: `opsladder notify list --limit 5`
    """
    with exit_with():
        from supervisor.cli.notify import show_deliveries

        show_deliveries(config, limit=limit, as_json=as_json)


@db.command("upgrade")
def db_upgrade(config: Config = None) -> None:
    """Bring the database schema up to date."""
    with exit_with():
        from supervisor.cli.database import upgrade_schema

        upgrade_schema(config)


@db.command("check")
def db_check(config: Config = None, as_json: AsJson = False) -> None:
    """Say whether the database schema is up to date, changing nothing. Exit 1 if it is not."""
    with exit_with():
        from supervisor.cli.database import check_schema

        raise typer.Exit(check_schema(config, as_json=as_json))
