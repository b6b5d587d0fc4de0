"""Commands that run something, and the options before the command. Called from ``main`` through ``app``."""

from pathlib import Path
from typing import Annotated

import typer

from supervisor.cli.commands.base import AsJson, Config, Verbose, app
from supervisor.cli.exits import exit_with


def _version(wanted: bool) -> None:
    if wanted:
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


@app.command(short_help="Write a configuration to start from.")
def init(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where to write; here if not given.", show_default=False)
    ] = Path(),
    prompts: Annotated[bool, typer.Option("--prompts", help="Also copy the prompts, to make them your own.")] = False,
) -> None:
    """Write a commented configuration, model table and environment description to start from. Never overwrites."""
    with exit_with():
        from supervisor.cli.init import write_start

        write_start(directory, prompts=prompts)


@app.command()
def doctor(config: Config = None, as_json: AsJson = False) -> None:
    """Check everything a cycle needs, changing nothing. Exit 1 if a cycle would fail.

    Looks at the configuration and its rules, the Claude CLI and its abilities, credentials, prompts, database,
    directories, schedules and what waits for a person, and measures the fixed size of an API call against a scripted
    API on this machine.
    """
    with exit_with():
        from supervisor.cli.doctor import examine

        raise typer.Exit(examine(config, as_json=as_json))


@app.command(short_help="Watch an incident climbed with a scripted model, at no cost.")
def demo(verbose: Verbose = False) -> None:
    """Climb a whole incident on the real Claude CLI with a scripted model. No key, no configuration, no cost."""
    with exit_with():
        from supervisor.cli.rehearse import run_demo

        raise typer.Exit(run_demo(verbose=verbose))


@app.command(short_help="Run your own ladder with a scripted model, at no cost.")
def rehearse(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A scenario file, or demo, healthy, unresolved, endless.")
    ],
    config: Config = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; say what would have run.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run your own ladder, prompts and rules on the real CLI with a scripted model, at no cost.

    The records go to a throw-away database; tool calls of the scenario really run, in the working directory.
    """
    with exit_with():
        from supervisor.cli.rehearse import run_rehearsal

        raise typer.Exit(run_rehearsal(scenario, config, dry_run=dry_run, as_json=as_json, verbose=verbose))


@app.command()
def cycle(
    schedule: Annotated[
        str | None, typer.Argument(metavar="SCHEDULE", help="Which schedule; the first one if not given.")
    ] = None,
    config: Config = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing, run no higher tier; say what would have run.")
    ] = False,
    max_tier: Annotated[
        int | None, typer.Option("--max-tier", min=1, metavar="N", help="Do not climb above this tier.")
    ] = None,
    start_tier: Annotated[int, typer.Option("--start-tier", min=1, metavar="N", help="Begin with this tier.")] = 1,
    prompt: Annotated[
        str, typer.Option("--prompt", metavar="TEXT", help="Something to tell the first tier.", show_default=False)
    ] = "",
    fresh_session: Annotated[
        bool, typer.Option("--fresh-session", help="Resume nothing: hand every tier its context in writing.")
    ] = False,
    approve_budget: Annotated[
        bool,
        typer.Option("--approve-budget", help="Go on although a budget is used up: as much again may be spent."),
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run one cycle now. For cron, systemd timers and people.

    A paused cycle of the schedule comes first: it goes on if what it waits for has come, else this one is skipped.

    Exit: 0 settled · 1 failed · 2 usage or configuration · 3 needs a person · 4 paused · 5 skipped.
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


@app.command(short_help="Run the service: schedules, recovery, sweep, metrics.")
def run(config: Config = None) -> None:
    """Run the service in the foreground: schedules, recovery, sweep, messages, metrics.

    SIGTERM lets running cycles end within service.drain_seconds, then interrupts them so that they can be gone on with;
    a second one does not wait. SIGHUP reads the configuration again. Example: opsladder systemd install
    """
    with exit_with():
        from supervisor.cli.run import serve

        serve(config)


@app.command(short_help="Run a record's tier again and go on from there.")
def retry(
    record: Annotated[int, typer.Argument(metavar="ID", help="The session record.")],
    config: Config = None,
    fresh_session: Annotated[
        bool, typer.Option("--fresh-session", help="Resume nothing: hand every tier its context in writing.")
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run a record's tier again, in its own conversation where that can be resumed, and go on from there.

    It is a cycle of its own. What had been built on the record stays readable, but nothing goes on from it any more.

    Exit codes are those of `cycle`.
    """
    with exit_with():
        from supervisor.cli.retry import Retry
        from supervisor.cli.retry import retry as run_again

        asked = Retry(record=record, fresh_session=fresh_session, as_json=as_json, verbose=verbose)
        raise typer.Exit(run_again(config, asked))


@app.command(short_help="End a running record and its processes.")
def stop(
    record: Annotated[int, typer.Argument(metavar="ID", help="The session record.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """End a running record with its whole process tree, and its cycle with it; or end a cycle that waits.

    Nothing goes on from it by itself; `opsladder retry ID` does.
    """
    with exit_with():
        from supervisor.cli.stop import stop as end_record

        end_record(config, record, as_json=as_json)
