"""A cycle as a tree that grows while it runs. Draws on the terminal. A watcher of ``climb``."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.text import Text
from rich.tree import Tree

from supervisor.cli import words
from supervisor.cli.plain import PlainLines
from supervisor.cli.screen import Screen
from supervisor.cli.tree import chain_tree
from supervisor.model.cycle import Chain, Cycle
from supervisor.model.progress import (
    CycleEnded,
    CycleStarted,
    Notice,
    Progress,
    TierActivity,
    TierDecided,
    TierEnded,
    TierStarted,
    Watch,
)
from supervisor.model.session import CostBasis, Session, SessionStatus


class _Picture:
    """What is known so far, drawable at any moment."""

    def __init__(self) -> None:
        self._cycle: Cycle | None = None
        self._sessions: dict[int, Session] = {}
        self._final: CycleEnded | None = None
        self._activity: TierActivity | None = None
        self._began = time.monotonic()
        self._since: dict[int, float] = {}
        self.notices: list[Notice] = []

    def take(self, progress: Progress) -> None:
        match progress:
            case CycleStarted(cycle=cycle):
                self._cycle = cycle
                self._began = time.monotonic()
            case TierStarted(session=session):
                # Its record said "created" when it was written; it runs from here on.
                self._sessions[session.id] = replace(session, status=SessionStatus.ACTIVE)
                self._since[session.id] = time.monotonic()
                self._activity = None
            case TierActivity(session=session):
                self._activity = progress
                self._sessions[session.id] = replace(
                    self._sessions.get(session.id, session),
                    status=SessionStatus.ACTIVE,
                    cost_usd=progress.cost_usd,
                    cost_basis=CostBasis.UNKNOWN if progress.cost_usd is None else CostBasis.ESTIMATED,
                )
            case TierEnded(session=session):
                self._sessions[session.id] = session
                self._since.pop(session.id, None)
                self._activity = None
            case Notice():
                self.notices.append(progress)
            case CycleEnded():
                self._final = progress
            case TierDecided():
                pass

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._final is not None:
            yield chain_tree(self._final.chain, rehearsed=self._final.rehearsed)
        elif self._cycle is None:
            yield Text("Starting…")
        else:
            lines = console.render_lines(self._tree(self._cycle), options, pad=False)
            for line in _what_fits(lines, console.height):
                yield from line
                yield Segment.line()

    def _tree(self, cycle: Cycle) -> Tree:
        chain = Chain(cycle=cycle, sessions=tuple(self._sessions.values()))
        return chain_tree(chain, self._now, elapsed_seconds=time.monotonic() - self._began)

    def _now(self, session: Session) -> list[Text]:
        since = self._since.get(session.id)
        if since is None:
            return []
        elapsed = words.duration(time.monotonic() - since)
        activity = self._activity
        if activity is None or activity.session.id != session.id:
            return [Text(f"waiting for the model · {elapsed}", "cyan")]
        cost = words.money(activity.cost_usd, exact=False)
        return [
            Text(f"{words.count(activity.tokens.total)} tokens · {cost} · {elapsed}", "cyan"),
            Text(words.one_line(activity.doing, 160), "cyan"),
        ]


def _what_fits(lines: list[list[Segment]], height: int) -> list[list[Segment]]:
    """On a screen too low for the tree, its first line and its end: the end is where something happens."""
    if len(lines) < height:
        return lines
    hidden = len(lines) - (height - 3)
    return [lines[0], [Segment(f"⋮   {hidden - 1} lines above")], *lines[hidden:]]


@contextmanager
def live_tree(console: Console | None = None) -> Iterator[Watch]:
    """Draw until the cycle is over; the last picture stays on the screen, what a person must know stands below it."""
    console = console or Screen()
    if console.is_dumb_terminal:
        # It cannot draw over what it has drawn.
        yield PlainLines()
        return
    picture = _Picture()
    with Live(picture, console=console, refresh_per_second=8):
        yield picture.take
    for notice in picture.notices:
        head = ("! A person is needed: ", "bold red") if notice.needs_a_person else ("! Warning: ", "yellow")
        console.print(Text.assemble(head, words.harmless(notice.text)))
