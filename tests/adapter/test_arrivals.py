import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter.kit.arrivals import Arrivals


async def test_reads_are_taken_in_their_order_until_the_end() -> None:
    arrivals = Arrivals[int]()
    arrivals.put([1, 2], 10)
    arrivals.put([3], 5)
    arrivals.close()
    assert [list(read) async for read in arrivals] == [[1, 2], [3]]
    with pytest.raises(StopAsyncIteration):
        await anext(arrivals)


async def test_who_takes_waits_for_what_comes(autojump_clock: MockClock) -> None:
    arrivals = Arrivals[int]()

    async def bring() -> None:
        await trio.sleep(5)
        arrivals.put([1], 1)
        await trio.sleep(5)
        arrivals.close()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(bring)
        taken = [(list(read), trio.current_time()) async for read in arrivals]
    assert [read for read, _ in taken] == [[1]]


async def test_who_brings_waits_for_room_and_no_longer_than_until_the_end(
    autojump_clock: MockClock,
) -> None:
    arrivals = Arrivals[int](room=10)
    arrivals.put([1], 10)
    await arrivals.room()
    arrivals.put([2], 1)
    with trio.move_on_after(1) as scope:
        await arrivals.room()
    assert scope.cancelled_caught
    async with trio.open_nursery() as nursery:
        nursery.start_soon(arrivals.room)
        await trio.testing.wait_all_tasks_blocked()
        await anext(arrivals)
    arrivals.put([3], 100)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(arrivals.room)
        await trio.testing.wait_all_tasks_blocked()
        arrivals.close()
