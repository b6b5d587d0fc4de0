"""Commands that show what happened and what will. Called from ``main`` through ``app``."""

from pathlib import Path
from typing import Annotated

import typer

from supervisor.cli.commands.base import AsJson, Command, Config, RecordId, app, complete_schedule, one_of
from supervisor.cli.exits import exit_with

_CYCLE_STATUSES = ("running", "healthy", "resolved", "unresolved", "blocked", "paused", "failed", "stopped", "skipped")


@app.command(cls=Command, short_help="List the newest chains first.")
def chains(
    config: Config = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="How many at most.")] = 20,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            metavar="S",
            help=f"Only cycles that are {', '.join(_CYCLE_STATUSES[:-1])} or {_CYCLE_STATUSES[-1]}. Default: all.",
            autocompletion=one_of(*_CYCLE_STATUSES),
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List chains, the newest first: a chain is what one cycle did, a record for each run of the Claude CLI.

    Each has two lines: the number of the cycle, when it started, its schedule, status, highest tier, records, cost and
    duration; then why it ended so. A cost with ≈ is estimated in part. It only reads.
    """
    with exit_with():
        from supervisor.cli.show import show_chains

        show_chains(config, limit=limit, status=status, as_json=as_json)


@app.command(cls=Command, short_help="Show the chain that contains a session record, as a tree.")
def chain(
    record: Annotated[
        int | None, typer.Argument(metavar="ID", help="Any session record of the chain. Not together with --cycle.")
    ] = None,
    cycle_id: Annotated[
        int | None, typer.Option("--cycle", metavar="N", help="Name the chain by the number of its cycle instead.")
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show a whole chain as a tree: how the cycle ended and what it cost, and below each record those that went on from
    it, with model, status, whether it resumed and why, cost, context and tool calls.

    Name it by any of its records or by its cycle. Of a paused cycle it says what to type so that it goes on. It only
    reads.
    """
    with exit_with():
        from supervisor.cli.show import show_chain

        show_chain(config, record=record, cycle=cycle_id, as_json=as_json)


@app.command(cls=Command, short_help="Show one record: messages, tool calls and guard decisions.")
def session(
    record: RecordId,
    config: Config = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="Go on printing until the session is over; with --json, wait for that before printing."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show one record, which is one run of the Claude CLI: its figures, its prompt, what it said, each tool call with
    what the guard decided about it, and each result.

    A text of more than 2,000 characters is cut short and says so; --json has all of it, and the history of statuses.
    Of messages that were archived it names the file. It only reads, so leaving --follow with Ctrl-C stops nothing else.
    """
    with exit_with():
        from supervisor.cli.show_session import show_session

        show_session(config, record=record, follow=follow, as_json=as_json)


@app.command(cls=Command, short_help="List trouble that lasts over several cycles.")
def incidents(
    config: Config = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="How many at most.")] = 20,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            metavar="S",
            help="Only those that are open or closed. Default: both.",
            autocompletion=one_of("open", "closed"),
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List incidents, those that changed last first, each with its services, how long it lasted, cycles and cost.

    An incident is trouble with some services, over all cycles of a schedule that met it. It closes after two cycles
    without that trouble. It only reads.
    """
    with exit_with():
        from supervisor.cli.incidents import show_incidents

        show_incidents(config, limit=limit, status=status, as_json=as_json)


@app.command(cls=Command, short_help="Show one incident: its cycles, actions and cost.")
def incident(
    incident_id: Annotated[
        int, typer.Argument(metavar="ID", help="The number of the incident; `opsladder incidents` lists them.")
    ],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show one incident as a timeline: each cycle that met it, how it ended, what was done and what it cost; and which
    sessions are kept, in which the next cycle goes on. It only reads.
    """
    with exit_with():
        from supervisor.cli.incidents import show_incident

        show_incident(config, incident_id=incident_id, as_json=as_json)


@app.command(cls=Command, short_help="Drop the sessions kept for open incidents.")
def reset(
    schedule: Annotated[
        str | None,
        typer.Argument(
            metavar="SCHEDULE", help="Only those of this schedule. Default: all.", autocompletion=complete_schedule
        ),
    ] = None,
    incident_id: Annotated[
        int | None,
        typer.Option(
            "--incident",
            metavar="ID",
            help="Only those of this incident, which has to be of SCHEDULE if both are given.",
        ),
    ] = None,
    config: Config = None,
) -> None:
    """Drop the sessions kept for open incidents, so that the next cycle begins with a fresh conversation.

    For a conversation that has gone astray, or one that should not know of what you changed meanwhile. Records,
    incidents, cooldowns and paused cycles stay as they are.
    """
    with exit_with():
        from supervisor.cli import incidents as kept

        kept.reset(config, schedule=schedule, incident_id=incident_id)


@app.command(cls=Command, short_help="Show when each schedule fires, and how the last time went.")
def schedules(config: Config = None, as_json: AsJson = False) -> None:
    """Show when each schedule fires next, how its last cycle ended, and how many firings were missed. Times are in UTC.

    It is `opsladder run` that starts them by these times; timers and cron have their own. It only reads.
    """
    with exit_with():
        from supervisor.cli.schedules import show_schedules

        show_schedules(config, as_json=as_json)


@app.command(cls=Command, short_help="Show what was spent.")
def cost(
    config: Config = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="From then on: 7d, 12h, 30m or 90s ago, or a date or time (UTC) like 2026-11-01. Default: all there "
            "ever was.",
        ),
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="WHAT",
            help="A line for each tier, schedule, model or day (UTC).",
            autocompletion=one_of("tier", "schedule", "model", "day"),
        ),
    ] = "tier",
    as_json: AsJson = False,
) -> None:
    """Show what was spent, in US dollars and tokens, by tier or otherwise, also on records that were pruned since.

    A cost with ≈ is estimated in part, as a run that was cut off has no bill; what is unknown is said to be, and never
    taken for 0. It only reads.
    """
    with exit_with():
        from supervisor.cli.show import show_cost

        show_cost(config, since=since, by=by, as_json=as_json)


@app.command(cls=Command, short_help="Print what Prometheus scrapes.")
def metrics(
    config: Config = None,
    textfile: Annotated[
        Path | None,
        typer.Option(
            "--textfile",
            metavar="PATH",
            help="Write there instead, whole or not at all, for node_exporter. Default: standard output.",
        ),
    ] = None,
) -> None:
    """Print all metrics in the format of Prometheus, from the records: no service has to run.

    Only when each schedule fires next is missing, which the service knows. It reads the records, and writes nothing
    but PATH.
    """
    with exit_with():
        from supervisor.cli.metrics import show_metrics

        show_metrics(config, textfile=textfile)
