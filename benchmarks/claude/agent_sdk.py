"""claude-agent-sdk with the same turns, on asyncio, in an interpreter of its own."""

import asyncio  # noqa: TID251  # a contestant
from importlib import import_module
from statistics import median
from typing import Any, cast

from benchmarks.agent_setup import HI, LAPS, PIECES, SLOW_TEXT, AgentSetup, long_text
from benchmarks.claude.environment import claude_setup
from benchmarks.effort import Effort, Figures, Stopwatch, cpu
from benchmarks.process.stopwatch import Laps


def _sdk() -> Any:  # the type checkers' environment may lack it
    return cast("Any", import_module("claude_agent_sdk"))


def _options(sdk: Any, setup: AgentSetup) -> Any:
    return sdk.ClaudeAgentOptions(
        cli_path=setup.program,
        cwd=setup.work,
        env=setup.env,
        permission_mode="default",
        include_partial_messages=True,
    )


async def _turn(client: Any, prompt: str) -> None:
    await client.query(prompt)
    async for _ in client.receive_response():
        pass


async def _until(client: Any, kind: type) -> None:
    async for message in client.receive_messages():
        if isinstance(message, kind):
            return


async def _until_text(client: Any, kind: type) -> None:
    async for message in client.receive_messages():
        if isinstance(message, kind) and message.event["type"] == "content_block_delta":  # type: ignore[attr-defined]
            return


def turns(effort: Effort) -> Figures:
    """Run prompts in a connected client; ms."""
    return asyncio.run(_turns(effort))


async def _turns(effort: Effort) -> Figures:
    sdk = _sdk()
    first, warm, interrupted = Laps(), Laps(), Laps()
    with claude_setup() as setup:
        for _ in range(effort.repeats(LAPS)):
            with first.lap():
                client = sdk.ClaudeSDKClient(_options(sdk, setup))
                await client.connect()
                await client.query(HI)
                await _until(client, sdk.SystemMessage)
            await client.disconnect()
        async with sdk.ClaudeSDKClient(_options(sdk, setup)) as client:
            await _turn(client, HI)
            for _ in range(effort.population(200)):
                with warm.lap():
                    await _turn(client, HI)
            for _ in range(effort.repeats(LAPS)):
                await client.query(SLOW_TEXT)
                await _until_text(client, sdk.types.StreamEvent)
                with interrupted.lap():
                    await client.interrupt()
                    await _until(client, sdk.ResultMessage)
    return {"first": first.median, "turn": warm.median, "interrupt": interrupted.median}


def one_shots(effort: Effort) -> Figures:
    """Run each prompt in a child of its own, from its start to its end; ms."""

    async def main() -> Figures:
        sdk, laps = _sdk(), Laps()
        with claude_setup() as setup:
            for _ in range(effort.repeats(8)):
                with laps.lap():
                    async for _ in sdk.query(prompt=HI, options=_options(sdk, setup)):
                        pass
        return {"run": laps.median}

    return asyncio.run(main())


def stream(effort: Effort) -> Figures:
    """Read a long text; CPU of our process, in µs per piece."""

    async def main() -> Figures:
        sdk, pieces = _sdk(), effort.operations(PIECES)
        costs: list[float] = []
        with claude_setup() as setup:
            async with sdk.ClaudeSDKClient(_options(sdk, setup)) as client:
                await _turn(client, HI)
                for _ in range(effort.repeats(3)):
                    watch = Stopwatch(cpu)
                    with watch:
                        await _turn(client, long_text(pieces))
                    costs.append(watch.micros / pieces)
        return {"piece": median(costs)}

    return asyncio.run(main())
