"""The fleet in a manager with SQLite: each session has one subscriber that iterates its run."""

import time
from collections.abc import Callable
from statistics import median
from typing import ClassVar, Final

import trio

from benchmarks.effort import Effort, Figures
from benchmarks.fleet.pieces import BenchFleet, fleet
from benchmarks.manager.end_to_end import open_bench_manager
from sessionmgr.adapter import NATIVE, Capabilities, ProviderAdapter, RunContext
from sessionmgr.manager import Manager
from sessionmgr.model import MessageStreamed, RunStarted

LENGTH: Final = 299
"""Bytes of the line of a piece."""
SILENCE: Final = 0.5
TIMES: Final = 30


class PacedAdapter(ProviderAdapter):
    """An adapter that sends the pieces of the fleet's sources by the read."""

    name: ClassVar[str] = "paced"
    capabilities: ClassVar[Capabilities] = Capabilities(streaming=NATIVE)
    fleet: ClassVar[BenchFleet]

    async def run(self, run: RunContext) -> None:
        await run.emit(RunStarted(provider_session_id=run.session_id))
        await self.fleet.source(int(run.prompt), _send_pieces(run), run.room)
        await run.finish(stop_reason="end_turn")


def _send_pieces(run: RunContext) -> Callable[[str], None]:
    def tell(piece: str) -> None:
        run.emit_nowait(MessageStreamed(delta=piece), size=LENGTH)

    return tell


def pieces(effort: Effort, sessions: int) -> Figures:
    """Send pieces in so many sessions, and follow each of them."""
    return trio.run(_main, fleet(effort, sessions))


async def _main(measured: BenchFleet) -> Figures:
    PacedAdapter.fleet = measured
    async with open_bench_manager(PacedAdapter) as manager, trio.open_nursery() as nursery:
        for number in range(measured.sessions):
            nursery.start_soon(_follow, manager, measured, number)
    return measured.figures()


async def _follow(manager: Manager, measured: BenchFleet, number: int) -> None:
    session = await manager.open_session(PacedAdapter.name)
    async with session.start(str(number)) as run:
        async for event in run:
            if isinstance(event, MessageStreamed):
                measured.receive(event.delta)
            elif isinstance(event, RunStarted):
                measured.ready()


class RareAdapter(ProviderAdapter):
    """An adapter that sends a piece after each silence."""

    name: ClassVar[str] = "rare"
    capabilities: ClassVar[Capabilities] = Capabilities(streaming=NATIVE)

    async def run(self, run: RunContext) -> None:
        await run.emit(RunStarted(provider_session_id=run.session_id))
        tell = _send_pieces(run)
        for _ in range(int(run.prompt)):
            await trio.sleep(SILENCE)
            tell(str(time.perf_counter_ns()))
            await run.room()
        await run.finish(stop_reason="end_turn")


def after_silence(effort: Effort) -> Figures:
    """Measure the delay of a piece after a silence, in the only session; ms."""

    async def main() -> Figures:
        async with open_bench_manager(RareAdapter) as manager:
            session = await manager.open_session(RareAdapter.name)
            async with session.start(str(effort.repeats(TIMES))) as run:
                late = [
                    (time.perf_counter_ns() - int(event.delta)) / 1e6
                    async for event in run
                    if isinstance(event, MessageStreamed)
                ]
        return {"p50": median(late)}

    return trio.run(main)
