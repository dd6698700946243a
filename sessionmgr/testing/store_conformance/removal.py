"""Conformance tests for the removal of whole sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.store import EventRow, LedgerRow, RemovalResult, Request, SnapshotRow, UnknownId
from sessionmgr.testing.store_conformance.behaviour import StoreBehaviourGroup
from sessionmgr.testing.store_conformance.sample_records import (
    ME,
    OTHER,
    SESSION,
    batch,
    expect_refusal,
    new_session,
    numbers,
    put_blob,
    put_snapshot,
)

if TYPE_CHECKING:
    from sessionmgr.store import Store

REMOVING: Final = StoreBehaviourGroup()
LATER: Final = 10_000


async def _ended(store: Store, session_id: str, *images: bytes) -> str:
    """Store a session with these images whose only run has ended; return the run."""
    run = f"run_of_{session_id}"
    await new_session(store, session_id)
    start = batch(1, "run_started", run=run, status="running", session_id=session_id)
    await store.append(replace(start, ledger=(LedgerRow(run_id=run, input=7),)))
    for number, data in enumerate(images, 2):
        sha = await put_blob(store, data)
        body = b'{"type":"image_received","blob":"%s"}' % sha.encode()
        rows = (EventRow(number, run, "image_received", body),)
        await store.append(replace(batch(number, "a", session_id=session_id), rows=rows))
    first = 2 + len(images)
    end = batch(first, "run_completed", run=run, status="completed", session_id=session_id)
    await store.append(end)
    return run


@REMOVING.of_one_store
async def a_session_is_removed_with_all_that_is_its_own_and_with_nothing_else(
    store: Store,
) -> None:
    gone, stays = await _ended(store, SESSION), await _ended(store, OTHER)
    for session_id in (SESSION, OTHER):
        name = f"snp_{session_id}"
        await put_snapshot(
            store,
            SnapshotRow(snapshot_id=name, session_id=session_id, run_id=None, at=1, body=b"{}"),
        )
    removed = await store.remove(before=LATER, session_id=SESSION)
    assert (removed.sessions, removed.events, removed.blobs) == (1, 3, 0)
    assert removed.size > 0
    for look in (
        store.session(SESSION),
        store.run(gone),
        store.events(SESSION),
        store.snapshot(f"snp_{SESSION}"),
        store.resolve(SESSION),
    ):
        with expect_refusal(UnknownId):
            await look
    assert [each.session_id for each in (await store.sessions()).rows] == [OTHER]
    assert [each.run_id for each in (await store.runs()).rows] == [stays]
    assert numbers(await store.events(OTHER)) == [1, 2, 3]
    assert set(await store.costs([SESSION, gone, OTHER, stays])) == {OTHER, stays}
    assert (await store.snapshot(f"snp_{OTHER}")).session_id == OTHER
    assert await store.remove(before=LATER, session_id=SESSION) == RemovalResult()


@REMOVING.of_one_store
async def what_ended_later_or_has_not_ended_or_is_held_stays(store: Store) -> None:
    await _ended(store, SESSION)  # at 2000
    await _ended(store, OTHER)
    await store.append(batch(3, "run_started", run="run_b", status="running", session_id=OTHER))
    assert await store.remove(before=2000) == RemovalResult()
    lease = await store.acquire(SESSION, ME, now=1, ttl=1)
    assert (await store.remove(before=LATER)).sessions == 0
    await store.release(SESSION, lease.fence)
    assert (await store.remove(before=LATER)).sessions == 1
    assert [each.session_id for each in (await store.sessions()).rows] == [OTHER]


@REMOVING.of_one_store
async def a_session_that_was_removed_may_begin_again(store: Store) -> None:
    await _ended(store, SESSION)
    await store.remove(before=LATER)
    await _ended(store, SESSION)
    assert numbers(await store.events(SESSION)) == [1, 2]


@REMOVING.of_one_store
async def images_go_with_the_last_session_that_has_them(store: Store) -> None:
    await _ended(store, SESSION, b"own", b"shared")
    await _ended(store, OTHER, b"shared")
    alone = await put_blob(store, b"of no event")
    own, shared = await put_blob(store, b"own"), await put_blob(store, b"shared")
    assert (await store.remove(before=LATER, session_id=SESSION)).blobs == 1
    with expect_refusal(UnknownId):
        await store.blob(own)
    assert await store.blob(shared) == b"shared"
    assert (await store.remove(before=LATER)).blobs == 1
    with expect_refusal(UnknownId):
        await store.blob(shared)
    assert await store.blob(alone) == b"of no event"


@REMOVING.of_one_store
async def images_stay_while_another_session_is_leased(store: Store) -> None:
    await _ended(store, SESSION, b"own")
    await store.acquire("ses_elsewhere", ME, now=1, ttl=1)
    removed = await store.remove(before=LATER)
    assert (removed.sessions, removed.blobs) == (1, 0)
    assert await store.blob(await put_blob(store, b"own")) == b"own"


@REMOVING.of_one_store
async def requests_go_with_their_session_and_when_they_are_old(store: Store) -> None:
    run = await _ended(store, SESSION)
    await _ended(store, OTHER)
    asked = [(SESSION, 9), (run, 99_999), ("run_x", 9), (OTHER, 99_999)]
    for number, (target, at) in enumerate(asked):
        await store.submit(Request(request_id=f"req_{number}", kind="append", target=target, at=at))
    await store.remove(before=LATER, session_id=SESSION)
    assert [each.request.target for each in await store.requests()] == ["run_x", OTHER]
    await store.acquire(OTHER, ME, now=1, ttl=1)
    await store.remove(before=LATER)
    assert [each.request.target for each in await store.requests()] == [OTHER]
