"""The wish to end a cycle. No I/O. Made by cli before anything starts, heeded by climb.run and climb.cycle."""

import asyncio

from supervisor.model.outcome import Ended


class StopRequest:
    """A wish to end the running session, with who wished it. The first wish counts."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.ended = Ended.INTERRUPTED

    def ask(self, ended: Ended = Ended.INTERRUPTED) -> None:
        if not self.event.is_set():
            self.ended = ended
            self.event.set()
