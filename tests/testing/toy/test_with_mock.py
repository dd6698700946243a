"""The whole adapter in virtual time, its sdk a script."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from sessionmgr.adapter import Allow, ApprovalRequest, Decision, Deny
from sessionmgr.adapter.kit.request_handler import MAX_OPEN_REQUESTS, TOO_MANY_REQUESTS
from sessionmgr.manager import Clocks, open_manager
from sessionmgr.manager.handles import SessionHandle
from sessionmgr.model import EndReason, FailureKind, RunStatus
from sessionmgr.testing.mock_sdk import INTERRUPTED, MockConversation, MockSdk, SentAnswer, with_sdk
from sessionmgr.testing.toy import ToyAdapter
from sessionmgr.testing.toy.frames import (
    Frame,
    Outgoing,
    ToyHello,
    ToyMore,
    ToyOpen,
    ToyQuestion,
    ToySay,
    ToyText,
    ToyTextDelta,
    ToyTokens,
    ToyTook,
    ToyToolBegan,
    ToyToolEnded,
    ToyTurnEnded,
    ToyWithdrawn,
)
from sessionmgr.wire import MalformedFrame, NoFrame, NoiseLine, OversizedFrame, UntypedFrame

Talk = MockConversation[Outgoing, Frame | NoFrame]
Mock = MockSdk[Outgoing, Frame | NoFrame]


@asynccontextmanager
async def stage(sdk: Mock, **clocks: float) -> AsyncGenerator[SessionHandle, None]:
    async with (
        sdk,
        open_manager(
            adapters={"toy": with_sdk(ToyAdapter, sdk)}, clocks=Clocks(**clocks)
        ) as manager,
    ):
        yield await manager.open_session("toy")


async def test_a_turn_is_told_from_hello_to_its_end(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        assert it.opening == ToyOpen(None)
        await it.expect(ToySay("hi"))
        it.says(ToyHello("s1"), ToyTextDelta("he", "m1"), ToyTextDelta("llo", "m1"))
        it.says(ToyToolBegan("t1", "look", {"at": 1}), ToyToolEnded("t1", ok=True, output="seen"))
        it.says(ToyText("hello", "m1"), ToyTokens(3, 4), ToyTurnEnded("done"))

    async with stage(MockSdk(script)) as session, session.start("hi") as run:
        kinds = [event.type async for event in run]
        result = await run.result()
    assert kinds[-8:] == [
        "run_started",
        "message_streamed",
        "message_streamed",
        "tool_call_started",
        "tool_call_completed",
        "message_received",
        "token_usage_updated",
        "run_completed",
    ]
    assert (result.status, result.text, result.stop_reason) == (
        RunStatus.COMPLETED,
        "hello",
        "done",
    )
    assert result.provider_session_id == "s1"
    assert (result.usage.input, result.usage.output) == (3, 4)
    assert result.tool_calls.count == {"look": 1}


async def test_the_next_run_goes_on_in_the_same_session_on_the_same_connection(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        it.says(ToyHello("s1"), ToyTurnEnded())

    sdk: Mock = MockSdk(script)
    async with stage(sdk) as session:
        for _ in range(2):
            async with session.start("hi") as run:
                await run.result()
        assert [each.opening for each in sdk.conversations] == [ToyOpen(None), ToyOpen("s1")]
        assert len(sdk.connections) == 1
        await trio.sleep(301)
        assert sdk.connections[0].is_closed


async def test_a_cancel_is_an_interrupt_and_the_agent_is_read_to_its_end(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        await it.expect(ToySay("hi"))
        it.says(ToyHello("s1"))
        await it.gate("at work")
        await it.expect(INTERRUPTED)
        it.says(ToyText("half of it", "m1"), ToyTurnEnded("cancelled"))

    sdk: Mock = MockSdk(script)
    async with stage(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("at work")
        run.cancel("changed my mind")
        sdk.open_gate("at work")
        result = await run.result()
        assert (result.status, result.reason) == (RunStatus.CANCELLED, EndReason.USER)
        assert result.text == "half of it"
        assert not sdk.connections[0].is_closed


async def test_a_deaf_agent_is_cut_at_the_end_of_the_grace_and_not_used_again(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        await it.expect(ToySay("hi"))
        it.says(ToyHello("s1"), ToyTextDelta("half", "m1"))
        await it.gate("at work")

    sdk: Mock = MockSdk(script)
    async with stage(sdk, close=5.0) as session:
        run = await session.submit("hi")
        await sdk.reached("at work")
        began = trio.current_time()
        run.cancel()
        result = await run.result()
        assert trio.current_time() - began == pytest.approx(5.0, abs=0.1)
        assert (result.status, result.text) == (RunStatus.CANCELLED, "half")
        await trio.testing.wait_all_tasks_blocked()  # it is closed beside the run
        assert sdk.connections[0].is_closed


async def test_a_run_cancelled_before_its_turn_says_nothing(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        raise AssertionError(f"it was asked: {await it.heard()}")

    async with stage(MockSdk(script)) as session:
        run = await session.submit("hi")
        run.cancel()
        assert (await run.result()).status is RunStatus.CANCELLED


async def test_a_question_is_answered_beside_the_reading(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        await it.expect(ToySay("hi"))
        it.says(ToyHello("s1"), ToyQuestion("q1", "rm", {"f": 1}), ToyQuestion("q2", "ls"))
        assert await it.heard() == SentAnswer("q2", Allow(reason="harmless"))
        it.says(ToyText("still talking", "m1"))
        await it.gate("asked")
        assert await it.heard() == SentAnswer("q1", Deny(reason="no"))
        it.says(ToyTurnEnded())

    sdk: Mock = MockSdk(script)

    async def approve(request: ApprovalRequest) -> Decision:
        if request.tool_name == "ls":
            return Allow(reason="harmless")
        await sdk.reached("asked")
        sdk.open_gate("asked")
        return Deny(reason="no")

    async with (
        stage(sdk) as session,
        session.start("hi", approve=approve) as run,
    ):
        result = await run.result()
    assert result.status is RunStatus.COMPLETED
    assert [each.tool_name for each in result.permission_denials] == ["rm"]


async def test_a_question_that_is_withdrawn_is_closed_and_not_answered(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        await it.expect(ToySay("hi"))
        it.says(ToyHello("s1"), ToyQuestion("q1", "rm"))
        await it.gate("thinking")
        it.says(ToyWithdrawn("q1"), ToyTurnEnded())

    sdk: Mock = MockSdk(script)

    async def approve(request: ApprovalRequest) -> Decision:
        sdk.open_gate("thinking")
        await trio.sleep_forever()
        raise AssertionError

    async with stage(sdk) as session, session.start("hi", approve=approve) as run:
        kinds = [event.type async for event in run]
        result = await run.result()
    assert kinds[-3:] == ["tool_approval_requested", "tool_approval_denied", "run_completed"]
    assert result.status is RunStatus.COMPLETED
    assert sdk.conversations[0].heard_so_far == [ToySay("hi")]


@pytest.mark.parametrize("taken", [True, False])
async def test_another_message_goes_into_the_turn_or_becomes_a_run(
    autojump_clock: MockClock, taken: bool
) -> None:
    async def script(it: Talk) -> None:
        if it.opening == ToyOpen("s1"):
            await it.expect(ToySay("and this"))
            it.says(ToyHello("s1"), ToyTurnEnded())
            return
        await it.expect(ToySay("hi"))
        it.says(ToyHello("s1"))
        await it.gate("at work")
        match await it.heard():
            case ToyMore(id=id_, text="and this"):
                it.says(ToyTook(id_, taken))
            case other:
                raise AssertionError(other)
        it.says(ToyTurnEnded())

    sdk: Mock = MockSdk(script)
    async with stage(sdk) as session, session.start("hi") as run:
        await sdk.reached("at work")
        sdk.open_gate("at work")
        follow_up = await run.append("and this")
        assert follow_up.accepted is taken
        await run.result()
        assert (await follow_up.run.result()).status is RunStatus.COMPLETED
    assert len(sdk.conversations) == (1 if taken else 2)


async def test_the_prompt_comes_first_however_early_another_message_is_sent(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        heard = await it.heard()
        assert isinstance(heard, ToySay)
        it.says(ToyHello("s1"), ToyTurnEnded())

    sdk: Mock = MockSdk(script)
    async with stage(sdk) as session:
        for number in range(400):  # the scheduler's dice decide who is first
            run = await session.submit("hi")
            if number % 2:
                await trio.lowlevel.checkpoint()
            follow_up = await run.append("and this")
            assert (await run.result()).status is RunStatus.COMPLETED
            assert (await follow_up.run.result()).status is RunStatus.COMPLETED


async def test_a_message_to_an_agent_that_goes_is_not_lost(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        if it.opening == ToyOpen("s1"):
            await it.expect(ToySay("and this"))
            it.says(ToyHello("s1"), ToyTurnEnded())
            return
        await it.expect(ToySay("hi"))
        it.says(ToyHello("s1"))
        await it.gate("at work")
        assert isinstance(await it.heard(), ToyMore)
        sdk.connections[0].hang_up()

    sdk: Mock = MockSdk(script)
    async with stage(sdk) as session, session.start("hi") as run:
        await sdk.reached("at work")
        sdk.open_gate("at work")
        follow_up = await run.append("and this")
        assert not follow_up.accepted
        assert (await run.result()).status is RunStatus.FAILED
        assert (await follow_up.run.result()).status is RunStatus.COMPLETED


async def test_an_end_of_events_in_mid_turn_is_no_success(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        it.says(ToyHello("s1"), ToyTextDelta("half", "m1"))
        it.ends()

    async with stage(MockSdk(script)) as session, session.start("hi") as run:
        result = await run.result()
    assert (result.status, result.text) == (RunStatus.FAILED, "half")
    assert result.failure is not None
    assert result.failure.kind is FailureKind.PROTOCOL_ERROR


async def test_an_error_of_the_agent_is_a_failed_run(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        it.says(ToyHello("s1"), ToyTurnEnded("error", "no idea"))

    async with stage(MockSdk(script)) as session, session.start("hi") as run:
        result = await run.result()
    assert result.failure is not None
    assert (result.failure.kind, result.failure.message) == (
        FailureKind.PROVIDER_ERROR,
        "no idea",
    )


async def test_what_is_no_frame_is_told_and_the_run_goes_on(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        it.says(
            UntypedFrame({"type": "news"}, "unknown"),
            NoiseLine(b"starting up"),
            MalformedFrame(b'{"type":', "truncated"),
            OversizedFrame(10**9, b'{"type":"text'),
            ToyToolEnded("t9", ok=False),
        )
        it.says(ToyTurnEnded())

    async with stage(MockSdk(script)) as session, session.start("hi") as run:
        kinds = [event.type async for event in run if event.type != "message_sent"]
        result = await run.result()
    assert [each for each in kinds if each not in {"session_created", "run_started"}] == [
        "raw_received",
        "output_received",
        "error_occurred",
        "error_occurred",
        "tool_call_failed",
        "run_completed",
    ]
    assert result.status is RunStatus.COMPLETED


async def test_a_silent_agent_is_not_used_again(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        await it.expect(ToySay("hi"))
        it.says(ToyHello("s1"))
        await it.expect(INTERRUPTED)
        it.says(ToyTurnEnded("cancelled"))

    sdk: Mock = MockSdk(script)
    async with stage(sdk, model=100.0) as session, session.start("hi") as run:
        result = await run.result()
        assert (result.status, result.reason) == (RunStatus.TIMED_OUT, EndReason.IDLE)
        await trio.testing.wait_all_tasks_blocked()
        assert sdk.connections[0].is_closed


async def test_what_a_script_asserts_in_vain_ends_the_test(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        await it.expect(ToySay("something else"))

    with pytest.raises(AssertionError, match="the adapter sent"):
        async with stage(MockSdk(script)) as session, session.start("hi") as run:
            await run.result()


async def test_a_question_too_many_is_denied_and_the_others_are_asked(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        await it.expect(ToySay("hi"))
        it.says(
            ToyHello("s1"),
            *(ToyQuestion(f"q{number}", "ls") for number in range(MAX_OPEN_REQUESTS + 1)),
        )
        assert await it.heard() == SentAnswer(
            f"q{MAX_OPEN_REQUESTS}", Deny(reason=TOO_MANY_REQUESTS, by="limit")
        )
        sdk.open_gate("refused")
        answered = {(await it.heard()) for _ in range(MAX_OPEN_REQUESTS)}
        assert answered == {
            SentAnswer(f"q{number}", Allow()) for number in range(MAX_OPEN_REQUESTS)
        }
        it.says(ToyQuestion("q0", "ls"))  # a name may be used again
        await it.expect(SentAnswer("q0", Allow()))
        it.says(ToyTurnEnded())

    sdk: Mock = MockSdk(script)

    async def approve(request: ApprovalRequest) -> Decision:
        await sdk.pass_gate("refused")
        return Allow()

    async with stage(sdk) as session, session.start("hi", approve=approve) as run:
        assert (await run.result()).status is RunStatus.COMPLETED
