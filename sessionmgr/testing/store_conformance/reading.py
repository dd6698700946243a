"""The behaviours of reads: cursors, filters, limits, and the placeholders of pruned events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.store import EventPage, EventRow, NumberTaken, PruneResult, UnknownId
from sessionmgr.testing.store_conformance.behaviour import StoreBehaviourGroup
from sessionmgr.testing.store_conformance.sample_records import (
    OTHER,
    RUN,
    SESSION,
    batch,
    ended_run,
    expect_refusal,
    new_session,
    numbers,
    numbers_and_types,
)

if TYPE_CHECKING:
    from sessionmgr.store import Store

READING: Final = StoreBehaviourGroup()


async def _ten_events(store: Store) -> None:
    """Store events 1 to 10, of two runs and none in turn, and of types a and b in turn."""
    await new_session(store)
    for n in range(1, 11):
        run = (None, "run_x", "run_y")[n % 3]
        status = run and "running"
        await store.append(batch(n, "ab"[n % 2], run=run, status=status))


@READING.of_one_store
async def a_session_without_events_reads_empty(store: Store) -> None:
    await new_session(store)
    assert await store.events(SESSION) == EventPage((), 0, more=False)


@READING.of_one_store
async def events_of_no_session_are_an_error(store: Store) -> None:
    with expect_refusal(UnknownId):
        await store.events("ses_none")


@READING.of_one_store
async def a_cursor_is_exclusive(store: Store) -> None:
    await _ten_events(store)
    assert numbers(await store.events(SESSION, after=7)) == [8, 9, 10]
    assert numbers(await store.events(SESSION, after=10)) == []
    assert (await store.events(SESSION, after=99)).last == 99


@READING.of_one_store
async def until_is_inclusive(store: Store) -> None:
    await _ten_events(store)
    assert numbers(await store.events(SESSION, after=2, until=4)) == [3, 4]
    assert (await store.events(SESSION, until=4)).last == 4
    assert (await store.events(SESSION, until=40)).last == 10


@READING.of_one_store
async def pages_join_without_gap_or_double(store: Store) -> None:
    await _ten_events(store)
    for limit in (1, 3, 10, 11):
        read: list[int] = []
        after, more = 0, True
        while more:
            page = await store.events(SESSION, after=after, limit=limit)
            assert len(page.rows) <= limit
            read += numbers(page)
            after, more = page.last, page.more
        assert read == list(range(1, 11))


@READING.of_one_store
async def a_full_page_says_whether_there_is_more(store: Store) -> None:
    await _ten_events(store)
    assert (await store.events(SESSION, limit=9)).more
    assert not (await store.events(SESSION, limit=10)).more


@READING.of_one_store
async def events_are_filtered_by_run(store: Store) -> None:
    await _ten_events(store)
    assert numbers(await store.events(SESSION, run_id="run_x")) == [1, 4, 7, 10]
    assert numbers(await store.events(SESSION, run_id="run_none")) == []


@READING.of_one_store
async def events_are_filtered_by_type(store: Store) -> None:
    await _ten_events(store)
    assert numbers(await store.events(SESSION, types=["a"])) == [2, 4, 6, 8, 10]
    assert numbers(await store.events(SESSION, types=["a", "b", "c"])) == list(range(1, 11))
    assert numbers(await store.events(SESSION, types=[])) == []


@READING.of_one_store
async def cursor_filters_and_limit_compose(store: Store) -> None:
    await _ten_events(store)
    page = await store.events(SESSION, after=1, until=9, run_id="run_x", types=["a", "b"], limit=1)
    assert (numbers(page), page.last, page.more) == ([4], 4, True)
    page = await store.events(SESSION, after=4, until=9, run_id="run_x", types=["b"], limit=1)
    assert (numbers(page), page.last, page.more) == ([7], 9, False)


@READING.of_one_store
async def a_page_says_how_far_it_looked(store: Store) -> None:
    await _ten_events(store)
    page = await store.events(SESSION, types=["none"])
    assert page == EventPage((), 10, more=False)


@READING.of_one_store
async def large_records_make_shorter_pages(store: Store) -> None:
    await new_session(store)
    body = bytes(3_000_000)
    for n in range(1, 7):
        await store.append(replace(batch(n, "a"), rows=(EventRow(n, None, "a", body),)))
    read: list[int] = []
    page = await store.events(SESSION)
    assert 1 <= len(page.rows) < 6
    read += numbers(page)
    while page.more:
        page = await store.events(SESSION, after=page.last)
        read += numbers(page)
    assert read == [1, 2, 3, 4, 5, 6]


@READING.of_one_store
async def prune_drops_the_deltas_of_ended_runs_and_nothing_else(store: Store) -> None:
    await new_session(store)
    last = await ended_run(store)
    deltas = ("message_streamed", "reasoning_streamed", "tool_call_updated")
    await store.append(batch(last + 1, "run_started", *deltas, run="run_b", status="running"))
    await store.append(batch(last + 5, *deltas))
    pruned = await store.prune(before=10_000)
    assert (pruned.events, pruned.runs) == (3, 1)
    assert pruned.size > 0
    found = numbers_and_types(await store.events(SESSION))
    assert found[:3] == [(1, "run_started"), (4, "events_pruned"), (5, "run_completed")]
    assert [seq for seq, _ in found[3:]] == list(range(6, 13))
    assert await store.prune(before=10_000) == PruneResult()


@READING.of_one_store
async def prune_leaves_what_ended_later_and_what_is_another_sessions(store: Store) -> None:
    for session_id in (SESSION, OTHER):
        await new_session(store, session_id)
        await ended_run(store, f"run_of_{session_id}", session_id)
    assert (await store.prune(before=2000)).events == 0
    assert (await store.prune(before=2001, session_id=OTHER)).events == 3
    assert numbers(await store.events(SESSION)) == [1, 2, 3, 4, 5]
    assert numbers(await store.events(OTHER)) == [1, 4, 5]


@READING.of_one_store
async def numbers_stay_when_events_are_pruned(store: Store) -> None:
    await new_session(store)
    await ended_run(store)
    await store.prune(before=10_000)
    assert (await store.session(SESSION)).last_seq == 5
    with expect_refusal(NumberTaken):
        await store.append(batch(3, "a"))
    await store.append(batch(6, "a"))
    assert numbers(await store.events(SESSION)) == [1, 4, 5, 6]


@READING.of_one_store
async def a_marker_says_which_numbers_were_pruned(store: Store) -> None:
    await new_session(store)
    await ended_run(store)
    await store.prune(before=10_000)
    (row,) = (await store.events(SESSION, after=1, until=4)).rows
    body = json.loads(row.body)
    assert (body["type"], body["first"], body["last"]) == ("events_pruned", 2, 4)
    assert (body["session_id"], row.seq, row.run_id) == (SESSION, 4, None)


@READING.of_one_store
async def each_unbroken_range_has_one_marker(store: Store) -> None:
    await new_session(store)
    types = ("run_started", *["message_streamed", "reasoning_streamed"] * 2, "message_received")
    await store.append(batch(1, *types, "tool_call_updated", run=RUN, status="running"))
    await store.append(batch(8, "run_completed", run=RUN, status="completed"))
    await store.append(batch(9, "message_streamed", run=RUN))
    await store.prune(before=10_000)
    assert await _markers(store) == [(2, 5), (7, 7), (9, 9)]
    assert numbers(await store.events(SESSION)) == [1, 5, 6, 7, 8, 9]


@READING.of_one_store
async def a_marker_is_cut_where_the_range_is(store: Store) -> None:
    await new_session(store)
    await ended_run(store)
    await store.prune(before=10_000)
    assert await _markers(store, after=2) == [(3, 4)]
    assert await _markers(store, until=3) == [(2, 3)]
    assert await _markers(store, after=4) == []


@READING.of_one_store
async def a_marker_counts_as_one_row_of_a_page(store: Store) -> None:
    await new_session(store)
    await ended_run(store)
    await store.prune(before=10_000)
    page = await store.events(SESSION, limit=2)
    assert (numbers(page), page.last, page.more) == ([1, 4], 4, True)
    assert numbers(await store.events(SESSION, after=page.last)) == [5]


@READING.of_one_store
async def a_filter_shows_markers_for_what_it_would_have_shown(store: Store) -> None:
    await new_session(store)
    both = ("message_streamed", "reasoning_streamed")
    await store.append(batch(1, "run_started", *both, run="run_x", status="running"))
    await store.append(batch(4, "run_started", *both, run="run_y", status="running"))
    await store.append(batch(7, *both, run="run_x"))
    await store.append(batch(9, "run_failed", run="run_x", status="failed"))
    await store.append(batch(10, "run_failed", run="run_y", status="failed"))
    await store.prune(before=10_000)
    assert await _markers(store) == [(2, 3), (5, 8)]
    assert await _markers(store, run_id="run_x") == [(2, 3), (7, 8)]
    assert await _markers(store, run_id="run_y") == [(5, 6)]
    assert await _markers(store, types=["run_started"]) == []
    assert await _markers(store, types=["message_streamed"]) == [(2, 2), (5, 5), (7, 7)]
    assert await _markers(store, run_id="run_x", types=["reasoning_streamed"]) == [(3, 3), (8, 8)]


async def _markers(
    store: Store,
    *,
    after: int = 0,
    until: int | None = None,
    run_id: str | None = None,
    types: list[str] | None = None,
) -> list[tuple[int, int]]:
    page = await store.events(SESSION, after=after, until=until, run_id=run_id, types=types)
    bodies = [json.loads(row.body) for row in page.rows if row.type == "events_pruned"]
    return [(body["first"], body["last"]) for body in bodies]
