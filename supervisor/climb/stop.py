"""The wish to end a cycle or one of its runs. No I/O. Made by cli before anything starts, heeded by climb."""

import asyncio

from supervisor.model.outcome import Ended


class StopRequest:
    """A wish to end what runs, with who wished it. The first wish counts."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.ended = Ended.INTERRUPTED
        self._run: StopRequest | None = None

    def ask(self, ended: Ended = Ended.INTERRUPTED) -> None:
        if not self.event.is_set():
            self.ended = ended
            self.event.set()
        if self._run is not None:
            self._run.ask(ended)

    def for_run(self) -> "StopRequest":
        """A wish of the next run's own: what ends the cycle ends it too, what ends only the run leaves the cycle be."""
        self._run = StopRequest()
        if self.event.is_set():
            self._run.ask(self.ended)
        return self._run
