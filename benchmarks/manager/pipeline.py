"""From a child's pipe through the port to who takes the batches: no keeper yet, and no store."""

from functools import partial
from typing import Final

import trio

from benchmarks.effort import Effort, Figures, Stopwatch
from benchmarks.manager.claude import CAT, tell
from benchmarks.wire.frame import written
from benchmarks.wire.ours import EVENTS
from sessionmgr.adapter import RunContext, RunSpec
from sessionmgr.adapter.inbox import Inbox, Urgency
from sessionmgr.adapter.run_control import Arrived, RunControl
from sessionmgr.manager.launching import LateLauncher
from sessionmgr.model import Event, Fidelity, Permission, PermissionMode


class Batches:
    """What is handed on: all there is at once, to one reader."""

    def __init__(self) -> None:
        self._items: list[tuple[Event, ...]] = []
        self._came = trio.Event()

    def put(self, events: tuple[Event, ...]) -> None:
        """Add events."""
        self._items.append(events)
        self._came.set()

    async def take(self) -> list[tuple[Event, ...]]:
        """Wait until there is something, and take it all."""
        await self._came.wait()
        self._came = trio.Event()
        items, self._items = self._items, []
        return items


PERMISSION: Final = Permission(
    asked=PermissionMode.DEFAULT, effective="default", fidelity=Fidelity.EXACT
)


def pipe(effort: Effort, hops: int) -> Figures:
    """Have the batches pass through so many more hands after the one that takes them first."""

    async def main() -> Figures:
        return {"event": await effort.time_part(partial(_once, hops), EVENTS)}

    return trio.run(main)


async def _once(hops: int, watch: Stopwatch, lines: int) -> None:
    arrivals = Inbox[object]()
    control = RunControl(
        run_id="run_1", session_id="ses_1", provider="bare", intake=arrivals, grace=5.0
    )
    with written(lines) as path:
        spec = RunSpec(prompt=path, cwd="/", env={}, permission=PERMISSION)
        run = RunContext(control, spec, LateLauncher())
        with watch:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(tell, run, (*CAT, path))
                passed = Batches() if hops else None
                nursery.start_soon(_take, arrivals, passed, lines)
                for left in reversed(range(hops)):
                    assert passed is not None
                    taken, passed = passed, Batches() if left else None
                    nursery.start_soon(_pass_on, taken, passed, lines)


async def _take(arrivals: Inbox[object], passed: Batches | None, wanted: int) -> None:
    came = trio.Event()
    arrivals.notify = lambda _: came.set()
    while wanted > 0:
        arrivals.urgency = Urgency.NONE
        while (item := arrivals.take()) is not None:
            assert isinstance(item, Arrived)
            wanted -= len(item.events)
            if passed is not None:
                passed.put(item.events)
            arrivals.stored(item.size)
        if wanted > 0:
            await came.wait()
            came = trio.Event()


async def _pass_on(taken: Batches, passed: Batches | None, wanted: int) -> None:
    """Take the batches; the last one lets go of them, as the loop they are compared with does."""
    while wanted > 0:
        for events in await taken.take():
            wanted -= len(events)
            if passed is not None:
                passed.put(events)
