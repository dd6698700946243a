"""The whole path: children, adapter, recorder, SQLite, and two subscribers per session."""

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio

from benchmarks.effort import Effort, Figures, Stopwatch
from benchmarks.manager.claude import MeasuredAdapter
from benchmarks.wire.measured_frame import write_lines
from benchmarks.wire.sessionmgr_pipe import EVENTS
from sessionmgr.adapter import ProviderAdapter
from sessionmgr.manager import Manager, open_manager
from sessionmgr.model import TERMINAL_TYPES, RunStatus

SUBSCRIBERS: Final = 2


@asynccontextmanager
async def open_bench_manager(
    adapter: type[ProviderAdapter], *, sqlite: bool = True
) -> AsyncGenerator[Manager, None]:
    """Open a manager with a store in a file or in memory."""
    with tempfile.TemporaryDirectory(prefix="sessionmgr-benchmark-") as directory:
        store = Path(directory, "store.db") if sqlite else None
        async with open_manager(adapters={adapter.name: adapter}, store=store) as manager:
            yield manager


def through_sqlite(effort: Effort, sessions: int, events: int = EVENTS) -> Figures:
    """Run sessions that send so many events together, with two subscribers each."""
    return trio.run(_main, effort, sessions, events, SUBSCRIBERS, True)


def through_memory(effort: Effort, sessions: int, events: int = EVENTS) -> Figures:
    """The same with a store in memory."""
    return trio.run(_main, effort, sessions, events, SUBSCRIBERS, False)


def without_subscribers(effort: Effort, sessions: int, events: int = EVENTS) -> Figures:
    """The same in SQLite, without subscribers."""
    return trio.run(_main, effort, sessions, events, 0, True)


def underway(effort: Effort, sessions: int) -> Figures:
    """Measure an event without the start and the end of its session."""
    return trio.run(_underway, effort, sessions)


async def _underway(effort: Effort, sessions: int) -> Figures:
    once = partial(_once, sessions, SUBSCRIBERS, True)
    all_in_all = await effort.time_part(once, EVENTS)
    with_one_event = await effort.time_part(once, sessions)
    share = effort.operations(sessions) / effort.operations(EVENTS)
    return {"event": all_in_all - with_one_event * share}


async def _main(
    effort: Effort, sessions: int, events: int, subscribers: int, sqlite: bool
) -> Figures:
    once = partial(_once, sessions, subscribers, sqlite)
    return {"event": await effort.time_part(once, events)}


async def _once(
    sessions: int, subscribers: int, sqlite: bool, watch: Stopwatch, events: int
) -> None:
    each = max(events // sessions, 1)
    with write_lines(each) as path:
        async with open_bench_manager(MeasuredAdapter, sqlite=sqlite) as manager:
            with watch:
                async with trio.open_nursery() as nursery:
                    for _ in range(sessions):
                        nursery.start_soon(_session, manager, path, each, subscribers)


async def _session(manager: Manager, path: str, events: int, subscribers: int) -> None:
    session = await manager.open_session(MeasuredAdapter.name)
    run = await session.submit(path)
    async with trio.open_nursery() as nursery:
        for _ in range(subscribers):
            nursery.start_soon(follow_text, manager, session.id, events)
        result = await run.result()
    if result.status is not RunStatus.COMPLETED:
        raise AssertionError(f"{result.status}: {result.failure}")


async def follow_text(manager: Manager, session_id: str, events: int) -> None:
    streamed, is_over = 0, False
    cursor = manager.subscribe(session_id)
    while not is_over:
        # By the batch, as a fast subscriber reads.
        names = [event.type for event in await cursor.batch()]
        streamed += names.count("message_streamed")
        is_over = not TERMINAL_TYPES.isdisjoint(names)
    if streamed != events:
        raise AssertionError(f"{streamed} of {events} events arrived")
