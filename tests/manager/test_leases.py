"""Several managers on one store: which of them may end another one's runs."""

from collections.abc import Callable, Collection, Mapping
from functools import partial

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sessionmgr.batch import BatchBusy
from sessionmgr.batch.recovery import recover_attempt
from sessionmgr.manager import SessionBusy, open_manager
from sessionmgr.manager.owner import ManagerOwner, process_scope
from sessionmgr.model import RunStatus
from sessionmgr.store import LeaseOwner, MemoryStore, StoreFailed
from sessionmgr.store.rows import CostTotals, Lease
from sessionmgr.testing.scripted_provider import Say, Wait, scripted
from tests.manager.harness import ManagerHarness, open_harness, run_scripted, virtual_now
from tests.manager.test_supervision import begun

HERE = process_scope()
HIDDEN = LeaseOwner(HERE.boot_id, 7, 7, "hidden", "pid:[1]")
"""The owner for a manager in another container."""


async def leave_open(store: MemoryStore, owner: LeaseOwner) -> None:
    """Begin a run as this owner."""
    now = int(virtual_now() * 1000)
    lease = await store.acquire("ses_theirs", owner, now=now, ttl=90_000)
    await store.append(begun("ses_theirs", "run_theirs", lease.fence))


async def status(store: MemoryStore) -> str:
    return (await store.run("run_theirs")).status


async def test_a_step_of_the_wall_clock_ends_no_run_of_a_manager_that_lives(
    autojump_clock: MockClock,
) -> None:
    actor, store, ahead = scripted("actor"), MemoryStore(), 0.0

    def now() -> float:
        return virtual_now() + ahead

    opened = partial(open_manager, store=store, adapters={"actor": actor}, now=now)
    async with opened() as first:
        run = await (await first.open_session("actor")).submit(
            run_scripted(Wait(seconds=50), Say(text="x"))
        )
        await trio.sleep(1)
        ahead = 100.0
        async with opened() as second:
            await trio.sleep(35)  # also until the second has swept
            with pytest.raises(SessionBusy):
                await (await second.session(run.session_id)).submit("x")
        assert (await run.result()).status is RunStatus.COMPLETED


async def test_the_lease_of_a_manager_that_cannot_be_seen_counts_until_it_expires(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    await leave_open(store, HIDDEN)
    async with open_harness(store=store) as house:
        assert await status(store) == RunStatus.RUNNING
        await trio.sleep(85)
        assert await status(store) == RunStatus.RUNNING
        await trio.sleep(40)
        assert await status(store) == RunStatus.FAILED
        assert house.manager.status().sessions == 0


async def test_the_lease_of_a_manager_that_has_ended_counts_for_nothing(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    await leave_open(store, ManagerOwner("bat_that_is_closed").owner)
    async with open_harness(store=store):
        assert await status(store) == RunStatus.FAILED


async def busy(house: ManagerHarness) -> SessionBusy:
    session = await house.manager.session("ses_theirs")
    with pytest.raises(SessionBusy) as caught:
        await session.submit("x")
    return caught.value


async def test_a_busy_session_names_the_process_and_how_long_its_lease_lasts(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    async with open_harness(store=store) as house:
        await leave_open(store, HIDDEN)
        await trio.sleep(10)
        error = await busy(house)
        assert "process 7, which cannot be seen from here" in str(error)
        assert "80 s more" in str(error)
        assert error.expires == int(1000 * (virtual_now() + 80))
        assert error.holder == HIDDEN
        assert error.__cause__ is None
        assert error.__suppress_context__
        await trio.sleep(81)
        session = await house.manager.session("ses_theirs")
        assert (
            await (await session.submit(run_scripted(Say(text="mine")))).result()
        ).text == "mine"


async def test_owners_of_other_namespaces_are_distinguished(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    mine = ManagerOwner("bat_that_is_closed").owner
    await leave_open(store, replace(mine, namespace="pid:[1]"))
    async with open_harness(store=store):
        assert await status(store) == RunStatus.RUNNING
        await trio.sleep(121)


async def test_a_batch_names_the_process_that_still_makes_an_attempt(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    await leave_open(store, HIDDEN)
    fence = (await store.leases())[0].fence

    async def renew() -> None:
        while True:
            await trio.sleep(30)
            now = int(virtual_now() * 1000)
            await store.renew("ses_theirs", fence, now=now, ttl=90_000)

    async with open_harness(store=store, lawful=False) as house, trio.open_nursery() as nursery:
        nursery.start_soon(renew)
        with pytest.raises(BatchBusy, match="process 7, which cannot be seen from here"):
            await recover_attempt(house.manager, "a", 1, session="ses_theirs", others=())
        assert trio.current_time() > 100
        nursery.cancel_scope.cancel()
    await trio.sleep(91)
    async with open_harness(store=store):
        assert await status(store) == RunStatus.FAILED


class FailingStore(MemoryStore):
    """A store that fails once to compute the costs of a session."""

    fails = True

    async def costs(self, ids: Collection[str]) -> Mapping[str, CostTotals]:
        if self.fails:
            self.fails = False
            raise StoreFailed("the costs cannot be read")
        return await super().costs(ids)


class SlowLeaseStore(MemoryStore):
    """A store that takes half a second to answer a request for a lease."""

    is_slow = False

    async def acquire(
        self,
        name: str,
        owner: LeaseOwner,
        *,
        now: int,
        ttl: int,
        gone: Callable[[LeaseOwner], bool] = lambda _: False,
        alive: Callable[[LeaseOwner], bool] = lambda _: False,
    ) -> Lease:
        lease = await super().acquire(name, owner, now=now, ttl=ttl, gone=gone, alive=alive)
        if self.is_slow:  # as a thread does: the lease is acquired although the call is cancelled
            await trio.sleep(0.5)
        return lease


async def test_a_session_that_did_not_come_up_is_free_for_other_managers(
    autojump_clock: MockClock,
) -> None:
    store = FailingStore()
    store.fails = False
    async with (
        open_harness(store=store) as first,
        open_harness(store=store, lawful=False) as second,
    ):
        run = await first.start(Say(text="a"))
        await run.result()
        await trio.sleep(10)  # it sleeps
        store.fails = True
        session = await first.manager.session(run.session_id)
        with pytest.raises(StoreFailed, match="the costs cannot be read"):
            await session.submit("x")
        await trio.sleep(1)
        theirs = await second.manager.session(run.session_id)
        result = await (await theirs.submit(run_scripted(Say(text="theirs")))).result()
        assert result.text == "theirs"


@pytest.mark.parametrize("is_stored", [False, True])
async def test_who_gives_up_waiting_for_a_lease_does_not_keep_it(
    autojump_clock: MockClock, is_stored: bool
) -> None:
    store = SlowLeaseStore()
    async with open_harness(store=store) as house:
        session = await house.manager.open_session("actor")
        if is_stored:
            await (await session.submit(run_scripted(Say(text="a")))).result()
            await trio.sleep(10)  # it sleeps
        assert await store.leases() == []
        store.is_slow = True
        with trio.move_on_after(0.2) as scope:
            await session.submit("x")
        assert scope.cancelled_caught
        await trio.sleep(2)
        assert await store.leases() == []
        assert (await (await session.submit(run_scripted(Say(text="b")))).result()).text == "b"
