"""Costs of sessions and runs: start and end one of many, and keep one idle."""

import gc
from typing import ClassVar, Final

import trio

from benchmarks.effort import Effort, Figures, Stopwatch, adopt_gc_policy, cpu, rss_kib
from benchmarks.manager.end_to_end import open_bench_manager
from sessionmgr.adapter import ProviderAdapter, RunContext
from sessionmgr.manager import Manager, RunHandle
from sessionmgr.model import MessageReceived, RunStarted, RunStatus
from sessionmgr.testing.scripted_provider import scripted

RUNS: Final = 2_000
"""Minimum number of runs in one process."""
STARTERS: Final = 100
"""Number of callers that start runs."""


class ShortAdapter(ProviderAdapter):
    """An adapter that answers with one word as soon as an event releases it."""

    name: ClassVar[str] = "short"
    go: ClassVar[trio.Event]

    async def run(self, run: RunContext) -> None:
        await run.emit(RunStarted(provider_session_id=run.session_id))
        await self.go.wait()
        await run.emit(MessageReceived(content=run.prompt))
        await run.finish(stop_reason="end_turn")


def runs(effort: Effort, at_once: int) -> Figures:
    """Run sessions at once, one run each, from start to terminal status.

    The garbage collector is set as for a large population.
    """
    adopt_gc_policy()
    at_once = min(at_once, effort.population(at_once) if at_once > 1 else 1)
    return trio.run(_runs, effort, at_once)


def scripted_runs(effort: Effort, at_once: int) -> Figures:
    """The same with the scripted provider, which echoes its prompt.

    The garbage collector keeps Python's default thresholds, as for a user.
    """
    return trio.run(_scripted_runs, effort, effort.population(at_once))


async def _scripted_runs(effort: Effort, at_once: int) -> Figures:
    watch = Stopwatch(cpu)
    rounds = max(effort.operations(RUNS) // at_once, 1)
    async with open_bench_manager(scripted("scripted"), sqlite=False) as manager:
        await _scripted_together(manager, at_once, Stopwatch(cpu))  # warm-up
        for _ in range(rounds):
            await _scripted_together(manager, at_once, watch)
    return {"run": watch.micros / (rounds * at_once)}


async def _scripted_together(manager: Manager, at_once: int, watch: Stopwatch) -> None:
    async def one() -> None:
        session = await manager.open_session("scripted")
        async with session.start("hello") as run:
            result = await run.result()
        assert result.text == "hello"

    with watch:
        async with trio.open_nursery() as nursery:
            for _ in range(at_once):
                nursery.start_soon(one)


async def _runs(effort: Effort, at_once: int) -> Figures:
    watch = Stopwatch(cpu)
    rounds = max(effort.operations(RUNS) // at_once, 1)
    async with open_bench_manager(ShortAdapter, sqlite=False) as manager:
        await _together(manager, 1, Stopwatch(cpu))  # warm-up
        for _ in range(rounds):
            await _together(manager, at_once, watch)
    return {"run": watch.micros / (rounds * at_once)}


async def _together(manager: Manager, count: int, watch: Stopwatch) -> None:
    ShortAdapter.go = trio.Event()
    with watch:
        started = await _start(manager, count)
        ShortAdapter.go.set()
        for run in started:
            result = await run.result()
            assert result.status is RunStatus.COMPLETED


async def _start(manager: Manager, count: int) -> list[RunHandle]:
    """Start runs in sessions of their own, several at a time, as callers do."""
    started: list[RunHandle] = []

    async def start(some: int) -> None:
        for _ in range(some):
            session = await manager.open_session(ShortAdapter.name)
            started.append(await session.submit("hello"))

    starters = min(STARTERS, count)
    async with trio.open_nursery() as nursery:
        for number in range(starters):
            nursery.start_soon(start, count // starters + (number < count % starters))
    return started


def waiting(effort: Effort, size: int) -> Figures:
    """Measure the memory of sessions with waiting runs, in SQLite, and the time of their start."""
    return trio.run(_parked, effort, size)


async def _parked(effort: Effort, size: int) -> Figures:
    ShortAdapter.go = trio.Event()
    count = effort.population(size)
    watch = Stopwatch(cpu)
    async with open_bench_manager(ShortAdapter) as manager:
        adopt_gc_policy()
        held = await _start(manager, STARTERS)
        gc.collect()
        before = rss_kib()
        with watch:
            held += await _start(manager, count)
        gc.collect()
        figures = {"kib": (rss_kib() - before) / count, "start": watch.micros / count}
        ShortAdapter.go.set()
        for run in held:
            await run.result()
    return figures
