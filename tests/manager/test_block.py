"""The end of the manager's block: the exception itself, and a group only for several."""

import traceback
from collections.abc import Callable, Collection

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.manager import ManagerDown, RunHandle, open_manager
from sessionmgr.model import TERMINAL
from sessionmgr.otp import OtpError
from sessionmgr.store import MemoryStore, Page, StoreClosed, StoredRun, StoreError
from sessionmgr.testing.scripted_provider import Hang, Say, Wait, scripted
from tests.manager.harness import open_harness, run_scripted, virtual_now


class MishapError(Exception):
    pass


@pytest.mark.parametrize("block", ["run", "none"])
async def test_what_the_body_raises_while_it_is_cancelled_leaves_the_block_of_a_run_bare(
    autojump_clock: MockClock, block: str
) -> None:
    async def clean_up_badly() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise MishapError

    async with open_harness() as house:
        session = await house.manager.open_session("actor")

        async def within() -> None:
            async with session.start(run_scripted(Hang())):
                await clean_up_badly()

        with pytest.raises(MishapError), trio.move_on_after(5):
            await (within() if block == "run" else clean_up_badly())


class BrokenClock:
    """A wall clock that can be made to fail: no recorder can continue without it."""

    def __init__(self) -> None:
        self.broken = False

    def __call__(self) -> float:
        if self.broken:
            raise OSError("the clock has stopped")
        return virtual_now()


class RequestlessStore(MemoryStore):
    """A store that can be made to raise where the manager waits for requests."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = trio.Event()

    async def wait_request(self, *, after: int = 0) -> int:
        await self.broken.wait()
        raise OSError("no requests any more")


async def given_up(runs: list[RunHandle], last_words: Callable[[], None]) -> None:
    """Crash a manager repeatedly under its body, which then does `last_words`."""
    clock, store = BrokenClock(), RequestlessStore()
    adapters = {"actor": scripted("actor")}
    async with open_manager(store=store, adapters=adapters, now=clock) as manager:
        session = await manager.open_session("actor")
        runs.append(await session.submit(run_scripted(Wait(seconds=1), Say(text="x"), Hang())))
        clock.broken = True
        await trio.sleep(2)
        store.broken.set()
        try:
            await trio.sleep_forever()
        finally:
            last_words()


def say_nothing() -> None:
    pass


def raise_mishap() -> None:
    raise MishapError


async def test_a_manager_that_gives_up_cancels_the_body_and_says_why(
    autojump_clock: MockClock,
) -> None:
    runs: list[RunHandle] = []
    with trio.fail_after(300), pytest.raises(ManagerDown) as raised:
        await given_up(runs, say_nothing)
    assert isinstance(raised.value.__cause__, OtpError)
    assert "no requests any more" in "".join(traceback.format_exception(raised.value))


async def test_waiters_for_a_run_of_a_crashed_manager_are_released(
    autojump_clock: MockClock,
) -> None:
    runs: list[RunHandle] = []
    with trio.fail_after(300), pytest.raises(ManagerDown):
        await given_up(runs, say_nothing)
    with trio.fail_after(10):
        result = await runs[0].result()
    assert result.status in TERMINAL


async def test_an_error_of_the_body_and_a_manager_that_gives_up_make_a_group(
    autojump_clock: MockClock,
) -> None:
    runs: list[RunHandle] = []
    with trio.fail_after(300), pytest.raises(BaseExceptionGroup) as raised:
        await given_up(runs, raise_mishap)
    kinds = {type(each) for each in raised.value.exceptions}
    assert kinds == {MishapError, ManagerDown}


class UnreadableFileStore(MemoryStore):
    """A store whose reads fail."""

    async def runs(
        self,
        *,
        session_id: str | None = None,
        statuses: Collection[str] | None = None,
        provider: str | None = None,
        limit: int = 100,
        cursor: int | None = None,
    ) -> Page[StoredRun]:
        await trio.lowlevel.checkpoint()
        raise StoreClosed("the file")


async def test_a_store_that_cannot_be_read_says_so_when_the_block_is_entered(
    autojump_clock: MockClock,
) -> None:
    with pytest.raises(StoreError, match="the file is closed"):
        async with open_harness(store=UnreadableFileStore()):
            pytest.fail("it was entered")


async def test_a_cancellation_from_outside_leaves_as_itself(autojump_clock: MockClock) -> None:
    caught: list[BaseException] = []

    async def body() -> None:
        try:
            async with open_harness() as house:
                await house.start(Hang())
                await trio.sleep_forever()
        except BaseException as error:
            caught.append(error)
            raise

    async with trio.open_nursery() as nursery:
        nursery.start_soon(body)
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert [type(error) for error in caught] == [trio.Cancelled]


async def test_an_error_in_a_block_that_is_being_cancelled_is_that_error(
    autojump_clock: MockClock,
) -> None:
    async def body() -> None:
        async with open_harness() as house:
            await house.start(Hang())
            try:
                await trio.sleep_forever()
            finally:
                raise_mishap()

    with pytest.raises(MishapError), trio.move_on_after(1):
        await body()


async def test_a_group_of_the_bodys_own_is_left_as_it_is(autojump_clock: MockClock) -> None:
    async def body() -> None:
        async with open_harness(), trio.open_nursery() as nursery:

            async def fail() -> None:
                await trio.sleep(1)
                raise MishapError

            nursery.start_soon(fail)
            nursery.start_soon(fail)

    with pytest.raises(ExceptionGroup) as raised:
        await body()
    assert {type(each) for each in raised.value.exceptions} == {MishapError}


async def test_an_error_of_ours_in_the_body_is_not_taken_for_the_managers_end(
    autojump_clock: MockClock,
) -> None:
    mishap = OtpError("of the body")

    async def body() -> None:
        async with open_harness() as house:
            await house.start(Hang())
            raise mishap

    with pytest.raises(OtpError) as raised:
        await body()
    assert raised.value is mishap


async def test_break_leaves_the_blocks_without_a_word(autojump_clock: MockClock) -> None:
    runs: list[RunHandle] = []
    for _ in range(2):
        async with open_harness() as house:
            session = await house.manager.open_session("actor")
            async with session.start(run_scripted(Hang())) as run:
                runs.append(run)
                break
    assert [run.status for run in runs] == ["cancelled"]
