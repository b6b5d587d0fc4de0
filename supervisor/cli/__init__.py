"""The `opsladder` command. Prints and exits; everything else is done by the rooms below.

Commands are declared in ``app`` and each imports what it needs only when it runs: start-up time is part of every cycle.
"""

import sys


def main() -> None:
    """The entry point of the installed command."""
    from supervisor.cli.app import app

    sys.exit(app())
