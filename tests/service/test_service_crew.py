"""The crew asks about each cycle when there is room for it, and leaves out what nobody wants any more."""

import asyncio

from supervisor.climb.ladder import CycleRequest, Ladder
from supervisor.errors import OpsladderError
from supervisor.model.cycle import Chain, Trigger
from supervisor.service.crew import Crew


def asked_for(*schedules: str) -> list[CycleRequest]:
    return [CycleRequest(schedule=name, trigger=Trigger.SCHEDULE, dry_run=False, max_tier=3) for name in schedules]


class Told:
    """Remembers which schedules the crew got ready for, one after the other. None of them can begin."""

    def __init__(self, unwanted: str) -> None:
        self.tried: list[str] = []
        self._unwanted = unwanted

    def wanted(self, request: CycleRequest) -> bool:
        return request.schedule != self._unwanted

    def began(self, request: CycleRequest) -> None:
        raise AssertionError(f"{request.schedule} began")

    async def done(self, request: CycleRequest, chain: Chain | None) -> None:
        raise AssertionError(f"{request.schedule} ran: {chain}")

    def put_off(self, request: CycleRequest) -> None:
        raise AssertionError(f"{request.schedule} was put off")

    async def refuse(self, request: CycleRequest, why: str) -> None:
        assert why == "There is no CLI."
        self.tried.append(request.schedule)


async def no_cli() -> Ladder:
    raise OpsladderError("There is no CLI.")


async def serve(requests: list[CycleRequest], told: Told) -> Crew:
    async with asyncio.TaskGroup() as group:
        crew = Crew(group, no_cli, told, limit=1)
        for request in requests:
            crew.start(request)
    return crew


def test_what_is_no_longer_wanted_when_there_is_room_for_it_is_left_out() -> None:
    told = Told("dropped")

    crew = asyncio.run(serve(asked_for("first", "dropped", "last"), told))

    assert told.tried == ["first", "last"]
    assert crew.schedules == frozenset()
    assert crew.idle.is_set()


def test_what_waits_for_room_starts_when_a_reload_makes_some() -> None:
    told = Told("nobody")
    busy = asyncio.Event()

    async def at_first_busy() -> Ladder:
        if not told.tried:
            told.tried.append("busy")
            await busy.wait()
        raise OpsladderError("There is no CLI.")

    async def serve_with_more_room() -> None:
        async with asyncio.TaskGroup() as group:
            crew = Crew(group, at_first_busy, told, limit=1)
            for request in asked_for("first", "second"):
                crew.start(request)
            crew.make_room(2)
            assert crew.under_way == {"first", "second"}
            busy.set()

    asyncio.run(serve_with_more_room())

    assert sorted(told.tried) == ["busy", "first", "second"]
