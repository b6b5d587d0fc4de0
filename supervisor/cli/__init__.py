"""The `opsladder` command. Prints and exits; everything else is done by the rooms below.

Commands are declared in ``app`` and each imports what it needs only when it runs: start-up time is part of every cycle.
"""

import gc
import io
import os
import sys
from pathlib import Path

# Python's own threshold makes it look for garbage dozens of times while modules load, and there is none.
_ALLOCATIONS_BETWEEN_COLLECTIONS = 50_000
# As a shell says it of a command that Ctrl-C has ended.
_INTERRUPTED = 130


def main() -> None:
    """The entry point of the installed command."""
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    _stand_in_for_closed_streams()
    from supervisor.cli.reader import deliver

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What a model says may hold characters that this terminal's encoding has not; a "?" is better than no line.
            stream.reconfigure(errors="replace")
    try:
        from supervisor.cli.app import app

        sys.exit(app())
    except KeyboardInterrupt:
        # Before there was a command to deal with it.
        sys.exit(_INTERRUPTED)
    finally:
        deliver()
        # The last collection of a process walks through everything that was ever imported, to free what dies anyway.
        gc.freeze()


def _stand_in_for_closed_streams() -> None:
    """Whoever closed one (`>&-`) wants nothing of it: Python then has none, and the next file would get its number."""
    nowhere = Path(os.devnull)
    # In this order, because each gets the lowest number that is free.
    sys.stdin = sys.stdin or nowhere.open("r", encoding="utf-8")
    sys.stdout = sys.stdout or nowhere.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or nowhere.open("w", encoding="utf-8")
