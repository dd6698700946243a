"""openai-codex with the same turns, on asyncio, in an interpreter of its own."""

import asyncio  # noqa: TID251  # a contestant
import time
from importlib import import_module
from statistics import median
from typing import Any, cast

from benchmarks.agent_setup import HI, LAPS, PIECES, SLOW_TEXT, AgentSetup, long_text
from benchmarks.codex.environment import codex_setup
from benchmarks.effort import Effort, Figures, Stopwatch, cpu
from benchmarks.process.stopwatch import Laps


def _sdk() -> Any:  # the type checkers' environment may lack it
    return cast("Any", import_module("openai_codex"))


def _client(sdk: Any, setup: AgentSetup) -> Any:
    return sdk.AsyncCodex(sdk.CodexConfig(codex_bin=setup.program, env=setup.env))


async def _thread(sdk: Any, client: Any, setup: AgentSetup) -> Any:
    return await client.thread_start(cwd=str(setup.work), sandbox=sdk.Sandbox.read_only)


async def _until(turn: Any, method: str) -> None:
    async for event in turn.stream():
        if event.method == method:
            return


def turns(effort: Effort) -> Figures:
    """Run prompts, from the start of a server and in an existing thread; ms."""
    return asyncio.run(_turns(effort))


async def _turns(effort: Effort) -> Figures:
    began = time.perf_counter()
    sdk = _sdk()
    imported = (time.perf_counter() - began) * 1000
    first, warm, interrupted = Laps(), Laps(), Laps()
    with codex_setup() as setup:
        for _ in range(effort.repeats(LAPS)):
            with first.lap():
                client = _client(sdk, setup)
                turn = await (await _thread(sdk, client, setup)).turn(HI)
                await _until(turn, "turn/started")
            await client.close()
        async with _client(sdk, setup) as client:
            thread = await _thread(sdk, client, setup)
            await thread.run(HI)
            for _ in range(effort.population(100)):
                with warm.lap():
                    await thread.run(HI)
            for _ in range(effort.repeats(LAPS)):
                turn = await thread.turn(SLOW_TEXT)
                stream = turn.stream()
                async for event in stream:
                    if event.method == "item/agentMessage/delta":
                        break
                with interrupted.lap():
                    await turn.interrupt()
                    async for _ in stream:
                        pass
    return {
        "first": first.median,
        "turn": warm.median,
        "interrupt": interrupted.median,
        "import": imported,
    }


def stream(effort: Effort) -> Figures:
    """Read a long text; CPU of our process, in µs per piece."""

    async def main() -> Figures:
        sdk, pieces = _sdk(), effort.operations(PIECES)
        costs: list[float] = []
        with codex_setup() as setup:
            async with _client(sdk, setup) as client:
                thread = await _thread(sdk, client, setup)
                await thread.run(HI)
                for _ in range(effort.repeats(3)):
                    watch = Stopwatch(cpu)
                    with watch:
                        await thread.run(long_text(pieces))
                    costs.append(watch.micros / pieces)
        return {"piece": median(costs)}

    return asyncio.run(main())
