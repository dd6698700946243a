"""The behaviours of appends: numbers, batches, fences, and concurrent writers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import trio
import trio.testing
from msgspec.structs import replace

from sessionmgr.store import (
    AlreadyEnded,
    Append,
    AppendInvalid,
    AppendResult,
    EventRow,
    NewSession,
    NumberGap,
    NumberTaken,
    RunRow,
    StaleFence,
    UnknownId,
)
from sessionmgr.testing.store_conformance.behaviour import StoreBehaviourGroup
from sessionmgr.testing.store_conformance.sample_records import (
    ME,
    OTHER,
    RUN,
    SESSION,
    YOU,
    batch,
    event,
    expect_refusal,
    new_session,
    numbers,
    numbers_and_types,
)

if TYPE_CHECKING:
    from sessionmgr.store import Store

APPENDING: Final = StoreBehaviourGroup()


@APPENDING.of_one_store
async def what_was_appended_is_read_at_once(store: Store) -> None:
    await new_session(store)
    assert await store.append(batch(1, "a", "b")) == AppendResult(2)
    assert numbers_and_types(await store.events(SESSION)) == [(1, "a"), (2, "b")]


@APPENDING.of_one_store
async def the_bytes_come_back_unchanged(store: Store) -> None:
    await new_session(store)
    bodies = [
        b"",
        b"\x00\xff\xfe",
        b'{"a" : 1,  "a":2}',
        "naïve \U0001f600".encode(),
        b"x" * 100_000,
    ]
    rows = tuple(EventRow(n, None, "odd", body) for n, body in enumerate(bodies, 1))
    await store.append(replace(batch(1, "odd"), rows=rows))
    assert [row.body for row in (await store.events(SESSION)).rows] == bodies


@APPENDING.of_one_store
async def an_event_comes_back_whole(store: Store) -> None:
    await new_session(store)
    append = batch(1, "run_started", run=RUN, status="running")
    free = replace(append, rows=(*append.rows, event(2, "session_closed")))
    await store.append(free)
    assert (await store.events(SESSION)).rows == free.rows


@APPENDING.of_one_store
async def a_session_may_be_stored_with_its_first_batch(store: Store) -> None:
    new = NewSession(session_id=SESSION, provider="echo", at=7, body=b"{}")
    append = replace(batch(1, "a"), new_session=new)
    assert await store.append(append) == AppendResult(1)
    assert await store.append(append) == AppendResult(1, duplicate=True)
    assert await store.append(replace(batch(2, "b"), new_session=new)) == AppendResult(2)
    assert [(row.session_id, row.last_seq) for row in (await store.sessions()).rows] == [
        (SESSION, 2)
    ]


@APPENDING.of_one_store
async def a_batch_that_is_refused_stores_no_session_either(store: Store) -> None:
    new = NewSession(session_id=SESSION, provider="echo", at=7, body=b"{}")
    with expect_refusal(NumberGap):
        await store.append(replace(batch(2, "a"), new_session=new))
    with expect_refusal(AlreadyEnded):
        await store.append(
            replace(
                batch(1, "run_failed", "run_completed", run=RUN, status="failed"), new_session=new
            )
        )
    assert (await store.sessions()).rows == ()
    assert await store.append(replace(batch(1, "a"), new_session=new)) == AppendResult(1)


@APPENDING.of_one_store
async def numbers_go_on_from_batch_to_batch(store: Store) -> None:
    await new_session(store)
    for first in (1, 3, 5):
        await store.append(batch(first, "a", "b"))
    assert numbers(await store.events(SESSION)) == [1, 2, 3, 4, 5, 6]
    assert (await store.session(SESSION)).last_seq == 6


@APPENDING.of_one_store
async def each_session_counts_for_itself(store: Store) -> None:
    await new_session(store)
    await new_session(store, OTHER)
    await store.append(batch(1, "a", "b"))
    await store.append(batch(1, "c", session_id=OTHER))
    assert numbers_and_types(await store.events(OTHER)) == [(1, "c")]
    assert numbers_and_types(await store.events(SESSION)) == [(1, "a"), (2, "b")]


@APPENDING.of_one_store
async def the_same_batch_again_is_acknowledged_and_changes_nothing(store: Store) -> None:
    await new_session(store)
    append = batch(1, "a", "b")
    assert await store.append(append) == AppendResult(2)
    assert await store.append(append) == AppendResult(2, duplicate=True)
    assert numbers(await store.events(SESSION)) == [1, 2]


@APPENDING.of_one_store
async def an_older_batch_again_is_acknowledged_too(store: Store) -> None:
    await new_session(store)
    first = batch(1, "a", "b")
    for each in (first, batch(3, "c"), batch(4, "d")):
        await store.append(each)
    assert await store.append(first) == AppendResult(2, duplicate=True)
    assert (await store.session(SESSION)).last_seq == 4


@APPENDING.of_one_store
async def another_batch_at_a_taken_number_is_refused(store: Store) -> None:
    await new_session(store)
    await store.append(batch(1, "a", "b"))
    others = [
        batch(1, "a", "b", name="bat_other"),
        batch(1, "a"),
        batch(1, "a", "b", "c"),
        batch(2, "b"),
        batch(1, "a", "b", fence=2),
    ]
    for each in others:
        with expect_refusal(NumberTaken):
            await store.append(each)
    assert numbers(await store.events(SESSION)) == [1, 2]


@APPENDING.of_one_store
async def a_gap_is_refused_with_the_last_number(store: Store) -> None:
    await new_session(store)
    await store.append(batch(1, "a"))
    with expect_refusal(NumberGap) as caught:
        await store.append(batch(3, "c"))
    (error,) = caught
    assert isinstance(error, NumberGap)
    assert (error.first, error.last) == (3, 1)
    assert numbers(await store.events(SESSION)) == [1]


@APPENDING.of_one_store
async def a_refused_fence_takes_no_hold(store: Store) -> None:
    await new_session(store)
    with expect_refusal(NumberGap):
        await store.append(batch(7, "a", fence=9))
    await store.append(batch(1, "a", fence=1))
    assert (await store.session(SESSION)).fence == 1


@APPENDING.of_one_store
async def an_old_fence_is_refused_even_for_a_batch_that_is_stored(store: Store) -> None:
    await new_session(store)
    await store.append(batch(1, "a", fence=1))
    await store.append(batch(2, "b", fence=2))
    for stale in (batch(3, "c", fence=1), batch(1, "a", fence=1)):
        with expect_refusal(StaleFence) as caught:
            await store.append(stale)
        (error,) = caught
        assert isinstance(error, StaleFence)
        assert (error.fence, error.current) == (1, 2)
    assert numbers(await store.events(SESSION)) == [1, 2]


@APPENDING.of_one_store
async def a_lease_on_the_session_excludes_the_owner_before(store: Store) -> None:
    await new_session(store)
    old = await store.acquire(SESSION, ME, now=0, ttl=10)
    await store.append(batch(1, "a", fence=old.fence))
    new = await store.acquire(SESSION, YOU, now=100, ttl=10)
    # The new owner has appended nothing yet: the lease alone excludes the old one.
    with expect_refusal(StaleFence):
        await store.append(batch(2, "b", fence=old.fence))
    await store.append(batch(2, "c", fence=new.fence))
    assert numbers_and_types(await store.events(SESSION)) == [(1, "a"), (2, "c")]


@APPENDING.of_one_store
async def a_lease_older_than_its_session_guards_it_as_well(store: Store) -> None:
    await store.acquire(SESSION, ME, now=0, ttl=10)
    await store.acquire(SESSION, YOU, now=100, ttl=10)
    await new_session(store)
    with expect_refusal(StaleFence):
        await store.append(batch(1, "a", fence=1))


@APPENDING.of_one_store
async def a_batch_is_stored_whole_or_not_at_all(store: Store) -> None:
    await new_session(store)
    await store.append(batch(1, "run_started", run=RUN, status="running"))
    await store.append(batch(2, "run_completed", run=RUN, status="completed"))
    new_run = RunRow("run_new", "running", b"new")
    bad = batch(3, "a", "run_failed", run=RUN, status="failed")
    with expect_refusal(AlreadyEnded):
        await store.append(replace(bad, runs=(new_run, *bad.runs), session=b"changed"))
    assert numbers(await store.events(SESSION)) == [1, 2]
    assert (await store.session(SESSION)).body != b"changed"
    with expect_refusal(UnknownId):
        await store.run("run_new")


@APPENDING.of_one_store
async def a_batch_out_of_order_is_invalid(store: Store) -> None:
    await new_session(store)
    good = batch(1, "a", "b")
    for rows in ((), good.rows[::-1], (good.rows[0], good.rows[0]), (good.rows[1],)):
        with expect_refusal(AppendInvalid):
            await store.append(replace(good, rows=rows))
    with expect_refusal(AppendInvalid):
        await store.append(batch(0, "a"))
    assert numbers(await store.events(SESSION)) == []


@APPENDING.of_one_store
async def the_sessions_record_changes_with_a_batch(store: Store) -> None:
    await new_session(store)
    await store.append(replace(batch(1, "provider_session_updated"), session=b"new"))
    await store.append(batch(2, "a"))
    assert (await store.session(SESSION)).body == b"new"


@APPENDING.of_one_store
async def an_append_to_no_session_is_refused(store: Store) -> None:
    with expect_refusal(UnknownId):
        await store.append(batch(1, "a", session_id="ses_none"))


@APPENDING.of_one_store
async def a_closed_session_still_takes_late_events(store: Store) -> None:
    await new_session(store)
    await store.append(replace(batch(1, "session_closed"), closes=True))
    await store.append(batch(2, "process_exited"))
    assert numbers(await store.events(SESSION)) == [1, 2]


@APPENDING.of_one_store
async def a_batch_may_close_its_session_once(store: Store) -> None:
    await new_session(store)
    await store.append(batch(1, "a"))
    assert (await store.session(SESSION)).state == "open"
    await store.append(replace(batch(2, "session_closed"), at=5000, closes=True))
    await store.append(replace(batch(3, "session_closed"), at=6000, closes=True))
    session = await store.session(SESSION)
    assert (session.state, session.closed) == ("closed", 5000)


@APPENDING.of_one_store
async def a_batch_may_reopen_a_closed_session_and_a_later_one_close_it(store: Store) -> None:
    await new_session(store)
    await store.append(replace(batch(1, "session_closed"), at=5000, closes=True))
    await store.append(replace(batch(2, "session_reopened"), at=6000, reopens=True))
    session = await store.session(SESSION)
    assert (session.state, session.closed) == ("open", None)
    assert [each.session_id for each in (await store.sessions(state="open")).rows] == [SESSION]
    await store.append(replace(batch(3, "session_closed"), at=7000, closes=True))
    session = await store.session(SESSION)
    assert (session.state, session.closed) == ("closed", 7000)


@APPENDING.of_one_store
async def a_batch_that_reopens_an_open_session_leaves_it_open(store: Store) -> None:
    await new_session(store)
    await store.append(replace(batch(1, "a"), reopens=True))
    assert (await store.session(SESSION)).state == "open"


@APPENDING.of_one_store
async def a_batch_that_is_refused_closes_nothing(store: Store) -> None:
    await new_session(store)
    with expect_refusal(NumberGap):
        await store.append(replace(batch(2, "session_closed"), closes=True))
    assert (await store.session(SESSION)).state == "open"


@APPENDING.of_one_store
async def of_many_writers_for_one_number_one_wins(store: Store) -> None:
    await new_session(store)
    won: list[str] = []

    async def write(append: Append) -> None:
        try:
            await store.append(append)
        except NumberTaken:
            return
        won.append(append.batch)

    async with trio.open_nursery() as nursery:
        for n in range(20):
            nursery.start_soon(write, batch(1, f"by_{n}", name=f"bat_{n}"))
    (winner,) = won
    assert numbers_and_types(await store.events(SESSION)) == [(1, winner.replace("bat_", "by_"))]


@APPENDING.of_one_store
async def many_sessions_are_written_at_once(store: Store) -> None:
    async def keep(session_id: str) -> None:
        await new_session(store, session_id)
        for first in range(1, 40, 2):
            await store.append(batch(first, "a", "b", session_id=session_id))

    ids = [f"ses_{n}" for n in range(12)]
    async with trio.open_nursery() as nursery:
        for each in ids:
            nursery.start_soon(keep, each)
    for each in ids:
        assert numbers(await store.events(each)) == list(range(1, 41))


@APPENDING.of_one_store
async def one_refused_append_does_not_spoil_its_neighbours(store: Store) -> None:
    ids = [f"ses_{n}" for n in range(30)]
    for each in ids:
        await new_session(store, each)
    gaps: list[str] = []

    async def write(place: int, session_id: str) -> None:
        try:
            await store.append(batch(1 + place % 3 // 2, "a", session_id=session_id))
        except NumberGap:
            gaps.append(session_id)

    async with trio.open_nursery() as nursery:
        for place, each in enumerate(ids):
            nursery.start_soon(write, place, each)
    assert sorted(gaps) == sorted(ids[2::3])
    stored = [(await store.session(each)).last_seq for each in ids]
    assert stored == [1, 1, 0] * 10


@APPENDING.of_one_store
async def a_group_is_stored_and_each_append_has_its_own_outcome(store: Store) -> None:
    for each in (SESSION, OTHER):
        await new_session(store, each)
    await store.acquire(OTHER, ME, now=0, ttl=1)
    await store.acquire(OTHER, YOU, now=0, ttl=1, gone=lambda _: True)
    await store.append(batch(1, "a"))
    born = NewSession(session_id="ses_new", provider="echo", at=1, body=b"{}")
    never = NewSession(session_id="ses_gap", provider="echo", at=1, body=b"{}")
    outcomes = await store.append_all(
        [
            batch(1, "a"),
            batch(2, "b", "c"),
            batch(1, "a", session_id=OTHER, fence=1),
            batch(1, "a", session_id="ses_unknown"),
            replace(batch(1, "a", "b", "c", session_id="ses_new"), new_session=born),
            replace(batch(2, "a", session_id="ses_gap"), new_session=never),
            batch(4, "d"),
        ]
    )
    made = [each if isinstance(each, AppendResult) else type(each) for each in outcomes]
    assert made == [
        AppendResult(1, duplicate=True),
        AppendResult(3),
        StaleFence,
        UnknownId,
        AppendResult(3),
        NumberGap,
        AppendResult(4),
    ]
    assert numbers(await store.events(SESSION)) == [1, 2, 3, 4]
    assert numbers(await store.events("ses_new")) == [1, 2, 3]
    assert numbers(await store.events(OTHER)) == []
    with expect_refusal(UnknownId):
        await store.session("ses_gap")


@APPENDING.of_one_store
async def a_group_wakes_who_waits_for_any_of_its_sessions(store: Store) -> None:
    ids = [f"ses_{n}" for n in range(8)]
    for each in ids:
        await new_session(store, each)
    async with trio.open_nursery() as nursery:
        for each in ids:
            nursery.start_soon(partial(store.wait, each, after=0))
        await trio.testing.wait_all_tasks_blocked()
        outcomes = await store.append_all([batch(1, "a", session_id=each) for each in ids])
    assert outcomes == [AppendResult(1)] * 8


@APPENDING.of_one_store
async def a_group_that_is_sent_again_changes_nothing(store: Store) -> None:
    ids = [f"ses_{n}" for n in range(8)]
    for each in ids:
        await new_session(store, each)
    group = [batch(1, "a", "b", session_id=each) for each in ids]
    await store.append_all(group[:3])
    assert await store.append_all(group) == [
        *([AppendResult(2, duplicate=True)] * 3),
        *([AppendResult(2)] * 5),
    ]
    assert await store.append_all(group) == [AppendResult(2, duplicate=True)] * 8
    for each in ids:
        assert numbers(await store.events(each)) == [1, 2]


@APPENDING.of_one_store
async def an_append_that_is_cancelled_can_be_made_again(store: Store) -> None:
    await new_session(store)
    for first in range(1, 21):
        append = batch(first, "a")
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(store.append, append))
                await trio.lowlevel.checkpoint()
                scope.cancel()
        await store.append(append)
    assert numbers(await store.events(SESSION)) == list(range(1, 21))
