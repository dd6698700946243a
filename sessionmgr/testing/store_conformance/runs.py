"""The behaviours of runs: their records, and their one end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.store import AlreadyEnded, AppendInvalid, RunRow
from sessionmgr.testing.store_conformance.behaviour import StoreBehaviourGroup
from sessionmgr.testing.store_conformance.sample_records import (
    OTHER,
    RUN,
    SESSION,
    batch,
    expect_refusal,
    new_session,
    numbers,
)

if TYPE_CHECKING:
    from sessionmgr.store import Store

ENDING: Final = StoreBehaviourGroup()


@ENDING.of_one_store
async def a_run_needs_its_record_when_it_is_new(store: Store) -> None:
    await new_session(store)
    with expect_refusal(AppendInvalid):
        await store.append(batch(1, "run_started", run=RUN))
    await store.append(batch(1, "run_started", run=RUN, status="running"))
    await store.append(batch(2, "message_received", run=RUN))
    assert (await store.run(RUN)).last_seq == 2


@ENDING.of_one_store
async def a_run_belongs_to_one_session(store: Store) -> None:
    await new_session(store)
    await new_session(store, OTHER)
    await store.append(batch(1, "run_started", run=RUN, status="running"))
    with expect_refusal(AppendInvalid):
        await store.append(batch(1, "a", session_id=OTHER, run=RUN, status="running"))


@ENDING.of_one_store
async def an_unknown_status_or_two_records_of_one_run_are_invalid(store: Store) -> None:
    await new_session(store)
    with expect_refusal(AppendInvalid):
        await store.append(batch(1, "run_started", run=RUN, status="jogging"))
    twice = batch(1, "run_started", run=RUN, status="running")
    with expect_refusal(AppendInvalid):
        await store.append(replace(twice, runs=twice.runs * 2))


@ENDING.of_one_store
async def a_runs_record_is_that_of_the_last_batch(store: Store) -> None:
    await new_session(store)
    await store.append(batch(1, "message_sent", run=RUN, status="pending"))
    await store.append(batch(2, "run_started", "a", run=RUN, status="running"))
    run = await store.run(RUN)
    assert (run.status, run.body) == ("running", b"running")
    assert (run.session_id, run.provider) == (SESSION, "echo")
    assert (run.first_seq, run.last_seq, run.terminal_seq, run.ended) == (1, 3, None, None)


@ENDING.of_one_store
async def a_runs_end_is_noted_with_number_and_time(store: Store) -> None:
    await new_session(store)
    whole = batch(1, "run_started", "a", "run_failed", run=RUN, status="failed", at=4711)
    await store.append(whole)
    run = await store.run(RUN)
    assert (run.status, run.terminal_seq, run.ended) == ("failed", 3, 4711)


@ENDING.of_one_store
async def a_second_terminal_in_one_batch_is_refused(store: Store) -> None:
    await new_session(store)
    with expect_refusal(AlreadyEnded):
        await store.append(batch(1, "run_failed", "run_cancelled", run=RUN, status="cancelled"))
    assert numbers(await store.events(SESSION)) == []


@ENDING.of_one_store
async def a_second_terminal_in_a_later_batch_is_refused(store: Store) -> None:
    await new_session(store)
    await store.append(batch(1, "run_paused", run=RUN, status="paused"))
    ends = ("completed", "failed", "cancelled", "timed_out", "rate_limited", "paused")
    for status in ends:
        with expect_refusal(AlreadyEnded):
            await store.append(batch(2, f"run_{status}", run=RUN, status=status))
    assert (await store.run(RUN)).status == "paused"


@ENDING.of_one_store
async def a_terminal_status_never_changes(store: Store) -> None:
    await new_session(store)
    await store.append(batch(1, "run_cancelled", run=RUN, status="cancelled"))
    for status in ("running", "pending", "completed"):
        with expect_refusal(AlreadyEnded):
            await store.append(batch(2, "process_exited", run=RUN, status=status))
    assert (await store.run(RUN)).status == "cancelled"


@ENDING.of_one_store
async def what_comes_after_the_end_is_kept_and_may_change_the_record(store: Store) -> None:
    await new_session(store)
    await store.append(batch(1, "run_cancelled", run=RUN, status="cancelled", at=3000))
    late = batch(2, "process_exited", run=RUN, at=9000)
    await store.append(replace(late, runs=(RunRow(RUN, "cancelled", b"with exit"),)))
    run = await store.run(RUN)
    assert (run.body, run.last_seq, run.terminal_seq, run.ended) == (b"with exit", 2, 1, 3000)


@ENDING.of_one_store
async def a_terminal_event_and_its_status_come_together(store: Store) -> None:
    await new_session(store)
    await store.append(batch(1, "run_started", run=RUN, status="running"))
    contradictions = [
        batch(2, "run_completed", run=RUN),
        batch(2, "run_completed", run=RUN, status="running"),
        batch(2, "run_completed", run=RUN, status="failed"),
        batch(2, "message_received", run=RUN, status="completed"),
        batch(2, "run_completed"),
    ]
    for each in contradictions:
        with expect_refusal(AppendInvalid):
            await store.append(each)
    assert (await store.run(RUN)).status == "running"
