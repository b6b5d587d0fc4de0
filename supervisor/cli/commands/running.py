"""Commands that run something, and the options before the command. Called from ``main`` through ``app``."""

from pathlib import Path
from typing import Annotated

import typer

from supervisor.cli.commands.base import (
    AsJson,
    Command,
    Config,
    CycleAsJson,
    RecordId,
    Verbose,
    app,
    complete_schedule,
    one_of,
)
from supervisor.cli.exits import exit_with


def _version(ctx: typer.Context, wanted: bool) -> None:
    # A shell that asks for completions also parses the words before the cursor.
    if wanted and not ctx.resilient_parsing:
        from supervisor import __version__

        typer.echo(f"opsladder {__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Nothing of its own: options before the command."""


@app.command(cls=Command, short_help="Write a configuration to start from.")
def init(
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="Where to write; made if it is not there. Default: the directory of FILE, else here.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Write the configuration into FILE, and everything else beside it. Default: DIR/opsladder.toml.",
        ),
    ] = None,
) -> None:
    """Write files to start from: opsladder.toml with every setting, its default and why, models.toml with context
    windows and prices, environment.md, in which you describe what there is to look after, and prompts/ with what each
    tier is told. Without a prompt of your own there, that of the installed version is used.

    In /etc the configuration also says where the service keeps its records, so that whoever types a command sees them.
    A file that is already there is kept as it is, so it can be run again. Nothing is started.
    """
    with exit_with():
        from supervisor.cli.init import write_start

        write_start(directory, config)


@app.command(cls=Command, short_help="Check everything a cycle needs, changing nothing.")
def doctor(config: Config = None, as_json: AsJson = False) -> None:
    """Check everything a cycle needs, and say for each finding what to do about it.

    Looks at the configuration and its rules, the Claude CLI and its abilities, credentials, prompts, database,
    directories, disk space, schedules and firings, addresses of messages, installed units, and what waits for a
    person. It measures the fixed size of an API call and lets the guard refuse a forbidden one, both on the real CLI
    with a scripted API on this machine.

    Nothing is changed, nobody is told, nothing is spent. That credentials are there is seen; whether they are valid
    is not.
    """
    with exit_with():
        from supervisor.cli.doctor import examine

        raise typer.Exit(examine(config, as_json=as_json))


@app.command(cls=Command, short_help="Watch an incident climbed with a scripted model, at no cost.")
def demo(
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Use the Claude CLI that FILE names as claude.bin, and nothing else of it. Default: no configuration.",
        ),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Climb a whole incident on the real Claude CLI with a scripted model: tier 1 finds a broken web service, tier 2
    cannot mend it, tier 3 does.

    The service and the records are in a throw-away directory, gone at the end. No key is used, no money is spent, and
    what is configured is not looked at, except which CLI to use: by OPSLADDER_CLAUDE__BIN, or by --config.
    """
    with exit_with():
        from supervisor.cli.rehearse import run_demo

        raise typer.Exit(run_demo(config, verbose=verbose))


@app.command(cls=Command, short_help="Run your own ladder with a scripted model, at no cost.")
def rehearse(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO",
            help="What the model says: demo, healthy, unresolved or endless, which are shipped, or a TOML file.",
            autocompletion=one_of("demo", "endless", "healthy", "unresolved"),
        ),
    ],
    config: Config = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Refuse whatever does more than read; say what would have run.")
    ] = False,
    as_json: CycleAsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run your own tiers, prompts, rules and limits on the real Claude CLI, with a model that follows a script.

    The guard decides as it would on duty, and what it lets through really runs: for a shipped scenario at a small web
    service in a throw-away directory, for a file of yours in claude.work_dir. Records go to a throw-away database, so
    nobody is told and no cooldown or budget of yours is used; where a cycle would pause, the rehearsal ends.
    """
    with exit_with():
        from supervisor.cli.rehearse import run_rehearsal

        raise typer.Exit(run_rehearsal(scenario, config, dry_run=dry_run, as_json=as_json, verbose=verbose))


@app.command(cls=Command, short_help="Run one cycle now: for cron, timers and people.")
def cycle(
    schedule: Annotated[
        str | None,
        typer.Argument(
            metavar="SCHEDULE",
            help="Whose cycle, by its name in [[schedules]]. Default: the first one.",
            autocompletion=complete_schedule,
        ),
    ] = None,
    config: Config = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Refuse whatever does more than read, run no higher tier, and say what would have run. On without "
            "it where escalation.dry_run is set.",
        ),
    ] = False,
    max_tier: Annotated[
        int | None,
        typer.Option(
            "--max-tier", min=1, metavar="N", help="Do not climb above this tier. Default: escalation.max_tier."
        ),
    ] = None,
    start_tier: Annotated[
        int, typer.Option("--start-tier", min=1, metavar="N", help="Begin with this tier; not above the highest.")
    ] = 1,
    prompt: Annotated[
        str,
        typer.Option(
            "--prompt", metavar="TEXT", help="Something to tell the first tier that runs.", show_default=False
        ),
    ] = "",
    fresh_session: Annotated[
        bool, typer.Option("--fresh-session", help="Resume nothing: hand every tier its context in writing.")
    ] = False,
    approve_budget: Annotated[
        bool,
        typer.Option(
            "--approve-budget",
            help="Go on although the budget of the cycle or day is used up: as much again may be spent.",
        ),
    ] = False,
    as_json: CycleAsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run one cycle of a schedule: tier 1 looks, higher tiers repair if it asks for them and the rules allow it.

    It first settles what a killed supervisor left behind. Then a paused cycle of the schedule comes first: it goes on
    as it was begun (of the options here only --fresh-session, --approve-budget, --json and --verbose hold for it), or
    if it still waits, this one is skipped. It never runs beside another cycle of the same schedule. People are
    told what they have to know meanwhile.

    Ctrl-C or SIGTERM ends the CLI with all it started; the next cycle of the schedule goes on where it stopped.
    """
    with exit_with():
        from supervisor.cli.cycle import CycleOptions, run_one

        raise typer.Exit(
            run_one(
                config,
                CycleOptions(
                    schedule=schedule,
                    dry_run=dry_run,
                    max_tier=max_tier,
                    start_tier=start_tier,
                    prompt=prompt,
                    fresh_session=fresh_session,
                    approve_budget=approve_budget,
                    as_json=as_json,
                    verbose=verbose,
                ),
            )
        )


@app.command(cls=Command, short_help="Run the service: schedules, recovery, sweep, metrics.")
def run(config: Config = None) -> None:
    """Run the service in the foreground until a signal ends it: it starts cycles by their schedules, goes on with what
    was cut off or waited, sweeps every five minutes, tells people, and serves /metrics, /healthz and /readyz on [web].

    SIGTERM or Ctrl-C lets running cycles end within service.drain_seconds, then interrupts them so that they can be
    gone on with; a second one does not wait. SIGHUP reads the configuration again; a bad one is refused and the old one
    stays. It logs to standard error, and prints nothing. There is one service for each state directory; one-shot
    commands can be used beside it.
    """
    with exit_with():
        from supervisor.cli.run import serve

        serve(config)


@app.command(cls=Command, short_help="Run the tier of a record again and go on from there.")
def retry(
    record: RecordId,
    config: Config = None,
    fresh_session: Annotated[
        bool, typer.Option("--fresh-session", help="Resume nothing: hand every tier its context in writing.")
    ] = False,
    as_json: CycleAsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run a record's tier again, in its own conversation where that can be resumed, and climb on from there.

    It is a cycle of its own, with the schedule, the highest tier and the dry run of the one it comes from; it takes the
    place of a paused cycle of that schedule. What had been built on the record stays readable, but nothing goes on
    from it any more. A record that still runs is refused.
    """
    with exit_with():
        from supervisor.cli.retry import Retry
        from supervisor.cli.retry import retry as run_again

        asked = Retry(record=record, fresh_session=fresh_session, as_json=as_json, verbose=verbose)
        raise typer.Exit(run_again(config, asked))


@app.command(cls=Command, short_help="End a running record and its processes.")
def stop(record: RecordId, config: Config = None, as_json: AsJson = False) -> None:
    """End a running record with its whole process tree, and its cycle with it; or end a cycle that waits.

    Whoever runs the record, a service or another terminal, is asked through the database to end it, and this command
    waits until that is done. Nothing goes on from it by itself; `opsladder retry ID` does.
    """
    with exit_with():
        from supervisor.cli.stop import stop as end_record

        end_record(config, record, as_json=as_json)
