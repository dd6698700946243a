"""The clean-up after a turn."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from sessionmgr.adapter.kit.json_rpc_caller import RpcOutgoing
from sessionmgr.manager import open_manager
from sessionmgr.model import PermissionMode
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import INTERRUPTED, MockSdk, with_sdk
from sessionmgr_adapters.codex import CodexAdapter
from sessionmgr_adapters.codex.frames import CodexFrame, ItemEndedNotice, ItemStartedNotice
from tests.adapters.codex.mock_agent import Talk, begin, command, end, opening, thread_of

FREE = "dangerously_skip_permissions"


@pytest.mark.parametrize(
    ("mode", "works", "cancels", "cleared"),
    [
        (FREE, True, True, 1),
        (FREE, True, False, 0),
        (FREE, False, True, 0),
        ("full_auto", True, True, 0),
    ],
    ids=["cut short", "at its own end", "without commands", "in a sandbox"],
)
async def test_what_commands_leave_is_cleared_away_where_no_sandbox_ends_it(
    autojump_clock: MockClock, mode: str, *, works: bool, cancels: bool, cleared: int
) -> None:
    async def agent(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        if works:
            it.says(ItemStartedNotice(thread_id=thread, item=command("c", "ls")))
            it.says(ItemEndedNotice(thread_id=thread, item=command("c", "ls", "completed", "done")))
        await it.gate("at work")
        if cancels:
            await it.expect(INTERRUPTED)
        end(it, thread, "interrupted" if cancels else "completed")

    async with (
        MockSdk[RpcOutgoing, CodexFrame](agent) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"codex": with_sdk(CodexAdapter, sdk)},
            environ={"HOME": "/nowhere"},
        ) as manager,
    ):
        run = await (
            await manager.open_session("codex", permission_mode=PermissionMode(mode))
        ).submit("go")
        await sdk.reached("at work")
        if cancels:
            run.cancel()
        sdk.open_gate("at work")
        assert (await run.result()).status == ("cancelled" if cancels else "completed")
        [conversation] = sdk.conversations
        assert (conversation.times_cleared, conversation.is_closed) == (cleared, True)
        assert conversation.is_kept is not cancels


@pytest.mark.parametrize("keep", [True, False])
async def test_a_thread_is_kept_only_if_the_user_wants_it(
    autojump_clock: MockClock, *, keep: bool
) -> None:
    async def agent(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        end(it, thread_of(call))

    async with (
        MockSdk[RpcOutgoing, CodexFrame](agent) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"codex": with_sdk(CodexAdapter, sdk)},
            environ={"HOME": "/nowhere"},
        ) as manager,
    ):
        session = await manager.open_session("codex")
        result = await (await session.submit("go", options={"keep": keep})).result()
        assert result.status == "completed"
        assert sdk.conversations[0].is_kept is keep
