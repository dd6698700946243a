"""A store that is unavailable for longer than its clock costs only the active runs."""

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.manager import Clocks
from sessionmgr.model import FailureKind, RunResult, RunStatus
from sessionmgr.store import MemoryStore, StoreClosed
from sessionmgr.store.rows import Lease, LeaseOwner
from sessionmgr.testing.faulty_store import FaultyStore
from sessionmgr.testing.scripted_provider import Hang, Say, Wait
from tests.manager.harness import open_harness, run_scripted, types
from tests.manager.node_crash import crash_at_wait


def kind(result: RunResult) -> FailureKind | None:
    return result.failure.kind if result.failure else None


async def test_what_a_long_outage_has_cut_is_recorded_when_it_is_over(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with open_harness(store=store) as house:
        run = await house.start(Wait(seconds=3), Say(text="lost"), Hang())
        await trio.sleep(1)
        store.closed = True
        result = await run.result()
        assert kind(result) is FailureKind.STORE_FAILED
        assert trio.current_time() < 3 + 61
        await trio.sleep(600)
        assert (await store.run(run.id)).status == RunStatus.RUNNING
        store.closed = False
        await trio.sleep(11)
        assert (await store.run(run.id)).status == RunStatus.FAILED
        assert kind(await house.manager.result(run.id)) is FailureKind.STORE_FAILED
        assert (await types(run))[-1] == "run_failed"


async def test_who_reads_a_run_that_an_outage_has_cut_reads_what_is_stored_and_no_more(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with open_harness(store=store) as house:
        run = await house.start(Say(text="kept"), Wait(seconds=3), Say(text="lost"), Hang())
        await trio.sleep(1)
        store.closed = True
        with trio.fail_after(3 + 61):
            names = await types(run)
        assert names[-1] == "message_received"
        with trio.fail_after(1):
            assert await types(run) == names
        store.closed = False
        await trio.sleep(11)
        assert (await types(run))[-1] == "run_failed"


async def test_what_a_long_outage_has_cut_is_recorded_by_a_manager_that_goes_down(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with open_harness(store=store) as house:
        run = await house.start(Wait(seconds=3), Say(text="lost"), Hang())
        await trio.sleep(1)
        store.closed = True
        await run.result()
        await trio.sleep(600)
        store.closed = False
        began = trio.current_time()
    assert trio.current_time() - began < 1
    assert (await store.run(run.id)).status == RunStatus.FAILED


async def test_ends_that_a_restart_of_the_managers_tree_could_not_store_are_stored_after_the_outage(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with open_harness(store=store, clocks=Clocks(close=5)) as house:
        run = await house.start(Say(text="hi"), Hang())
        await trio.sleep(1)
        store.thawed = trio.Event()  # it does not answer
        crash_at_wait(lambda life: life.name == "manager/launcher")
        assert (await run.result()).status is RunStatus.CANCELLED
        assert (await MemoryStore.run(store, run.id)).status == RunStatus.RUNNING
        store.thawed.set()
        await trio.sleep(11)
        assert (await store.run(run.id)).status == RunStatus.CANCELLED
        assert (await house.result(Say(text="next"))).text == "next"


async def test_a_manager_does_not_wait_for_a_store_that_stays_away(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with open_harness(store=store, clocks=Clocks(close=7), lawful=False) as house:
        run = await house.start(Wait(seconds=3), Say(text="lost"), Hang())
        await trio.sleep(1)
        store.closed = True
        await run.result()
        store.thawed = trio.Event()  # now it does not answer any call
        store.closed = False
        began = trio.current_time()
    assert trio.current_time() - began < 7 + 1


async def test_a_session_that_a_long_outage_has_cut_goes_on_when_it_is_over(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with open_harness(store=store) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Wait(seconds=3), Say(text="lost"), Hang()))
        await trio.sleep(1)
        store.closed = True
        await run.result()
        await trio.sleep(100)
        with pytest.raises(StoreClosed):
            await session.submit("too early")
        store.closed = False
        assert (await (await session.submit("next")).result()).text == "next"
        assert kind(await house.manager.result(run.id)) is FailureKind.STORE_FAILED


async def test_a_lease_that_was_given_back_is_not_said_to_be_lost(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Slow(MemoryStore):
        async def renew(self, name: str, fence: int, *, now: int, ttl: int) -> Lease:
            await trio.sleep(10)
            return await super().renew(name, fence, now=now, ttl=ttl)

    async with open_harness(store=Slow()) as house:
        for _ in range(3):
            await house.start(Wait(seconds=30))
        await trio.sleep(100)
        assert "lease" not in caplog.text
        run = await house.start(Hang())
        await trio.sleep(1)
        await house.store.acquire(
            run.session_id,
            LeaseOwner(boot_id="b", pid=1, start=1, name="another"),
            now=0,
            ttl=1,
            gone=lambda _: True,
        )
        await trio.sleep(60)
        assert f"A lease was lost to another manager. session={run.session_id}" in caplog.text
