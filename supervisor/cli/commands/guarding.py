"""Commands around the guard: services, approvals, the switch. Called from ``main`` through ``app``."""

from typing import Annotated

import typer

from supervisor.cli.commands.base import ApprovalId, AsJson, Command, Config, CycleAsJson, Verbose, app
from supervisor.cli.exits import exit_with


@app.command(cls=Command, short_help="Show the health and the cooldowns of services.")
def services(config: Config = None, as_json: AsJson = False) -> None:
    """Show how each service was last reported, since when, for how many healthy cycles in a row, and how much of its
    restarts and redeployments is used up, with the time from which they are allowed again.

    These are the reports of the agents: nothing is looked at now. It only reads.
    """
    with exit_with():
        from supervisor.cli.services import show_services

        show_services(config, as_json=as_json)


@app.command(cls=Command, short_help="List the tool calls that wait for a person.")
def approvals(config: Config = None, as_json: AsJson = False) -> None:
    """List the tool calls that wait for a person: what each would do, in full, why it waits, until when, and what to
    type as an answer.

    When none does, it says which cycles are paused for another reason, and what they wait for. It only reads.
    """
    with exit_with():
        from supervisor.cli.approvals import show_approvals

        show_approvals(config, as_json=as_json)


@app.command(cls=Command, short_help="Let a waiting tool call run, once.")
def approve(
    approval: ApprovalId, config: Config = None, as_json: CycleAsJson = False, verbose: Verbose = False
) -> None:
    """Let a waiting tool call run, exactly as `opsladder approvals` shows it and once, and go on with its cycle here
    and now, to its end.

    Where the CLI cannot put a call off, its run has waited for the answer elsewhere, and goes on there. Who approved it
    stays on record. The switch, a budget that is used up and a cooldown still refuse the call. An approval that was
    answered before, or that waited too long, is not taken, and nothing is changed.
    """
    with exit_with():
        from supervisor.cli.approvals import Answer, answer

        raise typer.Exit(answer(config, Answer(approval=approval, approved=True, as_json=as_json, verbose=verbose)))


@app.command(cls=Command, short_help="Refuse a waiting tool call.")
def deny(
    approval: ApprovalId,
    reason: Annotated[
        str | None,
        typer.Option("--reason", metavar="TEXT", help="What the model is told. Default: only that a person refused."),
    ] = None,
    config: Config = None,
    as_json: CycleAsJson = False,
    verbose: Verbose = False,
) -> None:
    """Refuse a waiting tool call, tell the model why, and go on with its cycle here and now, to its end.

    The cycle is not ended by it: the tier may find another way, or report that it could not. `opsladder stop` ends it.
    Who refused it and why stays on record.
    """
    with exit_with():
        from supervisor.cli.approvals import Answer, answer

        said = Answer(approval=approval, approved=False, reason=reason, as_json=as_json, verbose=verbose)
        raise typer.Exit(answer(config, said))


@app.command(cls=Command, short_help="Turn everything off.")
def pause(
    config: Config = None,
    reason: Annotated[
        str | None,
        typer.Option("--reason", metavar="TEXT", help="For the record and for whoever wonders. Default: none."),
    ] = None,
) -> None:
    """Turn everything off, for all schedules: no new run starts, and running ones get no tool call through, from the
    next one on. A command that an agent has already started is not ended; `opsladder stop ID` does that.

    It holds for every process that uses this database, over restarts, until `opsladder unpause`. Which that is, the
    configuration says: for the service of the machine, name its configuration, as root or as its user. Who, when and
    why stays on record; paused again, the newer reason counts.
    """
    with exit_with():
        from supervisor.cli import switch

        switch.pause(config, reason=reason)


@app.command(cls=Command, short_help="Turn everything on again.")
def unpause(config: Config = None) -> None:
    """Turn everything on again, and list the cycles that were held up.

    Such a cycle goes on with the next cycle of its schedule, or by the service within seconds. Nothing is started here.
    """
    with exit_with():
        from supervisor.cli import switch

        switch.unpause(config)
