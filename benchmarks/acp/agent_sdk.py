"""The protocol's library for Python, on asyncio, in an interpreter of its own."""

import asyncio  # noqa: TID251  # a contestant
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from statistics import median
from typing import Any, TypeAlias, cast

from benchmarks.acp.environment import AcpSetup, acp_setup, warm_turns
from benchmarks.agent_setup import PIECES
from benchmarks.effort import Effort, Figures, Stopwatch, cpu
from benchmarks.process.stopwatch import Laps

Turn: TypeAlias = Callable[[str], Awaitable[None]]


class SdkClient:
    """It counts the updates."""

    def __init__(self) -> None:
        self.count = 0

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.count += 1


@asynccontextmanager
async def _opened(setup: AcpSetup) -> AsyncGenerator[Turn, None]:
    acp = cast("Any", import_module("acp"))  # the type checkers' environment may lack it
    client = SdkClient()
    program, *arguments = setup.command
    async with acp.spawn_agent_process(
        client, program, *arguments, env=setup.env, cwd=setup.work
    ) as (agent, _):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        session = await agent.new_session(cwd=str(setup.work), mcp_servers=[])

        async def turn(prompt: str) -> None:
            client.count = 0
            block = acp.text_block(prompt)
            ended = await agent.prompt(session_id=session.session_id, prompt=[block])
            assert ended.stop_reason == "end_turn"
            wanted = 1 if setup.is_real else int(prompt)
            while client.count < wanted:  # noqa: ASYNC110  # the library has tasks for updates
                await asyncio.sleep(0)

        yield turn


async def _turns(effort: Effort, *, real: bool) -> Figures:
    warm = Laps()
    with acp_setup(real=real) as setup:
        async with _opened(setup) as turn:
            await turn(setup.prompt(1))
            for _ in range(warm_turns(effort, real=real)):
                with warm.lap():
                    await turn(setup.prompt(1))
    return {"turn": warm.median}


def turns(effort: Effort) -> Figures:
    """Run prompts in a session of the fast agent; ms."""
    return asyncio.run(_turns(effort, real=False))


def real_turns(effort: Effort) -> Figures:
    """Run prompts in a session of the real agent; ms."""
    return asyncio.run(_turns(effort, real=True))


def stream(effort: Effort) -> Figures:
    """Read long answers; CPU of our process, in µs per update."""

    async def main() -> Figures:
        pieces, costs = effort.operations(PIECES), list[float]()
        with acp_setup(real=False) as setup:
            async with _opened(setup) as turn:
                await turn("1")
                for _ in range(effort.repeats(5)):
                    with (watch := Stopwatch(cpu)):
                        await turn(setup.prompt(pieces))
                    costs.append(watch.micros / pieces)
        return {"update": median(costs)}

    return asyncio.run(main())
