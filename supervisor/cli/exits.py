"""Exit codes, and how an error reaches the person. Prints to stderr. Used by every command."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from supervisor.errors import ConfigError, OpsladderError, UsageError
from supervisor.model.cycle import CycleStatus

SETTLED, FAILED, USAGE, NEEDS_A_PERSON, PAUSED, SKIPPED = range(6)

_BY_STATUS = {
    CycleStatus.HEALTHY: SETTLED,
    CycleStatus.RESOLVED: SETTLED,
    CycleStatus.FAILED: FAILED,
    CycleStatus.STOPPED: FAILED,
    CycleStatus.RUNNING: FAILED,
    CycleStatus.UNRESOLVED: NEEDS_A_PERSON,
    CycleStatus.BLOCKED: NEEDS_A_PERSON,
    CycleStatus.PAUSED: PAUSED,
    CycleStatus.SKIPPED: SKIPPED,
}


def exit_code(status: CycleStatus) -> int:
    """What `cycle`, `rehearse` and `demo` exit with."""
    return _BY_STATUS[status]


@contextmanager
def exit_with() -> Iterator[None]:
    """Turn an expected failure into a sentence and an exit code; anything else keeps its traceback."""
    try:
        yield
    except (ConfigError, UsageError) as error:
        _say(error)
        sys.exit(USAGE)
    except OpsladderError as error:
        _say(error)
        sys.exit(FAILED)
    except BrokenPipeError:
        # The reader of our output (head, less) has gone; that is its right.
        sys.exit(SETTLED)
    except OSError as error:
        print(f"opsladder: {error.filename or 'The system'}: {error.strerror or error}.", file=sys.stderr)
        sys.exit(FAILED)


def _say(error: OpsladderError) -> None:
    print(f"opsladder: {error}", file=sys.stderr)
