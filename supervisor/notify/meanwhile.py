"""Tell people while a cycle runs that no daemon runs: of a question, say, that waits for an answer. Does I/O.

Called from `opsladder cycle`. Only tries: what does not go out is tried again a little later, and at the cycle's end.
"""

import asyncio
import contextlib
import datetime as dt
import logging
from collections.abc import AsyncIterator

from supervisor.errors import StoreError
from supervisor.notify.deliver import AFTER_CYCLE_SECONDS, deliver_due
from supervisor.settings import Settings
from supervisor.store import Store

logger = logging.getLogger(__name__)

_PAUSE_SECONDS = 5.0


@contextlib.asynccontextmanager
async def telling(settings: Settings, store: Store) -> AsyncIterator[None]:
    """Deliver what is due every few seconds until the block is over. An attempt under way then is not cut off."""
    task = asyncio.create_task(_deliver_again_and_again(settings, store), name="messages")
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _deliver_again_and_again(settings: Settings, store: Store) -> None:
    while True:
        await asyncio.sleep(_PAUSE_SECONDS)
        now = dt.datetime.now(dt.UTC)
        try:
            await asyncio.to_thread(deliver_due, store, settings, now=now, seconds=AFTER_CYCLE_SECONDS)
        except StoreError as error:
            logger.warning("Messages wait", extra={"why": error.message})
