"""The wish to end a run, and the wish to end its cycle."""

import asyncio

from supervisor.climb.stop import StopRequest
from supervisor.model.outcome import Ended


def test_what_ends_a_run_leaves_its_cycle_be():
    async def ask() -> tuple[StopRequest, StopRequest]:
        cycle = StopRequest()
        run = cycle.for_run()
        run.ask(Ended.USAGE_LIMIT)
        return cycle, run

    cycle, run = asyncio.run(ask())
    assert run.event.is_set()
    assert not cycle.event.is_set()
    assert not cycle.for_run().event.is_set()


def test_what_ends_a_cycle_ends_the_run_of_now_and_any_later_one():
    async def ask() -> tuple[StopRequest, StopRequest]:
        cycle = StopRequest()
        run = cycle.for_run()
        cycle.ask(Ended.STORE_UNAVAILABLE)
        return cycle, run

    cycle, run = asyncio.run(ask())
    assert (run.event.is_set(), run.ended) == (True, Ended.STORE_UNAVAILABLE)
    later = cycle.for_run()
    assert (later.event.is_set(), later.ended) == (True, Ended.STORE_UNAVAILABLE)


def test_the_first_wish_counts():
    async def ask() -> StopRequest:
        cycle = StopRequest()
        run = cycle.for_run()
        run.ask(Ended.BUDGET)
        cycle.ask()
        return run

    assert asyncio.run(ask()).ended is Ended.BUDGET
