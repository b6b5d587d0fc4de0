"""The `opsladder` command. Prints and exits; everything else is done by the rooms below.

Commands are declared in ``app`` and each imports what it needs only when it runs: start-up time is part of every cycle.
"""

import gc
import io
import sys

# Python's own threshold makes it look for garbage dozens of times while modules load, and there is none.
_ALLOCATIONS_BETWEEN_COLLECTIONS = 50_000


def main() -> None:
    """The entry point of the installed command."""
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    from supervisor.cli.app import app
    from supervisor.cli.reader import deliver

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What a model says may hold characters that this terminal's encoding has not; a "?" is better than no line.
            stream.reconfigure(errors="replace")
    try:
        sys.exit(app())
    finally:
        deliver()
        # The last collection of a process walks through everything that was ever imported, to free what dies anyway.
        gc.freeze()
