"""Codex through a manager with a store on disk."""

import os
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Final

import trio

from benchmarks.agent_setup import HI, LAPS, PIECES, SLOW_TEXT, AgentSetup, long_text, scripted
from benchmarks.codex.environment import codex_setup
from benchmarks.codex.process_memory import AT_ONCE, tree_mib
from benchmarks.effort import Effort, Figures, Stopwatch, cpu
from benchmarks.process.stopwatch import Laps
from sessionmgr.manager import Manager, RunHandle, SessionHandle, open_manager
from sessionmgr.model import RunStatus
from sessionmgr_adapters.codex import CodexAdapter

IN_A_TOOL: Final = scripted(
    {"do": "call", "tool": "shell", "input": {"command": "trap '' TERM; sleep 1000; true"}}
)


class CodexBench:
    """A manager with Codex."""

    def __init__(self, setup: AgentSetup, manager: Manager) -> None:
        self._scene = setup
        self._manager = manager

    async def session(self) -> SessionHandle:
        """Open a session."""
        return await self._manager.open_session(
            "codex", cwd=self._scene.work, permission_mode="plan"
        )

    async def submit(
        self, session: SessionHandle, prompt: str = HI, env: Mapping[str, str] | None = None
    ) -> RunHandle:
        """Start a run; another environment needs another server."""
        return await session.submit(
            prompt, options={"command": [self._scene.program]}, env=env or {}
        )

    async def turn(self, session: SessionHandle, prompt: str = HI) -> None:
        """Run a prompt to its end."""
        result = await (await self.submit(session, prompt)).result()
        assert result.status is RunStatus.COMPLETED, result.failure


@asynccontextmanager
async def open_bench() -> AsyncGenerator[CodexBench, None]:
    """Open a manager."""
    with codex_setup() as setup, tempfile.TemporaryDirectory() as directory:
        async with open_manager(
            store=Path(directory, "runs.db"), adapters={"codex": CodexAdapter}, environ=setup.env
        ) as manager:
            yield CodexBench(setup, manager)


async def _until(run: RunHandle, kind: str) -> None:
    async for event in run:
        if event.type == kind:
            return


def turns(effort: Effort) -> Figures:
    """Run prompts, from the start of a server and in an existing session; ms."""
    return trio.run(_turns, effort)


async def _turns(effort: Effort) -> Figures:
    first, warm, interrupted, cancelled = Laps(), Laps(), Laps(), Laps()
    repeats = effort.repeats(LAPS)
    async with open_bench() as stand:
        session = await stand.session()
        await stand.turn(session)
        for number in range(repeats):
            other = await stand.session()
            with first.lap():
                run = await stand.submit(other, env={"NUMBER": str(number)})
                await _until(run, "run_started")
            await run.result()
        for _ in range(effort.population(100)):
            with warm.lap():
                await stand.turn(session)
        for prompt, sign, laps, times in (
            (SLOW_TEXT, "message_streamed", interrupted, repeats),
            (IN_A_TOOL, "tool_call_started", cancelled, effort.repeats(5)),
        ):
            for _ in range(times):
                run = await stand.submit(session, prompt)
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
        async with open_bench() as stand:
            session = await stand.session()
            await stand.turn(session)
            for _ in range(effort.repeats(3)):
                watch = Stopwatch(cpu)
                with watch:
                    found = await _read_pieces(await stand.submit(session, long_text(pieces)))
                assert found == pieces, f"{found} of {pieces} pieces arrived"
                costs.append(watch.micros / pieces)
        return {"piece": median(costs)}

    return trio.run(main)


def many(effort: Effort) -> Figures:
    """Run a turn in each of many sessions at once: memory of a thread, and ms for all."""

    async def main() -> Figures:
        count = effort.repeats(AT_ONCE)
        async with open_bench() as stand:
            laps = Laps()
            sessions = [await stand.session() for _ in range(count)]
            with laps.lap():
                async with trio.open_nursery() as nursery:
                    for session in sessions:
                        nursery.start_soon(stand.turn, session)
            return {"mib": tree_mib(os.getpid(), "codex") / count, "start": laps.median / count}

    return trio.run(main)
