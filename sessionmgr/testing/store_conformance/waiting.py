"""The behaviours of waiting for events: who wakes, and that no event is missed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio
import trio.testing

from sessionmgr.store import NumberGap, UnknownId
from sessionmgr.testing.store_conformance.behaviour import StoreBehaviourGroup
from sessionmgr.testing.store_conformance.sample_records import (
    OTHER,
    SESSION,
    batch,
    expect_refusal,
    new_session,
    numbers,
    request,
)

if TYPE_CHECKING:
    from sessionmgr.store import Store

WAITING: Final = StoreBehaviourGroup()
PATIENCE: Final = 60  # seconds, for expected events
SILENCE: Final = 0.05  # seconds, for events that must not come


@WAITING.of_one_store
async def waiting_for_what_is_there_returns_the_last_number(store: Store) -> None:
    await new_session(store)
    await store.append(batch(1, "a", "b", "c"))
    assert await store.wait(SESSION, after=0) == 3
    assert await store.wait(SESSION, after=2) == 3


@WAITING.of_one_store
async def an_append_wakes_all_who_wait_for_its_session(store: Store) -> None:
    await new_session(store)
    woken: list[int] = []

    async def wait() -> None:
        woken.append(await store.wait(SESSION, after=0))

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            await store.append(batch(1, "a", "b"))
    assert woken == [2] * 5


@WAITING.of_one_store
async def an_append_elsewhere_wakes_no_waiter(store: Store) -> None:
    await new_session(store)
    await new_session(store, OTHER)
    woken: list[str] = []
    one_woke = trio.Event()

    async def wait(session_id: str) -> None:
        await store.wait(session_id, after=0)
        woken.append(session_id)
        one_woke.set()

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, SESSION)
            nursery.start_soon(wait, OTHER)
            await trio.testing.wait_all_tasks_blocked()
            await store.append(batch(1, "a", session_id=OTHER))
            await one_woke.wait()
            await trio.testing.wait_all_tasks_blocked(SILENCE)
            assert woken == [OTHER]
            await store.append(batch(1, "a"))
    assert woken == [OTHER, SESSION]


@WAITING.of_one_store
async def waiting_for_a_higher_number_outlasts_lower_ones(store: Store) -> None:
    await new_session(store)
    woken: list[int] = []

    async def wait() -> None:
        woken.append(await store.wait(SESSION, after=2))

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            for first in (1, 2, 3):
                assert woken == []
                await store.append(batch(first, "a"))
    assert woken == [3]


@WAITING.of_one_store
async def a_wait_ends_with_the_callers_timeout(store: Store) -> None:
    await new_session(store)
    with trio.move_on_after(SILENCE) as scope:
        await store.wait(SESSION, after=0)
    assert scope.cancelled_caught
    await store.append(batch(1, "a"))
    assert await store.wait(SESSION, after=0) == 1


@WAITING.of_one_store
async def a_refused_append_wakes_no_waiter(store: Store) -> None:
    await new_session(store)
    with trio.move_on_after(PATIENCE) as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: store.wait(SESSION, after=0))
            await trio.testing.wait_all_tasks_blocked()
            with expect_refusal(NumberGap):
                await store.append(batch(2, "a"))
            await trio.testing.wait_all_tasks_blocked(SILENCE)
            assert len(nursery.child_tasks) == 1
            scope.cancel()


@WAITING.of_one_store
async def what_wakes_can_be_read(store: Store) -> None:
    await new_session(store)
    followed: list[list[int]] = []

    async def follow() -> None:
        read: list[int] = []
        followed.append(read)
        while len(read) < 60:
            woken = await store.wait(SESSION, after=len(read))
            read += numbers(await store.events(SESSION, after=len(read)))
            assert len(read) >= woken

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(follow)
            for n in range(1, 61):
                await store.append(batch(n, "a"))
    assert followed == 3 * [list(range(1, 61))]


@WAITING.of_one_store
async def waiting_for_no_session_is_an_error(store: Store) -> None:
    with expect_refusal(UnknownId):
        await store.wait("ses_none", after=0)


@WAITING.of_one_store
async def a_request_wakes_those_who_wait_for_requests(store: Store) -> None:
    woken: list[int] = []

    async def wait() -> None:
        woken.append(await store.wait_request(after=0))

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            number = await store.submit(request(1))
    assert woken == [number]


@WAITING.of_one_store
async def a_result_wakes_the_maker_of_the_request(store: Store) -> None:
    results: list[bytes] = []
    for n in (1, 2):
        await store.submit(request(n))

    async def wait() -> None:
        results.append(await store.wait_result("req_1"))

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            await store.complete("req_2", b"two")
            await trio.testing.wait_all_tasks_blocked(SILENCE)
            assert results == []
            await store.complete("req_1", b"one")
    assert results == [b"one"]
