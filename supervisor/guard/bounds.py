"""How long each part of the guard waits, derived from one number. Pure. Used by guard.hooks and guard.server.

Each part outlasts the one inside it, so the innermost still gets to say why a call is refused:

    answer < client < watchdog < hook

The hook's own limit is the CLI's, and a CLI lets a call run whose hook passes it (measured; 2.1.325 can be told
otherwise, 2.1.225 cannot). So it is no part of the count: it lies beyond the end of every run.
"""

import math
from dataclasses import dataclass

ANSWER_SECONDS = 20.0

# For a machine that is slow to start the client or to carry the answer back.
_MARGIN_SECONDS = 10
# The CLI counts milliseconds in 31 bits, and more than those hold would count as no time at all.
_HOOK_SECONDS = 7 * 24 * 3600
# Sent and read at once when all is well.
READ_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """``answer_seconds`` is how long a decision may take: moments, or as long as the hook waits for a person."""

    answer_seconds: float = ANSWER_SECONDS

    def __post_init__(self) -> None:
        if not 0 < self.answer_seconds <= _HOOK_SECONDS / 2:
            raise ValueError(f"a decision cannot be given {self.answer_seconds} seconds")

    @property
    def client_seconds(self) -> int:
        """After this the client gives up and refuses."""
        return math.ceil(self.answer_seconds + READ_SECONDS) + _MARGIN_SECONDS

    @property
    def watchdog_seconds(self) -> int:
        """After this the client itself is killed, which refuses too."""
        return self.client_seconds + _MARGIN_SECONDS

    @property
    def hook_seconds(self) -> int:
        """The limit that the CLI is told."""
        return _HOOK_SECONDS
