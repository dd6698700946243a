"""Agents over ACP by the plain client, and by a manager with a store on disk."""

import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import TypeAlias

import trio

from benchmarks.acp.environment import AcpSetup, acp_setup, warm_turns
from benchmarks.agent_setup import PIECES
from benchmarks.effort import Effort, Figures, Stopwatch, cpu
from benchmarks.process.stopwatch import Laps
from sessionmgr.manager import open_manager
from sessionmgr.model import RunStatus
from sessionmgr_adapters.acp import AcpAdapter, open_client

Turn: TypeAlias = Callable[[str], Awaitable[None]]
Opener: TypeAlias = Callable[[AcpSetup], AbstractAsyncContextManager[Turn]]


@asynccontextmanager
async def by_client(setup: AcpSetup) -> AsyncGenerator[Turn, None]:
    """Yield a function that runs a turn by the plain client."""
    async with (
        open_client(setup.command, cwd=setup.work, env=setup.env) as client,
        client.session() as session,
    ):

        async def run(prompt: str) -> None:
            turn = session.prompt(prompt)
            async for _ in turn:
                pass
            assert turn.end is not None

        yield run


@asynccontextmanager
async def by_manager(setup: AcpSetup) -> AsyncGenerator[Turn, None]:
    """Yield a function that runs a turn by a manager, and iterates the run."""
    with tempfile.TemporaryDirectory() as directory:
        async with open_manager(
            store=Path(directory, "runs.db"), adapters={"acp": AcpAdapter}, environ=setup.env
        ) as manager:
            session = await manager.open_session("acp", cwd=setup.work, permission_mode="full_auto")

            async def turn(prompt: str) -> None:
                run = await session.submit(
                    prompt, options={"command": [*setup.command]}, env=setup.env
                )
                async for _ in run:
                    pass
                result = await run.result()
                assert result.status is RunStatus.COMPLETED, result.failure

            yield turn


async def _turns(effort: Effort, opener: Opener, *, real: bool) -> Figures:
    warm = Laps()
    with acp_setup(real=real) as setup:
        async with opener(setup) as turn:
            await turn(setup.prompt(1))
            for _ in range(warm_turns(effort, real=real)):
                with warm.lap():
                    await turn(setup.prompt(1))
    return {"turn": warm.median}


async def _stream(effort: Effort, opener: Opener) -> Figures:
    pieces, costs = effort.operations(PIECES), list[float]()
    with acp_setup(real=False) as setup:
        async with opener(setup) as turn:
            await turn("1")
            for _ in range(effort.repeats(5)):
                with (watch := Stopwatch(cpu)):
                    await turn(setup.prompt(pieces))
                costs.append(watch.micros / pieces)
    return {"update": median(costs)}


def client_turns(effort: Effort) -> Figures:
    """Run prompts in a session of the fast agent by the plain client; ms."""
    return trio.run(lambda: _turns(effort, by_client, real=False))


def client_real_turns(effort: Effort) -> Figures:
    """Run prompts in a session of the real agent by the plain client; ms."""
    return trio.run(lambda: _turns(effort, by_client, real=True))


def client_stream(effort: Effort) -> Figures:
    """Read long answers by the plain client; CPU of our process, in µs per update."""
    return trio.run(_stream, effort, by_client)


def manager_turns(effort: Effort) -> Figures:
    """Run prompts in a session of the fast agent by a manager; ms."""
    return trio.run(lambda: _turns(effort, by_manager, real=False))


def manager_real_turns(effort: Effort) -> Figures:
    """Run prompts in a session of the real agent by a manager; ms."""
    return trio.run(lambda: _turns(effort, by_manager, real=True))


def manager_stream(effort: Effort) -> Figures:
    """Read long answers by a manager; CPU of our process, in µs per update."""
    return trio.run(_stream, effort, by_manager)
