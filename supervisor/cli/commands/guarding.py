"""Commands around the guard: services, approvals, the switch. Called from ``main`` through ``app``."""

from typing import Annotated

import typer

from supervisor.cli.commands.base import ApprovalId, AsJson, Config, Verbose, app
from supervisor.cli.exits import exit_with


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
