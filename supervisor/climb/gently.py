"""Writing to the store in the background without getting in the way. Sleeps. Used by what sweeps.

SQLite lets one process write at a time, and who finds it busy looks again only now and then. One transaction right
after the other could keep others out for long, however short each is; so each is followed by a longer pause.
"""

import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_PAUSE_PER_WORK = 4.0
_LONGEST_PAUSE_SECONDS = 0.2

_T = TypeVar("_T")
_P = ParamSpec("_P")


def gently(call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Do one short store call, then let others in."""
    began = time.monotonic()
    answer = call(*args, **kwargs)
    time.sleep(min((time.monotonic() - began) * _PAUSE_PER_WORK, _LONGEST_PAUSE_SECONDS))
    return answer
