"""Which status may follow which. Pure. The one table; asked by ``store`` for every change of a status.

Invariants:
- a session that is over is never active again: what goes on is another record;
- only a run that really ran completes, pauses, times out or is rejected;
- what waited to be gone on from expires or is stopped, and nothing else becomes of it;
- a cycle that has settled stays settled; only a paused one goes on.
"""

from collections.abc import Mapping

from supervisor.model.cycle import CycleStatus as C
from supervisor.model.session import SessionStatus as S

SESSION_MOVES: Mapping[S, frozenset[S]] = {
    S.CREATED: frozenset({S.ACTIVE, S.FAILED, S.INTERRUPTED, S.STOPPED}),
    S.ACTIVE: frozenset({S.PAUSED, S.COMPLETED, S.FAILED, S.TIMED_OUT, S.INTERRUPTED, S.STOPPED, S.REJECTED}),
    # Completed: another record has gone on from it.
    S.PAUSED: frozenset({S.COMPLETED, S.STOPPED, S.EXPIRED}),
    S.TIMED_OUT: frozenset({S.EXPIRED}),
    S.INTERRUPTED: frozenset({S.EXPIRED}),
    S.COMPLETED: frozenset(),
    S.FAILED: frozenset(),
    S.STOPPED: frozenset(),
    S.REJECTED: frozenset(),
    S.EXPIRED: frozenset(),
}

_ENDS = frozenset({C.HEALTHY, C.RESOLVED, C.UNRESOLVED, C.BLOCKED, C.FAILED, C.STOPPED})

CYCLE_MOVES: Mapping[C, frozenset[C]] = {
    C.RUNNING: _ENDS | {C.PAUSED},
    C.PAUSED: frozenset({C.RUNNING, C.STOPPED, C.FAILED}),
    C.SKIPPED: frozenset(),
    **{end: frozenset[C]() for end in _ENDS},
}

# A record begins in one of these.
SESSION_STARTS = frozenset({S.CREATED})
CYCLE_STARTS = frozenset({C.RUNNING, C.SKIPPED})


def before(to: S | C) -> frozenset[S] | frozenset[C]:
    """The statuses from which a record may come to this one."""
    if isinstance(to, S):
        return frozenset(status for status, follow in SESSION_MOVES.items() if to in follow)
    return frozenset(status for status, follow in CYCLE_MOVES.items() if to in follow)
