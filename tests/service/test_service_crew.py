"""The crew asks about each cycle when there is room for it, and leaves out what nobody wants any more."""

import asyncio

from supervisor.climb.ladder import CycleRequest, Ladder
from supervisor.errors import OpsladderError
from supervisor.model.cycle import Trigger
from supervisor.service.crew import Crew


def asked_for(*schedules: str) -> list[CycleRequest]:
    return [CycleRequest(schedule=name, trigger=Trigger.SCHEDULE, dry_run=False, max_tier=3) for name in schedules]


async def serve(requests: list[CycleRequest], unwanted: set[str]) -> tuple[list[str], Crew]:
    """Which of these schedules the crew got ready for, one after the other. None of them can begin."""
    tried: list[str] = []

    async def outfit() -> Ladder:
        raise OpsladderError("There is no CLI.")

    async def refuse(request: CycleRequest, _why: str) -> None:
        tried.append(request.schedule)

    async def done(_request: CycleRequest, _chain: object) -> None:
        raise AssertionError("nothing ran")

    async with asyncio.TaskGroup() as group:
        crew = Crew(
            group,
            outfit,
            limit=1,
            wanted=lambda request: request.schedule not in unwanted,
            began=lambda _: None,
            done=done,
            put_off=lambda _: None,
            refuse=refuse,
        )
        for request in requests:
            crew.start(request)
    return tried, crew


def test_what_is_no_longer_wanted_when_there_is_room_for_it_is_left_out() -> None:
    tried, crew = asyncio.run(serve(asked_for("first", "dropped", "last"), {"dropped"}))

    assert tried == ["first", "last"]
    assert crew.schedules == frozenset()
    assert crew.idle.is_set()
