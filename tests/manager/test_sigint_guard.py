"""Ctrl-C while a manager is open."""

import signal

import pytest
import trio

from sessionmgr import open_manager
from sessionmgr.manager import Manager


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def manager() -> Manager:
    return open_manager(adapters={})


def test_an_interrupt_is_for_the_main_task_whichever_task_runs() -> None:
    came_through: list[str] = []

    async def at_work() -> None:
        interrupt()
        came_through.append("at work")

    async def main() -> None:
        async with manager(), trio.open_nursery() as nursery:
            nursery.start_soon(at_work)
            try:
                await trio.sleep_forever()
            except KeyboardInterrupt:
                came_through.append("main")
                raise

    with pytest.raises(BaseExceptionGroup) as raised:
        trio.run(main)
    assert [type(each) for each in raised.value.exceptions] == [KeyboardInterrupt]
    assert came_through == ["at work", "main"]


def test_the_second_strikes_what_never_waits() -> None:
    async def main() -> list[str]:
        struck: list[str] = []
        async with manager():
            interrupt()
            struck.append("not at once")
            try:
                interrupt()
            except KeyboardInterrupt:
                struck.append("at once")
            try:
                await trio.sleep_forever()
            except KeyboardInterrupt:
                struck.append("at last")
            await trio.lowlevel.checkpoint()
            interrupt()
            struck.append("not at once")
            try:
                await trio.sleep_forever()
            except KeyboardInterrupt:
                struck.append("at last")
        return struck

    assert trio.run(main) == ["not at once", "at once", "at last", "not at once", "at last"]


def test_when_the_last_manager_has_gone_all_is_as_before() -> None:
    async def main() -> None:
        before = signal.getsignal(signal.SIGINT)
        async with manager():
            during = signal.getsignal(signal.SIGINT)
            async with manager():
                assert signal.getsignal(signal.SIGINT) is during is not before
            assert signal.getsignal(signal.SIGINT) is during
        assert signal.getsignal(signal.SIGINT) is before

    trio.run(main)


def test_another_handler_is_left_alone() -> None:
    async def main() -> None:
        async with manager():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        trio.run(main)
    finally:
        signal.signal(signal.SIGINT, before)


async def test_another_thread_has_no_handlers() -> None:
    before = signal.getsignal(signal.SIGINT)

    async def main() -> None:
        async with manager():
            assert signal.getsignal(signal.SIGINT) is before

    await trio.to_thread.run_sync(trio.run, main)
