"""Process of a session: kept, reconfigured, replaced."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from sessionmgr import Job, run_batch
from sessionmgr.adapter import Budget
from sessionmgr.manager import open_manager
from sessionmgr.model import FailureKind, RunStatus
from sessionmgr.testing.mock_sdk import INTERRUPTED, MockSdk, with_sdk
from sessionmgr_adapters.claude import ClaudeAdapter
from sessionmgr_adapters.claude.frames import ConversationReset, SystemFrame
from sessionmgr_adapters.claude.launch import ClaudeSpec
from sessionmgr_adapters.claude.outgoing import ClaudeUserMessage, ControlRequest
from tests.adapters.claude.mock_agent import (
    Talk,
    heard_prompt,
    idle,
    init,
    result,
    running,
    session_of,
    text,
    tool,
    tool_result,
)
from tests.adapters.claude.mocked_manager import Mock, answer, open_claude_manager, ran


async def test_what_can_be_changed_is_changed_in_the_child_that_is_there(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        await answer(it)

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        await (await session.submit("one", model="opus", effort="low")).result()
        run = await session.submit("two", model="haiku", effort="high")
        await run.result()
        assert len(sdk.connections) == 1
        asked = [
            each for each in sdk.conversations[1].heard_so_far if isinstance(each, ControlRequest)
        ]
        assert [(each.subtype, each.fields) for each in asked] == [
            ("set_model", {"model": "haiku"}),
            ("apply_flag_settings", {"settings": {"effortLevel": "high"}}),
        ]
        await (await session.submit("three", permission_mode="full_auto")).result()
        assert len(sdk.connections) == 2  # a process cannot be switched to run without requests
        assert sdk.connections[0].is_closed
        first, second = (each.spec for each in sdk.connections)
        assert isinstance(first, ClaudeSpec)
        assert isinstance(second, ClaudeSpec)
        assert (first.resumes, second.resumes) == (None, first.session)


async def test_a_child_that_was_told_its_effort_serves_no_run_that_leaves_it_open(
    autojump_clock: MockClock,
) -> None:
    sdk: Mock = MockSdk(answer)  # type: ignore[arg-type]
    async with open_claude_manager(sdk) as session:
        await (await session.submit("one", effort="low")).result()
        await (await session.submit("two")).result()
        await (await session.submit("three")).result()
        assert [each.is_closed for each in sdk.connections] == [True, False]


async def test_a_child_of_a_session_is_kept_for_five_minutes(autojump_clock: MockClock) -> None:
    sdk: Mock = MockSdk(answer)  # type: ignore[arg-type]
    async with open_claude_manager(sdk) as session:
        await ran(session)
        await trio.sleep(290)
        await ran(session)
        assert len(sdk.connections) == 1
        await trio.sleep(301)
        assert sdk.connections[0].is_closed
        await ran(session, keep=False)
        await trio.sleep(0.1)
        assert sdk.connections[1].is_closed


async def test_a_child_ends_with_its_session(autojump_clock: MockClock) -> None:
    sdk: Mock = MockSdk(answer)  # type: ignore[arg-type]
    async with open_claude_manager(sdk) as session:
        await ran(session)
        await session.close()
        await trio.sleep(0.1)
        assert sdk.connections[0].is_closed


async def test_a_session_that_is_let_go_keeps_no_child_and_takes_another_run(
    autojump_clock: MockClock,
) -> None:
    sdk: Mock = MockSdk(answer)  # type: ignore[arg-type]
    async with open_claude_manager(sdk) as session:
        await ran(session)
        session.release()
        await trio.sleep(0.1)
        assert sdk.connections[0].is_closed
        session.release()
        assert (await ran(session)).status is RunStatus.COMPLETED
        first, second = (each.spec for each in sdk.connections)
        assert isinstance(first, ClaudeSpec)
        assert isinstance(second, ClaudeSpec)
        assert second.resumes == first.session


async def test_a_session_that_is_let_go_after_a_while_keeps_no_child(
    autojump_clock: MockClock,
) -> None:
    sdk: Mock = MockSdk(answer)  # type: ignore[arg-type]
    async with open_claude_manager(sdk) as session:
        await ran(session)
        await trio.sleep(60)
        session.release()
        await trio.sleep(0.1)
        assert sdk.connections[0].is_closed
        assert (await ran(session)).status is RunStatus.COMPLETED


async def test_a_session_that_is_let_go_during_a_run_keeps_no_child_after_it(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)))
        await it.gate("half way")
        it.says(*text("well"), result(prompt.uuid), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("half way")
        session.release()
        sdk.open_gate("half way")
        assert (await run.result()).status is RunStatus.COMPLETED
        await trio.sleep(0.1)
        assert sdk.connections[0].is_closed


async def test_a_batch_keeps_the_child_of_no_job_that_is_over(autojump_clock: MockClock) -> None:
    most = 0

    async def script(it: Talk) -> None:
        nonlocal most
        most = max(most, sum(not each.is_closed for each in sdk.connections))
        await answer(it)

    sdk: Mock = MockSdk(script)
    adapter = with_sdk(ClaudeAdapter, sdk)
    jobs = [Job(id=str(number), prompt="hi", provider="claude") for number in range(6)]
    async with sdk, open_manager(adapters={"claude": adapter}) as manager:
        async with run_batch(manager, jobs, concurrency=1) as results:
            assert [result.status async for result in results] == [RunStatus.COMPLETED] * 6
        await trio.sleep(0.1)
        assert [each.is_closed for each in sdk.connections] == [True] * 6
    assert most <= 2


async def test_a_child_that_died_meanwhile_is_replaced(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        if len(sdk.conversations) == 2:
            await it.heard()
            sdk.connections[0].hang_up()
        else:
            await answer(it)

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        assert (await ran(session)).status is RunStatus.COMPLETED
        assert (await ran(session)).status is RunStatus.COMPLETED
        assert len(sdk.connections) == 2


async def test_a_cancelled_run_leaves_no_child_that_has_used_tools(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)), tool("t1", "Bash"))
        await it.gate("in a tool")
        await it.expect(INTERRUPTED)
        it.says(tool_result("t1", "stopped", failed=True))
        it.says(result(prompt.uuid, subtype="error_during_execution", is_error=True), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("in a tool")
        run.cancel()
        sdk.open_gate("in a tool")
        assert (await run.result()).status is RunStatus.CANCELLED
        assert sdk.connections[0].is_closed


async def test_a_run_that_wants_a_child_of_its_own_uses_none_that_was_kept(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        await answer(it)

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        await ran(session)
        await ran(session, keep=False)
        assert [each.is_closed for each in sdk.connections] == [True, True]


async def test_what_a_child_may_spend_is_one_runs_to_spend(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        await answer(it)

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        for _ in range(2):
            run = await session.submit("hi", budget=Budget(usd=1.0))
            assert (await run.result()).status is RunStatus.COMPLETED
        assert [each.is_closed for each in sdk.connections] == [True, True]


async def test_who_pays_is_looked_at_again_where_a_child_was_kept(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        await answer(it)

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        assert (await ran(session)).status is RunStatus.COMPLETED
        failure = (await ran(session, billing="subscription")).failure
        assert failure is not None
        assert failure.kind is FailureKind.BILLING
        assert [
            each
            for each in sdk.conversations[1].heard_so_far
            if isinstance(each, ClaudeUserMessage)
        ] == []


async def test_a_child_that_has_changed_its_mode_is_brought_back_to_the_one_that_is_asked_for(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)))
        it.says(SystemFrame(subtype="status", permission_mode="plan"))
        it.says(*text("well"), result(prompt.uuid), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        await ran(session)
        await ran(session)
        asked = [
            each for each in sdk.conversations[1].heard_so_far if isinstance(each, ControlRequest)
        ]
    assert [(each.subtype, each.fields) for each in asked] == [
        ("set_permission_mode", {"mode": "default"})
    ]


async def test_a_child_that_has_begun_another_session_is_not_kept_beside_the_next(
    autojump_clock: MockClock,
) -> None:
    alive: list[int] = []

    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        alive.append(sum(not each.is_closed for each in sdk.connections))
        it.says(running(), init(session_of(it)), ConversationReset(new_conversation_id="new"))
        it.says(*text("well"), result(prompt.uuid), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        assert (await ran(session)).provider_session_id == "new"
        await ran(session)
        _, second = (each.spec for each in sdk.connections)
        assert isinstance(second, ClaudeSpec)
        assert second.resumes == "new"
    assert alive == [1, 1]
