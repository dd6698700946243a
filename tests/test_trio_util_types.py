"""Typed wrappers of trio-util's waits."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sessionmgr.trio_util_types import AsyncValue, RepeatedEvent, move_on_when


async def test_a_block_is_cancelled_when_what_it_waits_for_has_come(
    autojump_clock: MockClock,
) -> None:
    over = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 3)
        nursery.cancel_scope.deadline = trio.current_time() + 3
        async with move_on_when(over.wait) as scope:
            nursery.start_soon(_set_after, 1, over)
            await trio.sleep_forever()
        assert scope.cancelled_caught
        assert trio.current_time() < 3


async def _set_after(seconds: float, event: trio.Event) -> None:
    await trio.sleep(seconds)
    event.set()


async def test_a_block_that_ends_by_itself_does_not_wait(autojump_clock: MockClock) -> None:
    with trio.fail_after(1):
        async with move_on_when(trio.sleep_forever) as scope:
            await trio.sleep(0.5)
    assert not scope.cancelled_caught


async def test_what_a_block_raises_leaves_it_in_a_group() -> None:
    with pytest.RaisesGroup(KeyError):
        async with move_on_when(trio.sleep_forever):
            raise KeyError("x")


async def test_a_value_is_waited_for() -> None:
    value, seen = AsyncValue(1), list[int]()

    async def wait() -> None:
        seen.append(await value.wait(lambda found: found > 2))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        for number in (2, 3):
            await wait_all_tasks_blocked()
            assert seen == []
            value.value = number
    assert (seen, value.value) == ([3], 3)


async def test_an_event_that_is_repeated_wakes_those_who_wait_for_the_next_time() -> None:
    event, woken = RepeatedEvent(), list[str]()

    async def wait(name: str) -> None:
        await event.wait()
        woken.append(name)

    event.set()  # after the time-out, no task waits
    async with trio.open_nursery() as nursery:
        for times in (1, 2):
            nursery.start_soon(wait, "a")
            nursery.start_soon(wait, "b")
            await wait_all_tasks_blocked()
            assert len(woken) == 2 * (times - 1)
            event.set()
            await wait_all_tasks_blocked()
    assert sorted(woken) == ["a", "a", "b", "b"]
