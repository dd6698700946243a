"""Runs on a mock of Codex."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Unpack

from sessionmgr.adapter.kit.json_rpc_caller import PeerRequest
from sessionmgr.manager import Manager, open_manager
from sessionmgr.manager.run_plan import RunArguments
from sessionmgr.model import (
    AnyEvent,
    FailureKind,
    PermissionMode,
    RunResult,
)
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr_adapters.codex import CodexAdapter
from sessionmgr_adapters.codex.frames import ItemEndedNotice, ItemStartedNotice
from tests.adapters.codex.mock_agent import Talk, begin, end, opening, thread_of

Script = Callable[[Talk], Awaitable[None]]


@asynccontextmanager
async def manager_of(script: Script) -> AsyncGenerator[Manager, None]:
    async with (
        MockSdk(script) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"codex": with_sdk(CodexAdapter, sdk)},
            environ={"HOME": "/nowhere"},
        ) as manager,
    ):
        yield manager


async def play(
    script: Script, prompt: str = "hi", mode: str = "default", **wishes: Unpack[RunArguments]
) -> tuple[RunResult, list[AnyEvent]]:
    async with manager_of(script) as manager:
        session = await manager.open_session("codex", permission_mode=PermissionMode(mode))
        run = await session.submit(prompt, **wishes)
        events = [event async for event in run]
        return await run.result(), events


def failure(found: tuple[RunResult, list[AnyEvent]]) -> tuple[FailureKind, str]:
    assert found[0].failure is not None, found[0]
    return found[0].failure.kind, found[0].failure.message


async def ask(
    asking: PeerRequest,
    mode: str = "default",
    before: ItemStartedNotice | None = None,
    **wishes: Unpack[RunArguments],
) -> object:
    """Return the answer to a request."""
    return (await answered(asking, mode, before, **wishes))[0]


async def answered(
    asking: PeerRequest,
    mode: str = "default",
    before: ItemStartedNotice | None = None,
    **wishes: Unpack[RunArguments],
) -> tuple[object, list[AnyEvent]]:
    """Return the answer to a request, and the events of the run."""
    answers: list[object] = []

    async def asks(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        if before is not None:
            it.says(before)
        it.says(asking)
        answers.append(await it.heard())
        if before is not None:
            it.says(ItemEndedNotice(thread_id=thread, item=before.item))
        end(it, thread)

    _, events = await play(asks, mode=mode, **wishes)
    return answers[0], events
