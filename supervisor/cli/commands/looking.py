"""Commands that show what happened and what will. Called from ``main`` through ``app``."""

from pathlib import Path
from typing import Annotated

import typer

from supervisor.cli.commands.base import AsJson, Config, app
from supervisor.cli.exits import exit_with


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


@app.command(short_help="Show when each schedule fires, and how the last time went.")
def schedules(config: Config = None, as_json: AsJson = False) -> None:
    """Show when each schedule fires next, how its last cycle ended, and how many firings were missed.

    It is `opsladder run` that starts them. Times are in UTC.
    """
    with exit_with():
        from supervisor.cli.schedules import show_schedules

        show_schedules(config, as_json=as_json)


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


@app.command(short_help="Print what Prometheus scrapes.")
def metrics(
    config: Config = None,
    textfile: Annotated[
        Path | None,
        typer.Option("--textfile", metavar="PATH", help="Write there instead, whole or not at all, for node_exporter."),
    ] = None,
) -> None:
    """Print all metrics in the format of Prometheus, from the records: no service has to run.

    Example: `opsladder metrics --textfile /var/lib/prometheus/node-exporter/opsladder.prom`
    """
    with exit_with():
        from supervisor.cli.metrics import show_metrics

        show_metrics(config, textfile=textfile)
