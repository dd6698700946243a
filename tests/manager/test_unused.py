"""Sessions that are opened but never used."""

import gc

from trio.testing import MockClock

from tests.manager.harness import open_harness


async def test_sessions_that_are_never_used_leave_nothing_behind(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        before = len(house.manager._state.opened)  # pyright: ignore[reportPrivateUsage]
        for number in range(100):
            session = await house.manager.open_session("actor")
            if number % 2:
                await session.close()
            del session
        gc.collect()
        assert len(house.manager._state.opened) == before  # pyright: ignore[reportPrivateUsage]
