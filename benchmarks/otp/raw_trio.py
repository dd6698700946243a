"""Anchors: the same operations in trio itself, written by hand."""

import gc
from functools import partial

import trio
import trio.testing

from benchmarks.effort import Effort, Figures, Stopwatch, adopt_gc_policy, rss_kib
from benchmarks.otp.population_cycle import PopulationTimes, run_population


class RawCall:
    """A question with a place for its answer: the minimum of a call."""

    __slots__ = ("answer", "answered", "question")

    def __init__(self, question: str) -> None:
        self.question = question
        self.answer = 0
        self.answered = trio.Event()


async def _serve(requests: trio.MemoryReceiveChannel[RawCall]) -> None:
    count = 0
    async for request in requests:
        count += 1
        request.answer = count
        request.answered.set()


async def _ask(requests: trio.MemorySendChannel[RawCall], times: int) -> None:
    for _ in range(times):
        request = RawCall("get")
        await requests.send(request)
        await request.answered.wait()


def call(effort: Effort) -> Figures:
    """Ask a task over a channel of 64 and wait for the Event of its answer."""

    async def main() -> Figures:
        sending, receiving = trio.open_memory_channel[RawCall](64)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_serve, receiving)
            async with sending:
                return {"call": await effort.time(partial(_ask, sending), 10_000)}

    return trio.run(main)


def floor(effort: Effort) -> Figures:
    """Wake a task and be woken by it: the two turns that every call between tasks needs."""

    async def main() -> Figures:
        me, parked = trio.lowlevel.current_task(), list[trio.lowlevel.Task]()

        async def answer() -> None:
            parked.append(trio.lowlevel.current_task())
            while True:
                await trio.lowlevel.wait_task_rescheduled(_release_all)
                trio.lowlevel.reschedule(me)

        async def ask(times: int) -> None:
            for _ in range(times):
                trio.lowlevel.reschedule(parked[0])
                await trio.lowlevel.wait_task_rescheduled(_release_all)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            await trio.testing.wait_all_tasks_blocked()
            figures = {"call": await effort.time(ask, 10_000)}
            nursery.cancel_scope.cancel()
        return figures

    return trio.run(main)


def _release_all(_: object) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.SUCCEEDED


def item(effort: Effort) -> Figures:
    """Pass items to a task over a channel of 64, as fast as it takes them."""

    async def consume(items: trio.MemoryReceiveChannel[int], times: int) -> None:
        for _ in range(times):
            await items.receive()

    async def hand_over(times: int) -> None:
        sending, receiving = trio.open_memory_channel[int](64)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(consume, receiving, times)
            for each in range(times):
                await sending.send(each)

    async def main() -> Figures:
        return {"item": await effort.time(hand_over, 20_000)}

    return trio.run(main)


async def _nothing() -> None:
    pass


def nursery(effort: Effort) -> Figures:
    """Open a nursery, start a child that ends at once, leave."""
    return trio.run(_nursery, effort)


def nursery_for_many(effort: Effort) -> Figures:
    """The same with the garbage collector set as for a large population."""
    adopt_gc_policy()
    return trio.run(_nursery, effort)


async def _nursery(effort: Effort) -> Figures:

    async def one_by_one(times: int) -> None:
        for _ in range(times):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_nothing)

    return {"one_child": await effort.time(one_by_one, 5_000)}


def cancel(effort: Effort) -> Figures:
    """Open a nursery, start a child, cancel it once it has parked, leave."""

    async def one_by_one(times: int) -> None:
        for _ in range(times):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep_forever)
                await trio.lowlevel.checkpoint()  # it parks
                nursery.cancel_scope.cancel()

    async def main() -> Figures:
        return {"one_child": await effort.time(one_by_one, 5_000)}

    return trio.run(main)


async def _park(*, task_status: trio.TaskStatus[None]) -> None:
    task_status.started()
    await trio.sleep_forever()


def start(effort: Effort) -> Figures:
    """Start children that report that they run and stay: `nursery.start`, 1000 at a time.

    Only the starts are timed, not the end of the thousand.
    """

    async def thousand(watch: Stopwatch, times: int) -> None:
        async with trio.open_nursery() as nursery:
            with watch:
                for _ in range(times):
                    await nursery.start(_park)
            nursery.cancel_scope.cancel()

    async def main() -> Figures:
        return {"start": await effort.time_part(thousand, 1_000)}

    return trio.run(main)


async def _park_in_scope() -> None:
    with trio.CancelScope():
        await trio.sleep_forever()


def population(effort: Effort, size: int) -> Figures:
    """Start tasks that park in a scope of their own, then cancel them all at once."""

    async def once(life: PopulationTimes, people: int) -> None:
        gc.collect()
        async with trio.open_nursery() as nursery:
            with life.starting:
                for _ in range(people):
                    nursery.start_soon(_park_in_scope)
                await trio.testing.wait_all_tasks_blocked()
            gc.collect()
            life.stopping.start()
            nursery.cancel_scope.cancel()
        life.stopping.stop()

    return trio.run(run_population, effort, size, once)


def queue(effort: Effort, length: int) -> Figures:
    """Fill a channel, then let a task empty it."""

    async def consume(items: trio.MemoryReceiveChannel[int], times: int) -> None:
        for _ in range(times):
            await items.receive()

    async def fill_and_empty(times: int) -> None:
        sending, receiving = trio.open_memory_channel[int](times)
        for each in range(times):
            sending.send_nowait(each)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(consume, receiving, times)

    async def main() -> Figures:
        adopt_gc_policy()
        return {"item": await effort.time(fill_and_empty, length)}

    return trio.run(main)


def memory(effort: Effort) -> Figures:
    """Measure the memory of 10 000 tasks that park in a scope of their own."""
    people = effort.population(10_000)

    async def main() -> Figures:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_park_in_scope)
            await trio.testing.wait_all_tasks_blocked()
            gc.collect()
            before = rss_kib()
            for _ in range(people):
                nursery.start_soon(_park_in_scope)
            await trio.testing.wait_all_tasks_blocked()
            gc.collect()
            weight = (rss_kib() - before) / people
            nursery.cancel_scope.cancel()
        return {"kib": weight}

    return trio.run(main)
