"""The behaviours of blobs, snapshots, back-offs, notes and the ledger."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.store import CostTotals, IdTaken, LedgerRow, NumberGap, SnapshotRow, UnknownId
from sessionmgr.testing.store_conformance.behaviour import StoreBehaviourGroup
from sessionmgr.testing.store_conformance.sample_records import (
    OTHER,
    RUN,
    SESSION,
    batch,
    expect_refusal,
    new_session,
    put_blob,
    put_snapshot,
)

if TYPE_CHECKING:
    from sessionmgr.store import Store

SHELF: Final = StoreBehaviourGroup()


@SHELF.of_one_store
async def a_blob_is_found_by_its_sha256(store: Store) -> None:
    for data in (b"", b"\x89PNG\r\n", bytes(range(256)) * 10_000):
        sha256 = await put_blob(store, data)
        assert sha256 == hashlib.sha256(data).hexdigest()
        assert await store.blob(sha256) == data


@SHELF.of_one_store
async def the_same_blob_twice_is_one(store: Store) -> None:
    assert await put_blob(store, b"same") == await put_blob(store, b"same")


@SHELF.of_one_store
async def a_batch_brings_its_blobs_and_a_refused_one_none(store: Store) -> None:
    await new_session(store)
    await store.append(replace(batch(1, "image_received"), blobs=(b"one", b"two")))
    for data in (b"one", b"two"):
        assert await store.blob(hashlib.sha256(data).hexdigest()) == data
    with expect_refusal(NumberGap):
        await store.append(replace(batch(5, "image_received"), blobs=(b"three",)))
    with expect_refusal(UnknownId):
        await store.blob(hashlib.sha256(b"three").hexdigest())


@SHELF.of_one_store
async def a_blob_that_was_never_put_is_unknown(store: Store) -> None:
    with expect_refusal(UnknownId):
        await store.blob("0" * 64)


def _snapshot(n: int, session_id: str = SESSION, run_id: str | None = RUN) -> SnapshotRow:
    return SnapshotRow(
        snapshot_id=f"snp_{n}", session_id=session_id, run_id=run_id, at=n, body=b"state"
    )


@SHELF.of_one_store
async def a_snapshot_comes_back_unchanged(store: Store) -> None:
    await new_session(store)
    for each in (_snapshot(1), _snapshot(2, run_id=None)):
        await put_snapshot(store, each)
        assert await store.snapshot(each.snapshot_id) == each


@SHELF.of_one_store
async def a_batch_brings_its_snapshots_and_a_refused_one_none(store: Store) -> None:
    await new_session(store)
    append = replace(batch(1, "noted"), snapshots=(_snapshot(1), _snapshot(2)))
    for _ in range(2):
        await store.append(append)
    assert await store.snapshots(SESSION) == [_snapshot(1), _snapshot(2)]
    with expect_refusal(NumberGap):
        await store.append(replace(batch(5, "noted"), snapshots=(_snapshot(3),)))
    with expect_refusal(IdTaken):
        other = replace(_snapshot(1), body=b"another")
        await store.append(replace(batch(2, "noted"), snapshots=(other,)))
    assert await store.snapshots(SESSION) == [_snapshot(1), _snapshot(2)]


@SHELF.of_one_store
async def snapshots_are_listed_by_session(store: Store) -> None:
    await new_session(store)
    await new_session(store, OTHER)
    for each in (_snapshot(3), _snapshot(1, OTHER), _snapshot(2)):
        await put_snapshot(store, each)
    assert [each.snapshot_id for each in await store.snapshots(SESSION)] == ["snp_3", "snp_2"]
    assert [each.snapshot_id for each in await store.snapshots(OTHER)] == ["snp_1"]


@SHELF.of_one_store
async def a_snapshot_is_put_once(store: Store) -> None:
    await new_session(store)
    await put_snapshot(store, _snapshot(1))
    await put_snapshot(store, _snapshot(1))
    with expect_refusal(IdTaken):
        await put_snapshot(store, replace(_snapshot(1), body=b"other"))
    assert (await store.snapshot("snp_1")).body == b"state"


@SHELF.of_one_store
async def a_snapshot_needs_its_session_and_its_id(store: Store) -> None:
    with expect_refusal(UnknownId):
        await put_snapshot(store, _snapshot(1, "ses_none"))
    with expect_refusal(UnknownId):
        await store.snapshot("snp_1")
    with expect_refusal(UnknownId):
        await store.snapshots("ses_none")


@SHELF.of_one_store
async def back_offs_are_set_replaced_and_forgotten(store: Store) -> None:
    assert await store.backoffs() == {}
    await store.put_backoff("claude/me/opus", b"1")
    await store.put_backoff("codex", b"2")
    await store.put_backoff("codex", b"3")
    await store.put_backoff("claude/me/opus", None)
    await store.put_backoff("never", None)
    assert await store.backoffs() == {"codex": b"3"}


@SHELF.of_one_store
async def notes_are_set_replaced_and_forgotten(store: Store) -> None:
    assert await store.meta("swept") is None
    await store.put_meta("swept", b"1")
    await store.put_meta("swept", b"2")
    assert await store.meta("swept") == b"2"
    await store.put_meta("swept", None)
    assert await store.meta("swept") is None


@SHELF.of_one_store
async def costs_are_the_sums_of_the_ledger(store: Store) -> None:
    await new_session(store)
    await new_session(store, OTHER)
    paid = LedgerRow(RUN, "uuid-1", 10, 5, 3, 7, 2, 1_500_000_000, "reported")
    more = LedgerRow(RUN, "uuid-2", 1, 1, 1, 1, 1, -500_000_000, "priced")
    free = LedgerRow(None, "uuid-1", input=100)
    await store.append(batch(1, "a", run=RUN, status="running", ledger=[paid, more]))
    await store.append(batch(2, "a", ledger=[free]))
    await store.append(batch(1, "a", session_id=OTHER, ledger=[LedgerRow(output=9)]))
    sums = await store.costs([SESSION, OTHER, RUN, "uuid-1"])
    assert sums[SESSION] == CostTotals(
        rows=3,
        input=111,
        cached_input=6,
        cache_write=4,
        output=8,
        reasoning=3,
        nano_usd=1_000_000_000,
        unpriced=1,
    )
    assert (sums[OTHER].output, sums[OTHER].unpriced) == (9, 1)
    assert (sums[RUN].rows, sums[RUN].nano_usd) == (2, 1_000_000_000)
    assert (sums["uuid-1"].rows, sums["uuid-1"].input) == (2, 110)


@SHELF.of_one_store
async def ids_without_costs_are_left_out(store: Store) -> None:
    await new_session(store)
    await store.append(batch(1, "a"))
    assert await store.costs([SESSION, "run_none"]) == {}
    assert await store.costs([]) == {}


@SHELF.of_one_store
async def costs_count_once_however_often_a_batch_is_sent(store: Store) -> None:
    await new_session(store)
    append = batch(1, "a", ledger=[LedgerRow(input=5)])
    await store.append(append)
    await store.append(append)
    with expect_refusal(NumberGap):
        await store.append(batch(9, "a", ledger=[LedgerRow(input=50)]))
    assert (await store.costs([SESSION]))[SESSION].input == 5


@SHELF.of_one_store
async def costs_stay_when_events_are_pruned(store: Store) -> None:
    await new_session(store)
    types = ("run_started", "message_streamed", "run_failed")
    append = batch(1, *types, run=RUN, status="failed", ledger=[LedgerRow(RUN, input=5)])
    await store.append(append)
    assert (await store.prune(before=10_000)).events == 1
    assert (await store.costs([RUN]))[RUN].input == 5
