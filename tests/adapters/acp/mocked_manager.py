"""Runs on a mock of an agent over ACP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from sessionmgr.adapter import Approve
from sessionmgr.manager import Manager, open_manager
from sessionmgr.model import AnyEvent, FailureKind, PermissionMode, RunResult
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr_adapters.acp import AcpAdapter
from tests.adapters.acp.mock_agent import Talk

Script = Callable[[Talk], Awaitable[None]]


class Played(NamedTuple):
    """The result of a run, and its events."""

    result: RunResult
    events: list[AnyEvent]

    @property
    def failure(self) -> tuple[FailureKind, str]:
        """The kind and the message of its failure."""
        assert self.result.failure is not None, self.result
        return self.result.failure.kind, self.result.failure.message

    def of_type(self, name: str) -> list[Any]:
        """The events of a type."""
        return [each for each in self.events if each.type == name]


@asynccontextmanager
async def manager_of(script: Script) -> AsyncGenerator[tuple[Manager, MockSdk[Any, Any]], None]:
    async with (
        MockSdk(script) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"acp": with_sdk(AcpAdapter, sdk)},
            environ={"HOME": "/nowhere", "PATH": "/bin"},
        ) as manager,
    ):
        yield manager, sdk


async def play(
    script: Script,
    prompt: str = "hi",
    mode: str = "default",
    *,
    provider: str = "acp",
    options: Mapping[str, Any] | None = None,
    approve: Approve | None = None,
    cwd: str | Path = ".",
    **wishes: Any,
) -> Played:
    """Run one prompt."""
    async with manager_of(script) as (manager, _):
        session = await manager.open_session(
            provider, permission_mode=PermissionMode(mode), approve=approve, cwd=cwd
        )
        given = {"command": ["mock-agent"], **(options or {})}
        run = await session.submit(prompt, options=given, **wishes)
        events = [event async for event in run]
        return Played(await run.result(), events)
