"""A cycle as a tree that grows while it runs. Draws on the terminal. A watcher of ``climb``."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from supervisor.cli import words
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
from supervisor.model.session import Session


class _Picture:
    """What is known so far, drawable at any moment."""

    def __init__(self) -> None:
        self._cycle: Cycle | None = None
        self._sessions: dict[int, Session] = {}
        self._final: Chain | None = None
        self._activity: TierActivity | None = None
        self._since: dict[int, float] = {}
        self.notices: list[str] = []

    def take(self, progress: Progress) -> None:
        match progress:
            case CycleStarted(cycle=cycle):
                self._cycle = cycle
            case TierStarted(session=session):
                self._sessions[session.id] = session
                self._since[session.id] = time.monotonic()
                self._activity = None
            case TierActivity():
                self._activity = progress
            case TierEnded(session=session):
                self._sessions[session.id] = session
                self._since.pop(session.id, None)
                self._activity = None
            case Notice(text=text):
                self.notices.append(text)
            case CycleEnded(chain=chain):
                self._final = chain
            case TierDecided():
                pass

    def __rich__(self) -> RenderableType:
        if self._final is not None:
            return chain_tree(self._final)
        if self._cycle is None:
            return Text("Starting…")
        return chain_tree(Chain(cycle=self._cycle, sessions=tuple(self._sessions.values())), self._now)

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


@contextmanager
def live_tree(console: Console | None = None) -> Iterator[Watch]:
    """Draw until the cycle is over; the last picture stays on the screen, what a person must know stands below it."""
    picture = _Picture()
    console = console or Console()
    with Live(picture, console=console, refresh_per_second=8):
        yield picture.take
    for notice in picture.notices:
        console.print(Text.assemble(("! A person is needed: ", "bold red"), notice))
