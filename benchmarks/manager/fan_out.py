"""Cost per event of one more subscriber, of a hundred on one session."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar, Final, TypeAlias

import trio
import trio.testing

from benchmarks.effort import Effort, Figures, Stopwatch
from benchmarks.manager.end_to_end import open_bench_manager
from sessionmgr.adapter import ProviderAdapter, RunContext
from sessionmgr.manager import Manager
from sessionmgr.model import TERMINAL_TYPES, MessageStreamed, RunStarted

Follow: TypeAlias = Callable[[Manager, str], Awaitable[None]]

FOLLOWERS: Final = 100
EVENTS: Final = 10_000
BATCH: Final = 220
"""The number of lines in one read of a pipe when the reader is behind."""


class StreamingAdapter(ProviderAdapter):
    """An adapter that sends as many pieces as the prompt says, by the read, once it is released."""

    name: ClassVar[str] = "streaming"
    go: ClassVar[trio.Event]

    async def run(self, run: RunContext) -> None:
        await run.emit(RunStarted(provider_session_id=run.session_id))
        await self.go.wait()
        left = int(run.prompt)
        while left:
            batch = min(left, BATCH)
            events = [MessageStreamed(delta="x" * 100) for _ in range(batch)]
            run.emit_nowait(*events, size=batch * 300)
            left -= batch
            await run.room()
        await run.finish(stop_reason="end_turn")


def followers(effort: Effort) -> Figures:
    """Measure a hundred subscribers that read batches, without the cost of the events."""
    return trio.run(_main, effort, _by_the_batch)


def one_by_one(effort: Effort) -> Figures:
    """The same with subscribers that read event by event."""
    return trio.run(_main, effort, _one_by_one)


async def _main(effort: Effort, follow: Follow) -> Figures:
    alone = await effort.time_part(partial(_once, follow, 0), EVENTS)
    followed = await effort.time_part(partial(_once, follow, FOLLOWERS), EVENTS)
    return {"event": (followed - alone) / FOLLOWERS}


async def _once(follow: Follow, count: int, watch: Stopwatch, events: int) -> None:
    StreamingAdapter.go = trio.Event()
    async with open_bench_manager(StreamingAdapter, sqlite=False) as manager:
        session = await manager.open_session(StreamingAdapter.name)
        run = await session.submit(str(events))
        async with trio.open_nursery() as nursery:
            for _ in range(count):
                nursery.start_soon(follow, manager, session.id)
            await trio.testing.wait_all_tasks_blocked()
            with watch:
                StreamingAdapter.go.set()
                await run.result()
                while len(nursery.child_tasks):
                    await trio.testing.wait_all_tasks_blocked()


async def _by_the_batch(manager: Manager, session_id: str) -> None:
    cursor = manager.subscribe(session_id)
    while events := await cursor.batch():
        if events[-1].type in TERMINAL_TYPES:
            break


async def _one_by_one(manager: Manager, session_id: str) -> None:
    async for event in manager.subscribe(session_id):
        if event.type in TERMINAL_TYPES:
            break
