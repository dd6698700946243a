"""Turns on a mock: frames of other turns and runs, and unsupported options."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from sessionmgr.adapter import OptionInvalid
from sessionmgr.adapter.kit.json_rpc_caller import RpcCall
from sessionmgr.manager import open_manager
from sessionmgr.manager.run_plan import RunRequest
from sessionmgr.model import FailureKind, Json, MessageReceived, MessageSent, RunStarted
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import INTERRUPTED, MockSdk, with_sdk
from sessionmgr_adapters.codex import CodexAdapter, CodexOptions, CodexTool
from sessionmgr_adapters.codex.frames import TurnError
from tests.adapters.codex.mock_agent import (
    HELLO,
    TURN,
    Talk,
    begin,
    end,
    opening,
    result,
    text,
    thread_of,
)
from tests.adapters.codex.mocked_manager import failure, manager_of, play


async def test_the_end_of_an_earlier_turn_is_not_that_of_this_one(
    autojump_clock: MockClock,
) -> None:
    async def haunted(it: Talk) -> None:
        call = await opening(it)
        end(it, thread_of(call), "interrupted", turn="turn-0")
        begin(it, call)
        end(it, thread_of(call), "interrupted", turn="turn-0")
        it.says(*text(thread_of(call), "well"))
        end(it, thread_of(call))

    done, events = await play(haunted)
    assert (done.status, done.text, done.turns) == ("completed", "well", 1)
    assert [each.content for each in events if isinstance(each, MessageReceived)] == ["well"]


async def test_a_second_run_on_a_thread_that_was_begun_here_is_refused(
    autojump_clock: MockClock,
) -> None:
    async def long(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        assert await it.heard() == INTERRUPTED
        end(it, thread_of(call), "interrupted")

    async with (
        MockSdk(long) as sdk,
        open_manager(
            store=MemoryStore(), adapters={"codex": with_sdk(CodexAdapter, sdk)}
        ) as manager,
    ):
        run = await (await manager.open_session("codex")).submit("hi")
        thread = None
        async for event in run:
            if isinstance(event, RunStarted):
                thread = event.provider_session_id
                break
        other = await manager.open_session("codex")
        wish = RunRequest(prompt="me too", provider_session_id=thread)
        second = await (await other.admit(wish)).result()
        assert second.failure is not None
        assert second.failure.kind == FailureKind.SESSION_BUSY
        run.cancel()
        assert (await run.result()).status == "cancelled"


@pytest.mark.parametrize("dies", [False, True])
async def test_a_message_that_was_taken_and_never_heard_is_told_of(
    autojump_clock: MockClock, dies: bool
) -> None:
    async def distracted(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        it.says(*text(thread_of(call), "one"))
        steer = await it.heard()
        assert isinstance(steer, RpcCall)
        it.says(result(steer, {"turnId": TURN}))
        await trio.testing.wait_all_tasks_blocked()
        if dies:
            it.ends()
        else:
            end(it, thread_of(call), "failed", TurnError(message="no", codex_error_info="other"))

    async with manager_of(distracted) as manager:
        run = await (await manager.open_session("codex")).submit("hi")
        async for event in run:
            if isinstance(event, MessageReceived):
                await run.append("more")
        assert (await run.result()).status == "failed"
        said = [each async for each in run if isinstance(each, MessageSent)]
    assert [(each.content, each.state) for each in said][-1] == ("more", "dropped")


async def test_functions_are_not_dropped_in_silence_where_none_can_be_called() -> None:
    async def nothing(given: dict[str, Json]) -> Json:
        await trio.lowlevel.checkpoint()
        return given

    tools = (CodexTool("f", "Do nothing.", nothing),)
    with pytest.raises(ValueError, match="cannot call functions of the caller"):
        CodexOptions(exec=True, tools=tools)
    async with open_manager(adapters={"codex": CodexAdapter}) as manager:
        session = await manager.open_session("codex")
        with pytest.raises(OptionInvalid, match="tools"):
            await session.submit("hi", options={"exec": True, "tools": tools})


async def test_functions_are_refused_where_it_is_not_known_what_a_thread_was_begun_with(
    autojump_clock: MockClock,
) -> None:
    heard: list[RpcCall] = []

    async def nothing(given: dict[str, Json]) -> Json:
        await trio.lowlevel.checkpoint()
        return given

    async def forgetful(it: Talk) -> None:
        if heard:
            it.says(HELLO)
            call = await it.heard()
            assert isinstance(call, RpcCall)
            it.says(result(call, {"thread": {"id": "t", "path": None}}))
            heard.append(call)
            return
        heard.append(await opening(it))
        begin(it, heard[0])
        end(it, thread_of(heard[0]))

    async with manager_of(forgetful) as manager:
        session = await manager.open_session("codex")
        assert (await (await session.submit("hi")).result()).status == "completed"
        options = CodexOptions(tools=(CodexTool("f", "Do nothing.", nothing),))
        done = await (await session.submit("hi", options=options)).result()
    assert done.failure is not None
    assert done.failure.kind == FailureKind.CONFIG_INVALID
    assert done.failure.message.startswith("options.tools: cannot read which functions ")
    assert [each.method for each in heard] == ["turn/start", "thread/read"]


@pytest.mark.parametrize("once", [False, True])
async def test_a_session_without_a_thread_is_not_forked(*, once: bool) -> None:
    async def unused(it: Talk) -> None:
        raise AssertionError(it)

    kind, message = failure(await play(unused, options={"fork": True, "exec": once}))
    assert kind == FailureKind.CONFIG_INVALID
    assert message.startswith("options.fork: the session has no thread to fork")
