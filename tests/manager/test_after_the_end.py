"""Waiters of a closed manager are released, whether or not the store hangs."""

from typing import Literal

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.manager import Cursor, RunHandle
from sessionmgr.model import AnyEvent, RunStatus
from sessionmgr.store import MemoryStore, SnapshotRow, StoreTimeout
from sessionmgr.store.rows import EventPage
from sessionmgr.testing.faulty_store import FaultyStore
from sessionmgr.testing.scripted_provider import Finish, Hang, Say
from tests.manager.harness import collect, open_harness, types


class SilentStore(FaultyStore):
    """A store whose reads hang, too, while it is frozen."""

    async def events(self, *args: object, **kwargs: object) -> EventPage:
        await self._check_leases_reachable()
        return await MemoryStore.events(self, *args, **kwargs)  # type: ignore[arg-type]

    async def resolve(
        self, prefix: str, kind: Literal["session", "run", "snapshot"] | None = None
    ) -> str:
        await self._check_leases_reachable()
        return await super().resolve(prefix, kind)

    async def snapshot(self, snapshot_id: str) -> SnapshotRow:
        await self._check_leases_reachable()
        return await super().snapshot(snapshot_id)


async def left_on_ice(store: FaultyStore) -> tuple[RunHandle, Cursor]:
    """Leave a manager whose store hangs; return one of its runs, and a cursor of its session."""
    async with open_harness(store=store, lawful=False) as house:
        run = await house.start(Say(text="so far"), Hang())
        await trio.sleep(1)
        store.thawed = trio.Event()
        return run, house.manager.subscribe(run.session_id)


async def test_a_run_whose_manager_has_gone_is_read_as_far_as_it_is_stored(
    autojump_clock: MockClock,
) -> None:
    run, cursor = await left_on_ice(FaultyStore())
    assert (await run.result()).status is RunStatus.CANCELLED
    with trio.fail_after(1):
        assert (await types(run))[-1] == "message_received"
        everything: list[AnyEvent] = []
        await collect(cursor, everything)
        assert [event.type for event in everything] == ["session_created", *await types(run)]


async def test_who_reads_while_the_manager_goes_comes_to_an_end(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    seen: list[AnyEvent] = []
    others: list[AnyEvent] = []
    async with trio.open_nursery() as nursery:
        async with open_harness(store=store, lawful=False) as house:
            manager = house.manager
            run = await house.start(Say(text="so far"), Hang())
            unused = await manager.open_session("actor")
            nursery.start_soon(collect, aiter(run), seen)
            nursery.start_soon(collect, manager.subscribe(run.session_id), others)
            nursery.start_soon(collect, manager.subscribe(unused.id), others)
            await trio.sleep(1)
            store.thawed = trio.Event()
        nursery.cancel_scope.deadline = trio.current_time() + 1
    assert not nursery.cancel_scope.cancelled_caught
    assert seen[-1].type == "message_received"


async def test_a_store_that_does_not_even_answer_readers_makes_them_an_error(
    autojump_clock: MockClock,
) -> None:
    run, cursor = await left_on_ice(SilentStore())
    with trio.fail_after(11):
        with pytest.raises(StoreTimeout, match="does not answer"):
            await types(run)
        with pytest.raises(StoreTimeout):
            await anext(cursor)


async def test_a_reader_whom_the_store_keeps_waiting_is_let_go_with_the_manager(
    autojump_clock: MockClock,
) -> None:
    store = SilentStore()
    refused: list[StoreTimeout] = []

    async def read(run: RunHandle) -> None:
        try:
            await types(run)
        except StoreTimeout as error:
            refused.append(error)

    async with trio.open_nursery() as nursery:
        async with open_harness(store=store, lawful=False) as house:
            run = await house.start(Finish())
            await run.result()
            await trio.sleep(10)  # its session sleeps: all of its state is in the store
            store.thawed = trio.Event()
            nursery.start_soon(read, run)
            await trio.sleep(1)
        nursery.cancel_scope.deadline = trio.current_time() + 6
    assert len(refused) == 1


async def test_a_pause_that_could_not_be_stored_is_an_error(autojump_clock: MockClock) -> None:
    store = SilentStore()
    refused: list[StoreTimeout] = []

    async def pause(run: RunHandle) -> None:
        try:
            await run.pause()
        except StoreTimeout as error:
            refused.append(error)

    async with trio.open_nursery() as nursery:
        async with open_harness(store=store, lawful=False) as house:
            run = await house.start(Hang())
            await trio.sleep(1)
            store.thawed = trio.Event()
            nursery.start_soon(pause, run)
            await trio.sleep(1)
        nursery.cancel_scope.deadline = trio.current_time() + 6
    assert len(refused) == 1


async def test_to_cancel_what_only_the_store_knows_takes_no_longer_than_its_clock(
    autojump_clock: MockClock,
) -> None:
    store = SilentStore()
    async with open_harness(store=store) as house:
        run = await house.start(Finish())
        await run.result()
        await trio.sleep(10)
        store.thawed = trio.Event()
        with trio.fail_after(61), pytest.raises(StoreTimeout):
            await house.manager.cancel(run.id)
        store.thawed.set()
        assert not await house.manager.cancel(run.id)
