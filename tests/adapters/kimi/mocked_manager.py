"""Runs on a mock of Kimi."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Unpack

from sessionmgr.adapter import RunContext
from sessionmgr.manager import Manager, open_manager
from sessionmgr.manager.run_plan import RunArguments
from sessionmgr.model import AnyEvent, Failure, PermissionMode, RunResult
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr_adapters.kimi.wire_adapter import KimiWireAdapter
from tests.adapters.kimi.mock_agent import Talk

Script = Callable[[Talk], Awaitable[None]]


class UncheckedKimi(KimiWireAdapter):
    """The adapter, for runs that resume sessions of a mock."""

    def missing_session(self, run: RunContext) -> Failure | None:
        return None


@asynccontextmanager
async def manager_of(script: Script) -> AsyncGenerator[Manager, None]:
    async with (
        MockSdk(script) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"kimi": with_sdk(UncheckedKimi, sdk)},
            environ={"HOME": "/nowhere", "PATH": "/nowhere"},
        ) as manager,
    ):
        yield manager


async def play(
    script: Script,
    prompt: str = "hi",
    mode: str = "default",
    **wishes: Unpack[RunArguments],
) -> tuple[RunResult, list[AnyEvent]]:
    """Play one run to its end."""
    async with manager_of(script) as manager:
        session = await manager.open_session("kimi", permission_mode=PermissionMode(mode))
        run = await session.submit(prompt, **wishes)
        events = [event async for event in run]
        return await run.result(), events
