"""From a child's pipe through the port into an inbox and out of it, without recorder and store."""

from collections.abc import Callable
from functools import partial
from typing import Final

import trio

from benchmarks.effort import Effort, Figures, Stopwatch
from benchmarks.manager.claude import CAT, send_events
from benchmarks.wire.measured_frame import write_lines
from benchmarks.wire.sessionmgr_pipe import EVENTS
from sessionmgr.adapter import RunContext, RunSpec
from sessionmgr.manager import Clocks
from sessionmgr.manager.inbox import CommitUrgency, EventBatch, Inbox
from sessionmgr.manager.lazy_launcher import LazyLauncher
from sessionmgr.manager.run_plan import RunPlan, RunRequest
from sessionmgr.manager.session_state import SessionState
from sessionmgr.manager.supervised_run import SupervisedRun
from sessionmgr.manager.timeouts import TimeoutScheduler
from sessionmgr.model import Event, Fidelity, Negotiation, Permission, PermissionMode, Session


class BatchQueue:
    """A queue of batches for one reader, which takes all of them at once."""

    def __init__(self) -> None:
        self._items: list[tuple[Event, ...]] = []
        self._came = trio.Event()

    def put(self, events: tuple[Event, ...]) -> None:
        """Add events."""
        self._items.append(events)
        self._came.set()

    async def take(self) -> list[tuple[Event, ...]]:
        """Wait until the queue is not empty, and take everything."""
        await self._came.wait()
        self._came = trio.Event()
        items, self._items = self._items, []
        return items


PERMISSION: Final = Permission(
    asked=PermissionMode.DEFAULT, effective="default", fidelity=Fidelity.EXACT
)


def pipe(effort: Effort, hops: int) -> Figures:
    """Pass the batches through so many further tasks after the first one that takes them."""

    async def main() -> Figures:
        return {"event": await effort.time_part(partial(_once, hops), EVENTS)}

    return trio.run(main)


async def _once(hops: int, watch: Stopwatch, lines: int) -> None:
    session = Session(id="ses_1", provider="bare", cwd="/")
    live = SessionState(session, stored=False, last_seq=0)
    with write_lines(lines) as path:
        spec = RunSpec(prompt=path, cwd="/", env={}, permission=PERMISSION)
        state = SupervisedRun(
            RunPlan(
                spec=spec,
                clocks=Clocks(close=5.0),
                negotiation=Negotiation(),
                wish=RunRequest(prompt=path),
                secrets=(),
                asked={},
            ),
            live=live,
            timeouts=TimeoutScheduler(),
            run_id="run_1",
            message_id="msg_1",
        )
        run = RunContext(state, spec, LazyLauncher())
        with watch:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send_events, run, (*CAT, path))
                passed = BatchQueue() if hops else None
                nursery.start_soon(_take, live.inbox, passed, lines)
                for left in reversed(range(hops)):
                    assert passed is not None
                    taken, passed = passed, BatchQueue() if left else None
                    nursery.start_soon(_pass_on, taken, passed, lines)


async def take_all(inbox: Inbox, take: Callable[[EventBatch], bool]) -> None:
    """Take items from an inbox, as a recorder does, while `take` returns True.

    Each item counts as stored once it is taken.
    """
    came, wants_more = trio.Event(), True
    inbox.notify = lambda _: came.set()
    while wants_more:
        inbox.urgency = CommitUrgency.NONE
        while (item := inbox.pop()) is not None:
            assert isinstance(item, EventBatch)
            wants_more = take(item)
            inbox.release_bytes(item.size)
        if wants_more:
            await came.wait()
            came = trio.Event()


async def _take(inbox: Inbox, passed: BatchQueue | None, wanted: int) -> None:
    def take(item: EventBatch) -> bool:
        nonlocal wanted
        wanted -= len(item.events)
        if passed is not None:
            passed.put(item.events)
        return wanted > 0

    await take_all(inbox, take)


async def _pass_on(taken: BatchQueue, passed: BatchQueue | None, wanted: int) -> None:
    """Pass the batches on; the last task drops them, as the compared loop does."""
    while wanted > 0:
        for events in await taken.take():
            wanted -= len(events)
            if passed is not None:
                passed.put(events)
