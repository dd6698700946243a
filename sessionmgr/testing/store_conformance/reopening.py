"""The behaviours of a store that is opened again, or twice at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio
import trio.testing

from sessionmgr.store import (
    AppendResult,
    LeaseHeld,
    LedgerRow,
    NumberTaken,
    SnapshotRow,
    StaleFence,
)
from sessionmgr.testing.store_conformance.behaviour import StoreBehaviourGroup
from sessionmgr.testing.store_conformance.sample_records import (
    ME,
    OTHER,
    RUN,
    SESSION,
    YOU,
    batch,
    ended_run,
    expect_refusal,
    new_session,
    numbers,
    put_blob,
    put_snapshot,
    request,
)
from sessionmgr.testing.store_conformance.waiting import PATIENCE

if TYPE_CHECKING:
    from sessionmgr.store import Store
    from sessionmgr.testing.store_conformance.behaviour import OpenStore

LASTING: Final = StoreBehaviourGroup()


@LASTING.of_openings
async def what_was_acknowledged_is_there_after_opening_again(open_store: OpenStore) -> None:
    async with open_store() as store:
        await new_session(store)
        await store.append(batch(1, "a", run=RUN, status="running", ledger=[LedgerRow(input=1)]))
        sha256 = await put_blob(store, b"blob")
        snapshot = SnapshotRow(snapshot_id="snp_1", session_id=SESSION, run_id=RUN, at=1, body=b"s")
        await put_snapshot(store, snapshot)
        await store.put_backoff("b", b"1")
        await store.put_meta("m", b"2")
        number = await store.submit(request(1))
        lease = await store.acquire("x", ME, now=0, ttl=1000)
    async with open_store() as store:
        assert numbers(await store.events(SESSION)) == [1, 2]
        assert (await store.run(RUN)).status == "running"
        assert (await store.costs([SESSION]))[SESSION].input == 1
        assert await store.blob(sha256) == b"blob"
        assert await store.snapshot("snp_1") == snapshot
        assert await store.backoffs() == {"b": b"1"}
        assert await store.meta("m") == b"2"
        assert [each.number for each in await store.requests()] == [number]
        assert await store.leases() == [lease]


@LASTING.of_openings
async def a_batch_is_recognised_after_opening_again(open_store: OpenStore) -> None:
    append = batch(1, "a", "b")
    async with open_store() as store:
        await new_session(store)
        await store.append(append)
    async with open_store() as store:
        assert await store.append(append) == AppendResult(2, duplicate=True)
        await store.append(batch(3, "c"))
        assert numbers(await store.events(SESSION)) == [1, 2, 3]


@LASTING.of_openings
async def markers_are_there_after_opening_again(open_store: OpenStore) -> None:
    async with open_store() as store:
        await new_session(store)
        await ended_run(store)
        await store.prune(before=10_000)
    async with open_store() as store:
        assert numbers(await store.events(SESSION)) == [1, 4, 5]


@LASTING.of_openings
async def each_opening_sees_what_another_appends(open_store: OpenStore) -> None:
    async with open_store() as one, open_store() as two:
        await new_session(one)
        await one.append(batch(1, "a"))
        assert numbers(await two.events(SESSION)) == [1]
        await two.append(batch(2, "b"))
        assert numbers(await one.events(SESSION)) == [1, 2]
        with expect_refusal(NumberTaken):
            await one.append(batch(2, "c", name="bat_other"))


@LASTING.of_openings
async def an_append_wakes_who_waits_in_another_opening(open_store: OpenStore) -> None:
    async with open_store() as one, open_store() as two:
        await new_session(one)
        await new_session(one, OTHER)
        woken: list[int] = []

        async def wait() -> None:
            woken.append(await two.wait(SESSION, after=0))

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait)
                await trio.testing.wait_all_tasks_blocked()
                await one.append(batch(1, "a", session_id=OTHER))
                await one.append(batch(1, "a", "b"))
        assert woken == [2]


@LASTING.of_openings
async def requests_and_results_wake_across_openings(open_store: OpenStore) -> None:
    async with open_store() as manager, open_store() as terminal:

        async def serve() -> None:
            await manager.wait_request(after=0)
            (found,) = await manager.requests()
            assert await manager.claim_request(found.request.request_id, ME)
            await manager.complete(found.request.request_id, b"done")

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(serve)
                await trio.testing.wait_all_tasks_blocked()
                await terminal.submit(request(1))
                assert await terminal.wait_result("req_1") == b"done"


@LASTING.of_openings
async def a_lease_excludes_owners_of_other_openings(open_store: OpenStore) -> None:
    async with open_store() as one, open_store() as two:
        await new_session(one)
        old = await one.acquire(SESSION, ME, now=0, ttl=100)
        with expect_refusal(LeaseHeld):
            await two.acquire(SESSION, YOU, now=50, ttl=100)
        new = await two.acquire(SESSION, YOU, now=100, ttl=100)
        with expect_refusal(StaleFence):
            await one.append(batch(1, "a", fence=old.fence))
        await two.append(batch(1, "a", fence=new.fence))


@LASTING.of_openings
async def writers_of_several_openings_share_one_session(open_store: OpenStore) -> None:
    async with open_store() as one, open_store() as two, open_store() as three:
        await new_session(one)
        won: list[str] = []

        async def write(name: str, store: Store) -> None:
            for n in range(1, 21):
                try:
                    await store.append(batch(n, name, name=name))
                except NumberTaken:
                    continue
                won.append(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write, "one", one)
            nursery.start_soon(write, "two", two)
            nursery.start_soon(write, "three", three)
        assert len(won) == 20
        assert numbers(await two.events(SESSION)) == list(range(1, 21))
