"""Claude Code through a manager with a store on disk."""

import gc
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Final

import trio

from benchmarks.agent_setup import HI, LAPS, PIECES, SLOW_TEXT, AgentSetup, long_text, scripted
from benchmarks.claude.environment import claude_setup
from benchmarks.effort import Effort, Figures, Stopwatch, cpu, rss_kib
from benchmarks.process.stopwatch import Laps
from sessionmgr.manager import RunHandle, SessionHandle, open_manager
from sessionmgr.model import Json, RunStatus
from sessionmgr_adapters.claude import ClaudeAdapter

IN_A_TOOL: Final = scripted(
    {"do": "call", "tool": "shell", "input": {"command": "trap '' TERM; sleep 1000; true"}}
)
AT_ONCE: Final = 5


class ClaudeBench:
    """A manager with Claude Code."""

    def __init__(self, setup: AgentSetup, manager_session: SessionHandle) -> None:
        self._scene = setup
        self.session = manager_session

    async def submit(self, prompt: str, **options: Json) -> RunHandle:
        """Start a run."""
        given: dict[str, Json] = {"command": [self._scene.program], **options}
        return await self.session.submit(prompt, options=given)

    async def turn(self, prompt: str = HI, **options: Json) -> None:
        """Run a prompt to its end."""
        run = await self.submit(prompt, **options)
        result = await run.result()
        assert result.status is RunStatus.COMPLETED, result.failure


@asynccontextmanager
async def open_bench(count: int = 1) -> AsyncGenerator[list[ClaudeBench], None]:
    """Open a manager with so many sessions."""
    with claude_setup() as setup, tempfile.TemporaryDirectory() as directory:
        async with open_manager(
            store=Path(directory, "runs.db"), adapters={"claude": ClaudeAdapter}, environ=setup.env
        ) as manager:
            yield [
                ClaudeBench(
                    setup,
                    await manager.open_session(
                        "claude", cwd=setup.work, permission_mode="full_auto"
                    ),
                )
                for _ in range(count)
            ]


async def _until(run: RunHandle, kind: str) -> None:
    async for event in run:
        if event.type == kind:
            return


def turns(effort: Effort) -> Figures:
    """Run prompts in a child that is kept; ms."""
    return trio.run(_turns, effort)


async def _turns(effort: Effort) -> Figures:
    first, warm, interrupted, cancelled = Laps(), Laps(), Laps(), Laps()
    repeats = effort.repeats(LAPS)
    async with open_bench(repeats + 1) as (stand, *others):
        for other in others:
            with first.lap():
                run = await other.submit(HI, keep=False)
                await _until(run, "run_started")
            await run.result()
        await stand.turn()
        for _ in range(effort.population(200)):
            with warm.lap():
                await stand.turn()
        for prompt, sign, laps, times in (
            (SLOW_TEXT, "message_streamed", interrupted, repeats),
            (IN_A_TOOL, "tool_call_started", cancelled, effort.repeats(5)),
        ):
            for _ in range(times):
                run = await stand.submit(prompt)
                await _until(run, sign)
                with laps.lap():
                    run.cancel()
                    await run.result()
    return {
        "first": first.median,
        "turn": warm.median,
        "interrupt": interrupted.median,
        "cancel": cancelled.median,
    }


def one_shots(effort: Effort) -> Figures:
    """Run each prompt in a child of its own, from its start to its end; ms."""

    async def main() -> Figures:
        laps = Laps()
        repeats = effort.repeats(8)
        async with open_bench(repeats) as stands:
            for stand in stands:
                with laps.lap():
                    await stand.turn(keep=False)
        return {"run": laps.median}

    return trio.run(main)


async def _read_pieces(run: RunHandle) -> int:
    """Read a run's events to their end, and return the number of pieces of text."""
    pieces = 0
    async for event in run:
        pieces += event.type == "message_streamed"
    result = await run.result()
    assert result.status is RunStatus.COMPLETED, result.failure
    return pieces


def stream(effort: Effort) -> Figures:
    """Read a long text, event by event; CPU of our process, in µs per piece."""

    async def main() -> Figures:
        pieces = effort.operations(PIECES)
        costs: list[float] = []
        async with open_bench() as (stand,):
            await stand.turn()
            for _ in range(effort.repeats(3)):
                watch = Stopwatch(cpu)
                with watch:
                    found = await _read_pieces(await stand.submit(long_text(pieces)))
                assert found == pieces, f"{found} of {pieces} pieces arrived"
                costs.append(watch.micros / pieces)
        return {"piece": median(costs)}

    return trio.run(main)


def memory(effort: Effort) -> Figures:
    """Measure our memory per session whose child is kept."""

    async def main() -> Figures:
        count = effort.repeats(AT_ONCE)
        async with open_bench(1 + count) as (warm, *others):
            await warm.turn()
            await warm.turn(keep=False)  # its child has ended
            gc.collect()
            before = rss_kib()
            for stand in others:
                await stand.turn()
            gc.collect()
            return {"kib": (rss_kib() - before) / count}

    return trio.run(main)
