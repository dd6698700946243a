"""The first signal asks to stop, and the same one again is no second one."""

import signal

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sessionmgr.cli.stopping import ONCE, Stopping


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_that_comes_twice_at_once_is_one(
    number: signal.Signals, mock_clock: MockClock
) -> None:
    before = signal.getsignal(number)
    asked: list[str] = []
    stopping = Stopping(asked.append, lambda: "left")
    async with trio.open_nursery() as nursery:
        await nursery.start(stopping.watch)
        for _ in range(3):
            signal.raise_signal(number)
            await wait_all_tasks_blocked()
            mock_clock.jump(ONCE / 3)
        assert asked == []
        mock_clock.jump(ONCE)
        await wait_all_tasks_blocked()
        assert asked == [number.name] == [stopping.asked_by]
        nursery.cancel_scope.cancel()
    # None is kept back, to strike when nobody watches any more.
    assert signal.getsignal(number) is before


async def test_a_signal_that_strikes_while_the_machine_stands_still_is_the_same_one(
    mock_clock: MockClock,
) -> None:
    asked: list[str] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(Stopping(asked.append, lambda: "left").watch)
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        mock_clock.jump(60)
        await wait_all_tasks_blocked()
        mock_clock.jump(60)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert asked == ["SIGTERM"]
