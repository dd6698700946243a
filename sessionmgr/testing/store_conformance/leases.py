"""The behaviours of leases, and of requests that one owner takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio
from msgspec.structs import replace

from sessionmgr.store import IdTaken, LeaseHeld, LeaseLost, LeaseOwner, UnknownId
from sessionmgr.testing.store_conformance.behaviour import StoreBehaviourGroup
from sessionmgr.testing.store_conformance.sample_records import ME, YOU, expect_refusal, request

if TYPE_CHECKING:
    from sessionmgr.store import Store

HOLDING: Final = StoreBehaviourGroup()


@HOLDING.of_one_store
async def a_lease_is_held_by_one(store: Store) -> None:
    lease = await store.acquire("sweeper", ME, now=1000, ttl=500)
    assert (lease.name, lease.owner, lease.expires) == ("sweeper", ME, 1500)
    with expect_refusal(LeaseHeld) as caught:
        await store.acquire("sweeper", YOU, now=1499, ttl=500)
    (error,) = caught
    assert isinstance(error, LeaseHeld)
    assert (error.holder, error.fence, error.expires) == (ME, lease.fence, 1500)
    await store.acquire("another", YOU, now=1499, ttl=500)


@HOLDING.of_one_store
async def an_expired_lease_is_free(store: Store) -> None:
    old = await store.acquire("x", ME, now=1000, ttl=500)
    new = await store.acquire("x", YOU, now=1500, ttl=500)
    assert new.fence > old.fence
    assert new.owner == YOU


@HOLDING.of_one_store
async def fences_only_rise(store: Store) -> None:
    fences: list[int] = []
    for n in range(5):
        lease = await store.acquire("x", (ME, YOU)[n % 2], now=n, ttl=1)
        fences.append(lease.fence)
        if n % 2:
            await store.release("x", lease.fence)
    assert fences == sorted(set(fences))
    assert fences[0] >= 1


@HOLDING.of_one_store
async def a_released_lease_is_free_at_once(store: Store) -> None:
    lease = await store.acquire("x", ME, now=0, ttl=1000)
    await store.release("x", lease.fence)
    await store.release("x", lease.fence)
    assert await store.leases() == []
    assert (await store.acquire("x", YOU, now=1, ttl=1000)).fence > lease.fence


@HOLDING.of_one_store
async def releasing_an_old_lease_does_not_touch_the_new_one(store: Store) -> None:
    old = await store.acquire("x", ME, now=0, ttl=10)
    new = await store.acquire("x", YOU, now=20, ttl=10)
    await store.release("x", old.fence)
    assert await store.leases() == [new]


@HOLDING.of_one_store
async def the_same_owner_takes_its_lease_anew_with_a_higher_fence(store: Store) -> None:
    old = await store.acquire("x", ME, now=0, ttl=1000)
    new = await store.acquire("x", ME, now=1, ttl=1000)
    assert new.fence > old.fence
    with expect_refusal(LeaseLost):
        await store.renew("x", old.fence, now=2, ttl=1000)


@HOLDING.of_one_store
async def renewing_puts_off_the_end(store: Store) -> None:
    lease = await store.acquire("x", ME, now=0, ttl=100)
    renewed = await store.renew("x", lease.fence, now=90, ttl=100)
    assert renewed == replace(lease, expires=190)
    with expect_refusal(LeaseHeld):
        await store.acquire("x", YOU, now=150, ttl=100)


@HOLDING.of_one_store
async def an_expired_lease_can_be_renewed_unless_it_was_taken(store: Store) -> None:
    lease = await store.acquire("x", ME, now=0, ttl=100)
    assert (await store.renew("x", lease.fence, now=500, ttl=100)).expires == 600


@HOLDING.of_one_store
async def a_lease_that_was_taken_over_is_lost(store: Store) -> None:
    old = await store.acquire("x", ME, now=0, ttl=10)
    new = await store.acquire("x", YOU, now=10, ttl=10)
    with expect_refusal(LeaseLost) as caught:
        await store.renew("x", old.fence, now=11, ttl=10)
    (error,) = caught
    assert isinstance(error, LeaseLost)
    assert (error.fence, error.current) == (old.fence, new.fence)
    with expect_refusal(LeaseLost):
        await store.renew("never", 1, now=11, ttl=10)


@HOLDING.of_one_store
async def a_lease_whose_owner_is_gone_is_free_at_once(store: Store) -> None:
    asked: list[LeaseOwner] = []

    def gone(owner: LeaseOwner) -> bool:
        asked.append(owner)
        return owner.start == ME.start

    old = await store.acquire("x", ME, now=0, ttl=1_000_000)
    new = await store.acquire("x", YOU, now=1, ttl=1_000_000, gone=gone)
    assert new.fence > old.fence
    with expect_refusal(LeaseHeld):  # the present owner is alive
        await store.acquire("x", ME, now=2, ttl=1_000_000, gone=gone)
    assert asked == [ME, YOU]


@HOLDING.of_one_store
async def an_expired_lease_is_held_while_its_owner_provably_lives(store: Store) -> None:
    old = await store.acquire("x", ME, now=0, ttl=10)
    with expect_refusal(LeaseHeld) as caught:
        await store.acquire("x", YOU, now=1_000_000, ttl=10, alive=lambda owner: owner == ME)
    (error,) = caught
    assert isinstance(error, LeaseHeld)
    assert (error.holder, error.expires) == (ME, 10)
    assert (await store.renew("x", old.fence, now=1_000_000, ttl=10)).expires == 1_000_010
    new = await store.acquire("x", YOU, now=2_000_000, ttl=10, alive=lambda owner: owner != ME)
    assert new.owner == YOU


@HOLDING.of_one_store
async def an_owner_is_distinguished_from_a_later_process_with_its_pid(store: Store) -> None:
    await store.acquire("x", ME, now=0, ttl=1000)
    for other in (
        replace(ME, start=1),
        replace(ME, boot_id="2"),
        replace(ME, name="b"),
        replace(ME, namespace="c"),
    ):
        with expect_refusal(LeaseHeld):
            await store.acquire("x", other, now=1, ttl=1000)


@HOLDING.of_one_store
async def of_many_who_want_a_lease_one_gets_it(store: Store) -> None:
    got: list[LeaseOwner] = []

    async def want(owner: LeaseOwner) -> None:
        try:
            lease = await store.acquire("x", owner, now=0, ttl=1000)
        except LeaseHeld:
            return
        got.append(lease.owner)

    async with trio.open_nursery() as nursery:
        for pid in range(20):
            nursery.start_soon(want, LeaseOwner("boot", pid, 1))
    assert len(got) == 1


@HOLDING.of_one_store
async def leases_are_listed_by_name_expired_ones_too(store: Store) -> None:
    for name in ("run/b", "ses/a", "run/a"):
        await store.acquire(name, ME, now=0, ttl=1)
    await store.acquire("run/b", YOU, now=50, ttl=100)
    held = await store.leases("run/")
    assert [(each.name, each.owner, each.expires) for each in held] == [
        ("run/a", ME, 1),
        ("run/b", YOU, 150),
    ]
    assert len(await store.leases()) == 3


@HOLDING.of_one_store
async def requests_are_listed_in_their_order(store: Store) -> None:
    assert await store.requests() == []
    placed = [await store.submit(request(n)) for n in (1, 2, 3)]
    assert placed == sorted(set(placed))
    listed = await store.requests()
    assert [each.request for each in listed] == [request(n) for n in (1, 2, 3)]
    assert [each.number for each in listed] == placed
    assert [each.number for each in await store.requests(after=placed[0], limit=1)] == [placed[1]]


@HOLDING.of_one_store
async def the_same_request_again_is_one(store: Store) -> None:
    first = await store.submit(request(1))
    assert await store.submit(request(1)) == first
    with expect_refusal(IdTaken):
        await store.submit(request(1, kind="pause"))
    assert len(await store.requests()) == 1


@HOLDING.of_one_store
async def a_request_is_taken_by_one(store: Store) -> None:
    await store.submit(request(1))
    assert await store.claim_request("req_1", ME)
    assert await store.claim_request("req_1", ME)
    assert not await store.claim_request("req_1", YOU)
    (taken,) = await store.requests()
    assert taken.owner == ME


@HOLDING.of_one_store
async def a_request_whose_taker_is_gone_is_taken_again(store: Store) -> None:
    await store.submit(request(1))
    assert await store.claim_request("req_1", ME)
    assert not await store.claim_request("req_1", YOU, gone=lambda owner: owner == YOU)
    assert await store.claim_request("req_1", YOU, gone=lambda owner: owner == ME)
    assert not await store.claim_request("req_1", ME)


@HOLDING.of_one_store
async def a_completed_request_has_a_result_and_is_listed_no_more(store: Store) -> None:
    await store.submit(request(1))
    await store.submit(request(2))
    assert await store.claim_request("req_1", ME)
    await store.complete("req_1", b"cancelled")
    assert await store.wait_result("req_1") == b"cancelled"
    assert [each.request.request_id for each in await store.requests()] == ["req_2"]
    assert not await store.claim_request("req_1", ME)


@HOLDING.of_one_store
async def a_completed_request_that_is_made_again_is_the_same(store: Store) -> None:
    first = await store.submit(request(1))
    await store.complete("req_1", b"done")
    assert await store.submit(request(1)) == first
    assert await store.requests() == []
    with expect_refusal(IdTaken):
        await store.submit(request(1, kind="pause"))


@HOLDING.of_one_store
async def the_first_result_stays(store: Store) -> None:
    await store.submit(request(1))
    await store.complete("req_1", b"one")
    await store.complete("req_1", b"two")
    assert await store.wait_result("req_1") == b"one"


@HOLDING.of_one_store
async def a_request_that_was_never_made_is_unknown(store: Store) -> None:
    with expect_refusal(UnknownId):
        await store.claim_request("req_none", ME)
    with expect_refusal(UnknownId):
        await store.complete("req_none", b"")
    with expect_refusal(UnknownId):
        await store.wait_result("req_none")
