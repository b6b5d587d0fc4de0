"""The prompts of all cycles of one service. Reads their directories. Used by service.daemon.

To read the templates takes some 8 ms on the event loop, more than all else there when a cycle starts: measured with
500 that start at once, it was three quarters. So it is not done anew for each, but when a file has changed.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from supervisor.climb.trial import check_prompts
from supervisor.prompts import Prompts
from supervisor.settings import Settings

_State = tuple[str, int, int, int]


class Templates:
    """Hands out the same prompts as long as their files are the same."""

    def __init__(self) -> None:
        self._made: tuple[list[_State], Prompts] | None = None
        self._tried: tuple[Settings, Prompts] | None = None

    async def tried(self, settings: Settings) -> Prompts:
        """The prompts as they are on disk, once it is known that they render. ``ConfigError`` if one does not."""
        prompts = self.current(settings.prompt_dirs)
        if self._tried is None or self._tried[0] is not settings or self._tried[1] is not prompts:
            await asyncio.to_thread(check_prompts, settings)
            self._tried = settings, prompts
        return prompts

    def current(self, directories: Sequence[Path]) -> Prompts:
        """The prompts as they are on disk."""
        found = [state for directory in directories for state in _states(str(directory))]
        if self._made is None or self._made[0] != found:
            self._made = found, Prompts(directories)
        return self._made[1]


def _states(directory: str) -> Iterator[_State]:
    """What shows that a file in a directory, or below it, is another one. A directory that is not there has none."""
    for place, _, names in os.walk(directory):
        for name in sorted(names):
            path = Path(place, name)
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            yield str(path), status.st_ino, status.st_size, status.st_mtime_ns
