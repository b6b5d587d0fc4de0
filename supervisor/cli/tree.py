"""A chain as a tree for the terminal. No I/O. Used by `chain`, `cycle` and the live view."""

from collections.abc import Callable

from rich.text import Text
from rich.tree import Tree

from supervisor.cli import words
from supervisor.model.cycle import Chain, Cycle, CycleStatus
from supervisor.model.session import UNFINISHED, ContinuityKind, Session, SessionStatus

Extra = Callable[[Session], list[Text]]


def chain_tree(
    chain: Chain, extra: Extra | None = None, *, elapsed_seconds: float | None = None, rehearsed: bool = False
) -> Tree:
    """The cycle at the root, each record under the one it continues; ``elapsed_seconds`` is for one that still runs."""
    head = _cycle_line(chain, elapsed_seconds)
    if way_on := words.way_on(chain.cycle):
        head.append(f"\n→ A {words.REHEARSAL_ENDS}." if rehearsed else f"\n→ To go on: {way_on}.", "yellow")
    root = Tree(head, guide_style="bright_black")
    nodes: dict[int, Tree] = {}
    for session in chain.sessions:
        above = nodes.get(session.parent_session_id, root) if session.parent_session_id is not None else root
        more = [*_elsewhere(session, chain), *(extra(session) if extra else [])]
        nodes[session.id] = above.add(session_lines(session, more))
    return root


def _elsewhere(session: Session, chain: Chain) -> list[Text]:
    """What sets a record apart from the rest of its tree: its cycle, and whether somebody began again above it."""
    said = []
    if session.cycle_id != chain.cycle.id:
        said.append(Text(f"of cycle {session.cycle_id}", "bright_black"))
    if session.epoch:
        said.append(Text("superseded: a record above it was retried", "yellow"))
    return said


def _cycle_line(chain: Chain, elapsed_seconds: float | None = None) -> Text:
    cycle, own = chain.cycle, chain.own
    seconds = elapsed_seconds if own.duration_seconds is None else own.duration_seconds
    runs = cycle.status is CycleStatus.RUNNING
    line = Text.assemble(("Cycle ", "bold"), (f"{cycle.id} ", "bold"), f"{cycle.schedule} ", _sign(cycle))
    if cycle.reason:
        line.append(f" ({cycle.reason})")
    if cycle.dry_run:
        line.append("  dry run", "yellow")
    if own.sessions and not (runs and own.cost_usd is None):
        line.append(f"  {words.money(own.cost_usd, exact=own.cost_is_exact)}", "bold")
    if seconds is not None:
        line.append(f"  {words.duration(seconds)}")
    if chain.others:
        line.append(f"\n{_whole(chain)}")
    if cycle.detail:
        line.append(f"\n{words.one_line(cycle.detail, 300)}", "italic")
    return line


def _whole(chain: Chain) -> str:
    """The chain beyond its cycle: the head tells of the cycle alone."""
    cycles = words.numbers([cycle.id for cycle in chain.cycles])
    took = "" if chain.duration_seconds is None else f", {words.duration(chain.duration_seconds)}"
    cost = words.money(chain.cost_usd, exact=chain.cost_is_exact)
    return f"One chain of {len(chain.sessions)} records in cycles {cycles}: {cost}{took}"


def session_lines(session: Session, extra: list[Text]) -> Text:
    sign, colour = words.SESSION_SIGNS[session.status]
    how = "bold" if session.continuity is not ContinuityKind.HANDOFF else "bold yellow"
    line = Text.assemble(
        (f"Tier {session.tier} ", "bold"),
        f"{session.model} ",
        (f"{sign} {session.status.value}", colour),
        "  ",
        (session.continuity.value, how),
        f" ({session.reason.value})",
        (f"  record {session.id}", "bright_black"),
    )
    if session.resumes:
        line.append(f"  gone on with {words.several(session.resumes, 'time')}", "yellow")
    if session.status not in UNFINISHED:
        line.append(
            f"\n{words.session_cost(session)} · {words.duration(session.duration_seconds)} · "
            f"{words.context(session)} · {words.tool_calls(session)}"
        )
        said = session.report.summary if session.report else _what_became_of(session)
        if said:
            line.append(f"\n{words.one_line(said, 300)}", "italic")
        if session.report and session.report.escalation_needed:
            line.append(f"\n↑ {words.one_line(session.report.escalation_reason, 300)}", "yellow")
    for more in extra:
        line.append("\n")
        line.append_text(more)
    return line


def _what_became_of(session: Session) -> str | None:
    """The end of a session without a report. One that was paused says so no longer once another has gone on from it."""
    if session.status is SessionStatus.COMPLETED and session.failure is not None:
        return f"Paused ({session.failure.value}), then gone on from."
    return session.detail


def _sign(cycle: Cycle) -> tuple[str, str]:
    sign, colour = words.CYCLE_SIGNS[cycle.status]
    return f"{sign} {cycle.status.value}", colour
