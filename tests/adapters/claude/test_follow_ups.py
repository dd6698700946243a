"""Messages to a running turn."""

from __future__ import annotations

from typing import Final

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from sessionmgr.manager import FollowUp, RunHandle
from sessionmgr.model import FailureKind, Json, MessageSent, RunStatus
from sessionmgr.testing.mock_sdk import INTERRUPTED, MockSdk
from sessionmgr_adapters.claude.frames import (
    AssistantFrame,
    ClaudeMessage,
    CompactMetadata,
    MessageLifecycle,
    ResultFrame,
    SystemFrame,
    UserFrame,
)
from sessionmgr_adapters.claude.outgoing import ClaudeUserMessage
from tests.adapters.claude.mock_agent import (
    ACCOUNT,
    Talk,
    heard_prompt,
    idle,
    init,
    result,
    running,
    session_of,
    text as text_of,
    tool,
    tool_result,
)
from tests.adapters.claude.mocked_manager import Mock, answer, open_claude_manager


async def accepted(run: RunHandle) -> None:
    """Send a message to a run; it is held until the gate is open, and accepted then."""
    assert (await run.append("more")).accepted


async def test_an_older_one_tells_only_by_echoes_what_it_has_taken(
    autojump_clock: MockClock,
) -> None:
    old = SystemFrame(subtype="init", session_id="s", permission_mode="default", version="2.1.197")

    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), old, tool("t1", "Bash"))
        await it.gate("in a tool")
        it.says(tool_result("t1", "done"))
        more = await it.heard()
        assert isinstance(more, ClaudeUserMessage)  # it was held until the tool had its result
        it.says(UserFrame(message=ClaudeMessage(content="more"), uuid=more.uuid, is_replay=True))
        unnamed = result(prompt.uuid)
        it.says(*text_of("both"), AssistantFrame(message=ClaudeMessage(content="well")))
        it.says(type(unnamed)(subtype="success"), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("in a tool")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(accepted, run)
            await trio.testing.wait_all_tasks_blocked()
            sdk.open_gate("in a tool")
        done = await run.result()
    assert (done.status, done.text) == (RunStatus.COMPLETED, "well")


async def test_a_message_is_held_while_the_context_is_shortened(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)), SystemFrame(subtype="status", status="compacting"))
        await it.gate("compacting")
        it.says(SystemFrame(subtype="status", compact_result="success"))
        metadata = CompactMetadata(trigger="auto")
        it.says(SystemFrame(subtype="compact_boundary", compact_metadata=metadata))
        more = await it.heard()
        assert isinstance(more, ClaudeUserMessage)
        assert more.priority == "later"
        it.says(MessageLifecycle(command_uuid=more.uuid, state="queued"))
        it.says(result(prompt.uuid, is_error=True, result="not well"))
        it.says(running(), init(session_of(it)), *text_of("more"), result(more.uuid), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi", options={"follow_up": "later"})
        await sdk.reached("compacting")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(accepted, run)
            await trio.testing.wait_all_tasks_blocked()
            assert len(sdk.conversations[0].heard_so_far) == 2
            sdk.open_gate("compacting")
        types = [each.type async for each in run]
        done = await run.result()
    assert (done.status, done.text, done.turns) == (RunStatus.COMPLETED, "more", 2)
    assert "error_occurred" in types  # the error of the turn that failed
    assert {"compaction_started", "compaction_completed"} <= set(types)


async def test_an_unheard_message_becomes_a_run(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        if len(sdk.conversations) > 1:
            it.says(running(), init(session_of(it)), result(prompt.uuid), idle())
            return
        it.says(running(), init(session_of(it)))
        await it.gate("at work")
        await it.heard()
        it.ends()

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("at work")
        sdk.open_gate("at work")
        follow_up = await run.append("more")
        assert not follow_up.accepted
        assert (await run.result()).status is RunStatus.FAILED
        assert (await follow_up.run.result()).status is RunStatus.COMPLETED


async def test_a_message_that_was_held_to_the_end_becomes_a_run(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        if len(sdk.conversations) > 1:
            await answer(it, "more")
            return
        await heard_prompt(it)
        it.says(running(), init(session_of(it)), SystemFrame(subtype="status", status="compacting"))
        await it.gate("compacting")
        it.ends()

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("compacting")
        follow_ups: list[FollowUp] = []

        async def append() -> None:
            follow_ups.append(await run.append("more"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(append)
            await trio.testing.wait_all_tasks_blocked()
            sdk.open_gate("compacting")
        assert (await run.result()).status is RunStatus.FAILED
        assert not follow_ups[0].accepted
        assert (await follow_ups[0].run.result()).text == "more"


async def test_a_message_that_was_held_for_long_and_never_sent_is_told_to_be_dropped(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        await heard_prompt(it)
        it.says(running(), init(session_of(it)), SystemFrame(subtype="status", status="compacting"))
        await it.gate("compacting")
        it.ends()

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("compacting")
        began = trio.current_time()
        assert (await run.append("more")).accepted
        assert trio.current_time() - began < 5
        sdk.open_gate("compacting")
        sent = [event async for event in run if isinstance(event, MessageSent)]
        assert (await run.result()).status is RunStatus.FAILED
    assert (sent[-1].content, sent[-1].state) == ("more", "dropped")


@pytest.mark.parametrize("pause", [0.0, 3.0])
async def test_a_message_that_is_held_when_its_run_is_cancelled_is_not_sent(
    autojump_clock: MockClock, pause: float
) -> None:
    async def script(it: Talk) -> None:
        if len(sdk.conversations) > 1:
            await answer(it, "more")
            return
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)), SystemFrame(subtype="status", status="compacting"))
        await it.gate("compacting")
        await it.expect(INTERRUPTED)
        await trio.sleep(pause)
        it.says(SystemFrame(subtype="status", compact_result="success"))
        it.says(result(prompt.uuid, subtype="error_during_execution", is_error=True), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("compacting")
        follow_ups: list[FollowUp] = []

        async def append() -> None:
            follow_ups.append(await run.append("more"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(append)
            await trio.testing.wait_all_tasks_blocked()
            began = trio.current_time()
            run.cancel()
            sdk.open_gate("compacting")
        assert (await run.result()).status is RunStatus.CANCELLED
        assert trio.current_time() - began < pause + 1
        assert not follow_ups[0].accepted
        sent = [
            each
            for each in sdk.conversations[0].heard_so_far
            if isinstance(each, ClaudeUserMessage)
        ]
        assert [each.content for each in sent] == ["hi"]


async def test_an_older_one_has_taken_what_was_sent_before_its_turn_began(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it, OLD)
        it.says(running())
        await it.gate("at work")
        more = await it.heard()
        assert isinstance(more, ClaudeUserMessage)
        await trio.sleep(1)
        it.says(SystemFrame(subtype="init", session_id="s", version="2.1.197"))
        it.says(*text_of("well"), result(prompt.uuid, more.uuid), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("at work")
        sdk.open_gate("at work")
        began = trio.current_time()
        assert (await run.append("more")).accepted
        assert trio.current_time() - began == pytest.approx(1)
        assert (await run.result()).status is RunStatus.COMPLETED


async def test_a_run_whose_turn_is_stopped_takes_no_more_messages(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        if prompt.content == "more":
            it.says(running(), init(session_of(it)), result(prompt.uuid), idle())
            return
        it.says(running(), init(session_of(it), "bypassPermissions"))
        await it.expect(INTERRUPTED)
        await it.gate("stopping")
        it.says(result(prompt.uuid, subtype="error_during_execution", is_error=True), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("stopping")
        follow_up = await run.append("more")
        assert not follow_up.accepted
        sdk.open_gate("stopping")
        failure = (await run.result()).failure
        assert failure is not None
        assert failure.kind is FailureKind.PERMISSION_REFUSED
        assert (await follow_up.run.result()).status is RunStatus.COMPLETED


OLD: Final[dict[str, Json]] = {"claude_code_version": "2.1.197", "account": ACCOUNT}


@pytest.mark.parametrize("text", ["/clear", "look at @a.txt"])
async def test_one_that_an_older_one_would_not_take_for_words_becomes_a_run_that_says_so(
    autojump_clock: MockClock, text: str
) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it, OLD)
        it.says(running(), tool("t1", "Bash"))
        await it.gate("in a tool")
        it.says(tool_result("t1", "done"), *text_of("well"), result(prompt.uuid), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("in a tool")
        follow_up = await run.append(text)
        sdk.open_gate("in a tool")
        assert not follow_up.accepted
        assert (await run.result()).status is RunStatus.COMPLETED
        failure = (await follow_up.run.result()).failure
    assert failure is not None
    assert (failure.kind, "slash_commands" in failure.message) == (
        FailureKind.CONFIG_INVALID,
        True,
    )


async def test_a_command_that_an_older_one_does_by_itself_is_over_with_its_result(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        await heard_prompt(it, OLD)
        it.says(running(), SystemFrame(subtype="init", session_id="s", version="2.1.197"))
        await it.gate("at work")
        assert isinstance(await it.heard(), ClaudeUserMessage)
        it.says(*text_of("well"), ResultFrame(subtype="success", num_turns=1))
        it.says(*text_of("0 $"), ResultFrame(subtype="success", num_turns=0), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi", options={"slash_commands": True})
        await sdk.reached("at work")
        sdk.open_gate("at work")
        assert (await run.append("/cost")).accepted
        done = await run.result()
    assert (done.status, done.text, done.turns) == (RunStatus.COMPLETED, "0 $", 2)
