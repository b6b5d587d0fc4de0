"""Rich's console as this program uses it. Prints to stdout. Used by every command that draws for people."""

import textwrap

from rich.console import Console
from rich.text import Text

from supervisor.cli.exits import SETTLED
from supervisor.cli.reader import stop_writing

_NARROWEST = 20


class Screen(Console):
    """A console that takes a closed pipe for what it is, and can hang a text beside a heading."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        stop_writing()
        raise SystemExit(SETTLED)

    def hang(self, head: Text, body: Text) -> None:
        """Print ``body`` right of ``head``, its further lines below its first; what has no spaces is folded."""
        self._beside(head, list(body.wrap(self, self._room(head), overflow="fold")))

    def hang_whole(self, head: Text, body: str) -> None:
        """The same with words, however long, left whole: a path is there to be copied."""
        room = self._room(head)
        lines = [
            Text(line)
            for paragraph in body.splitlines()
            for line in textwrap.wrap(paragraph, room, break_long_words=False, break_on_hyphens=False)
        ]
        self._beside(head, lines)

    def _room(self, head: Text) -> int:
        return max(_NARROWEST, self.width - head.cell_len)

    def _beside(self, head: Text, lines: list[Text]) -> None:
        margin = Text(" " * head.cell_len)
        for number, line in enumerate(lines or [Text()]):
            line = (margin if number else head) + line
            line.rstrip()
            # Already as wide as the screen at most, or meant to be wider.
            self.print(line, soft_wrap=True, highlight=False)
