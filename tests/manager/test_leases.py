"""Several managers on one store: which of them may end another one's runs."""

from functools import partial

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sessionmgr.batch.recovery import recover
from sessionmgr.errors import BatchBusy, SessionBusy
from sessionmgr.manager import open_manager
from sessionmgr.manager.identity import Presence, view
from sessionmgr.model import RunStatus
from sessionmgr.store import MemoryStore, Owner
from sessionmgr.testing.scripted import Say, Wait, scripted
from tests.manager.house import House, open_house, play, virtual_now
from tests.manager.test_supervision import begun

HERE = view()
HIDDEN = Owner(HERE.boot_id, 7, 7, "hidden", "pid:[1]")
"""The owner for a manager in another container."""


async def leave_open(store: MemoryStore, owner: Owner) -> None:
    """Have an owner begin a run now."""
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
            play(Wait(seconds=50), Say(text="x"))
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
    async with open_house(store=store) as house:
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
    await leave_open(store, Presence("bat_that_is_closed").owner)
    async with open_house(store=store):
        assert await status(store) == RunStatus.FAILED


async def busy(house: House) -> SessionBusy:
    session = await house.manager.session("ses_theirs")
    with pytest.raises(SessionBusy) as caught:
        await session.submit("x")
    return caught.value


async def test_a_busy_session_names_the_process_and_how_long_its_lease_lasts(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    async with open_house(store=store) as house:
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
        assert (await (await session.submit(play(Say(text="mine")))).result()).text == "mine"


async def test_owners_of_other_namespaces_are_told_apart(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    mine = Presence("bat_that_is_closed").owner
    await leave_open(store, replace(mine, namespace="pid:[1]"))
    async with open_house(store=store):
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

    async with open_house(store=store, lawful=False) as house, trio.open_nursery() as nursery:
        nursery.start_soon(renew)
        with pytest.raises(BatchBusy, match="process 7, which cannot be seen from here"):
            await recover(house.manager, "a", 1, session="ses_theirs", others=())
        assert trio.current_time() > 100
        nursery.cancel_scope.cancel()
    await trio.sleep(91)
    async with open_house(store=store):
        assert await status(store) == RunStatus.FAILED
