"""Store calls that have to succeed: repeated while the store is away, recognised when only the answer was lost.

Does I/O through the calls it is given. Used by every module of climb that writes.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from supervisor.errors import Conflict, StoreUnavailable

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5

_T = TypeVar("_T")
_P = ParamSpec("_P")


async def insist(seconds: float, call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Do a store call off the event loop, again and again until it succeeds or the patience ends."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return await asyncio.to_thread(call, *args, **kwargs)
        except StoreUnavailable as error:
            if time.monotonic() >= deadline:
                raise
            logger.warning("The cycle waits for the store", extra={"why": error.message})
            await asyncio.sleep(min(_RETRY_SECONDS, max(0.0, deadline - time.monotonic())))


def or_find_it_done(write: Callable[[], _T], *, find: Callable[[], _T], is_ours: Callable[[_T], bool]) -> _T:
    """A change of status that may be made twice.

    A server that dies in the middle of a commit does not say whether it still made it. Made again, such a change is
    refused; then the record itself tells whether it was ours.
    """
    try:
        return write()
    except Conflict:
        found = find()
        if not is_ours(found):
            raise
        return found
