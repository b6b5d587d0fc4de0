"""Every command with its options and help; the work is in the module each one imports. Called from ``main``."""

from pathlib import Path
from typing import Annotated

import typer

from supervisor.cli.exits import exit_with

app = typer.Typer(
    name="opsladder",
    help="A tiered ops-escalation supervisor: look with a cheap model first, repair with a strong one only when "
    "needed, in one conversation all the way up.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
db = typer.Typer(help="The database schema.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(db, name="db")

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


@app.command()
def chains(
    config: Config = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="How many.")] = 20,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            metavar="S",
            help="Only these: running, healthy, resolved, unresolved, blocked, paused, failed, stopped or skipped.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the newest chains first."""
    with exit_with():
        from supervisor.cli.show import show_chains

        show_chains(config, limit=limit, status=status, as_json=as_json)


@app.command()
def chain(
    record: Annotated[int | None, typer.Argument(metavar="ID", help="Any session record of the chain.")] = None,
    cycle_id: Annotated[
        int | None, typer.Option("--cycle", metavar="N", help="Name the chain by its cycle instead.")
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show the chain that contains a session record, as a tree."""
    with exit_with():
        from supervisor.cli.show import show_chain

        show_chain(config, record=record, cycle=cycle_id, as_json=as_json)


@app.command()
def session(
    record: Annotated[int, typer.Argument(metavar="ID", help="The session record.")],
    config: Config = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on printing until the session is over; with --json, wait for that.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show one record: messages, tool calls and guard decisions."""
    with exit_with():
        from supervisor.cli.show_session import show_session

        show_session(config, record=record, follow=follow, as_json=as_json)


@app.command(short_help="List trouble that lasts over several cycles.")
def incidents(
    config: Config = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="How many.")] = 20,
    status: Annotated[str | None, typer.Option("--status", metavar="S", help="Only these: open or closed.")] = None,
    as_json: AsJson = False,
) -> None:
    """List incidents, those that changed last first. One is trouble with some services, over all cycles that met it."""
    with exit_with():
        from supervisor.cli.incidents import show_incidents

        show_incidents(config, limit=limit, status=status, as_json=as_json)


@app.command(short_help="Show one incident: its cycles, actions and cost.")
def incident(
    incident_id: Annotated[int, typer.Argument(metavar="ID", help="Which one; `opsladder incidents` lists them.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show one incident as a timeline: each cycle that met it, how it ended, what was done and what it cost."""
    with exit_with():
        from supervisor.cli.incidents import show_incident

        show_incident(config, incident_id=incident_id, as_json=as_json)


@app.command(short_help="Drop the sessions kept for open incidents.")
def reset(
    schedule: Annotated[
        str | None, typer.Argument(metavar="SCHEDULE", help="Only those of this schedule; all if not given.")
    ] = None,
    incident_id: Annotated[
        int | None, typer.Option("--incident", metavar="ID", help="Only those of this incident.")
    ] = None,
    config: Config = None,
) -> None:
    """Drop the sessions kept for open incidents, so that the next cycle begins with a fresh conversation.

    Records and incidents stay as they are.
    """
    with exit_with():
        from supervisor.cli import incidents as kept

        kept.reset(config, schedule=schedule, incident_id=incident_id)


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


@app.command(short_help="Show the health and the cooldowns of services.")
def services(config: Config = None, as_json: AsJson = False) -> None:
    """Show how each service was last reported, and which repairs of it are in cooldown."""
    with exit_with():
        from supervisor.cli.services import show_services

        show_services(config, as_json=as_json)


@app.command(short_help="List the tool calls that wait for a person.")
def approvals(config: Config = None, as_json: AsJson = False) -> None:
    """List the tool calls that wait for a person: what each would do, why it waits, until when, and how to answer.

    When none does, it says which cycles are paused for another reason, and what they wait for.
    """
    with exit_with():
        from supervisor.cli.approvals import show_approvals

        show_approvals(config, as_json=as_json)


@app.command(short_help="Let a waiting tool call run, once.")
def approve(approval: ApprovalId, config: Config = None, as_json: AsJson = False, verbose: Verbose = False) -> None:
    """Let a waiting tool call run, exactly as it is shown and once, and go on with its cycle.

    Exit codes are those of `cycle`.
    """
    with exit_with():
        from supervisor.cli.approvals import Answer, answer

        raise typer.Exit(answer(config, Answer(approval=approval, approved=True, as_json=as_json, verbose=verbose)))


@app.command(short_help="Refuse a waiting tool call.")
def deny(
    approval: ApprovalId,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="What the model is told.")] = None,
    config: Config = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Refuse a waiting tool call, tell the model why, and go on with its cycle.

    Exit codes are those of `cycle`.
    """
    with exit_with():
        from supervisor.cli.approvals import Answer, answer

        said = Answer(approval=approval, approved=False, reason=reason, as_json=as_json, verbose=verbose)
        raise typer.Exit(answer(config, said))


@app.command(short_help="Turn everything off.")
def pause(
    config: Config = None,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="For the record.")] = None,
) -> None:
    """Turn everything off: no new run starts, and running ones get no tool call through, from the next one on.

    Who, when and why stays on record. `opsladder unpause` ends it.
    """
    with exit_with():
        from supervisor.cli import switch

        switch.pause(config, reason=reason)


@app.command(short_help="Turn everything on again.")
def unpause(config: Config = None) -> None:
    """Turn everything on again. A cycle that was held up goes on with the next cycle of its schedule."""
    with exit_with():
        from supervisor.cli import switch

        switch.unpause(config)


@app.command()
def cost(
    config: Config = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="7d, 12h, 30m, or a date like 2026-11-01.")
    ] = None,
    by: Annotated[str, typer.Option("--by", metavar="WHAT", help="tier, schedule, model or day.")] = "tier",
    as_json: AsJson = False,
) -> None:
    """Show what was spent."""
    with exit_with():
        from supervisor.cli.show import show_cost

        show_cost(config, since=since, by=by, as_json=as_json)


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
