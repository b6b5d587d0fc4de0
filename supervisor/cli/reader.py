"""When whoever reads our output goes away: `| head`, a full disk behind `>`. Used by everything that prints."""

import os
import sys


def deliver() -> None:
    """Hand over what is still buffered. Python itself would do so too late to say anything sensible about a failure."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # It has seen enough; that is its right.
        stop_writing()
    except OSError as error:
        stop_writing()
        print(f"opsladder: standard output cannot be written: {error.strerror}.", file=sys.stderr)
        sys.exit(1)


def stop_writing() -> None:
    """Let everything that is printed from here on vanish."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
