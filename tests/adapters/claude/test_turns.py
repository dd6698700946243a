"""Turns, from the prompt to the end."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter.kit.structured_output import find_validator_factory
from sessionmgr.model import FailureKind as K, Json, RunStatus
from sessionmgr.testing.mock_sdk import INTERRUPTED, MockSdk
from sessionmgr_adapters.claude.frames import (
    AssistantFrame,
    BackgroundTask,
    ClaudeMessage,
    ControlReplyBody,
    ControlReplyFrame,
    MessageLifecycle,
    ResultFrame,
    SystemFrame,
    TextBlock,
)
from sessionmgr_adapters.claude.outgoing import ClaudeUserMessage
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
from tests.adapters.claude.mocked_manager import Mock, open_claude_manager, ran


async def test_a_mode_that_becomes_wider_ends_the_run(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        wide = init(session_of(it), "bypassPermissions")
        it.says(running(), wide, wide)
        await it.expect(INTERRUPTED)
        it.says(result(prompt.uuid, subtype="error_during_execution", is_error=True), idle())

    async with open_claude_manager(MockSdk(script)) as session:
        run = await session.submit("hi", options={})
        types = [each.type async for each in run]
        failure = (await run.result()).failure
    assert types.count("policy_violation") == 1
    assert failure is not None
    assert failure.kind is K.PERMISSION_REFUSED


async def test_the_end_of_the_events_in_a_turn_is_a_failure(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        await heard_prompt(it)
        it.says(running(), init(session_of(it)), *text("half"))
        it.ends()

    async with open_claude_manager(MockSdk(script)) as session:
        broken = await ran(session)
    assert broken.failure is not None
    assert (broken.failure.kind, broken.text) == (K.PROTOCOL_ERROR, "half")


async def test_it_may_say_what_is_wrong_and_go(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        it.says(
            result(
                is_error=True,
                subtype="error_during_execution",
                errors=["No conversation found with it"],
            )
        )
        it.ends()

    async with open_claude_manager(MockSdk(script)) as session:
        broken = await ran(session)
    assert broken.failure is not None
    assert broken.failure.kind is K.SESSION_NOT_FOUND


async def test_a_result_without_an_idle_ends_a_turn_after_a_while(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)), *text("well"), result(prompt.uuid))

    async with open_claude_manager(MockSdk(script)) as session:
        began = trio.current_time()
        assert (await ran(session)).status is RunStatus.COMPLETED
        assert 1 < trio.current_time() - began < 5


async def test_what_goes_on_in_the_background_keeps_a_run_open(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)))
        it.says(
            SystemFrame(subtype="background_tasks_changed", tasks=[BackgroundTask(task_id="b1")])
        )
        it.says(*text("soon"), result(prompt.uuid), idle())
        await trio.sleep(10)
        it.says(SystemFrame(subtype="background_tasks_changed"))
        await trio.sleep(1)
        it.says(running(), init(session_of(it)), *text("seen"), result(), idle())

    async with open_claude_manager(MockSdk(script)) as session:
        done = await ran(session)
    assert (done.status, done.text, done.turns) == (RunStatus.COMPLETED, "seen", 2)


async def test_a_turn_that_takes_up_what_a_task_came_to_has_all_the_time_it_needs(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)))
        it.says(
            SystemFrame(subtype="background_tasks_changed", tasks=[BackgroundTask(task_id="b1")])
        )
        it.says(result(prompt.uuid), idle())
        await trio.sleep(10)
        it.says(SystemFrame(subtype="background_tasks_changed"))
        await trio.sleep(1)
        it.says(running(), init(session_of(it)))
        await trio.sleep(10)
        it.says(*text("seen"), result(), idle())

    async with open_claude_manager(MockSdk(script)) as session:
        done = await ran(session)
    assert (done.status, done.text, done.turns) == (RunStatus.COMPLETED, "seen", 2)


async def test_a_message_ends_the_wait_for_the_last_word(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)), *text("first"), result(prompt.uuid))
        await it.gate("answered")
        more = await it.heard()
        assert isinstance(more, ClaudeUserMessage)
        it.says(MessageLifecycle(command_uuid=more.uuid, state="completed"))
        await trio.sleep(1.5)
        it.says(*text("second"), result(more.uuid), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("answered")
        await trio.sleep(1)
        sdk.open_gate("answered")
        assert (await run.append("more")).accepted
        assert (await run.result()).text == "second"


async def test_a_task_that_begins_after_the_result_keeps_a_run_open(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)), result(prompt.uuid))
        await trio.sleep(1)
        it.says(
            SystemFrame(subtype="background_tasks_changed", tasks=[BackgroundTask(task_id="b1")])
        )
        await trio.sleep(10)
        it.says(*text("seen"), SystemFrame(subtype="background_tasks_changed"), idle())

    async with open_claude_manager(MockSdk(script)) as session:
        began = trio.current_time()
        assert (await ran(session)).text == "seen"
        assert 11 <= trio.current_time() - began < 15


async def test_a_task_that_ends_without_a_word_ends_the_run(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        started = SystemFrame(subtype="task_started", task_id="b1", is_backgrounded=True)
        it.says(running(), init(session_of(it)), started, result(prompt.uuid), idle())
        await trio.sleep(10)
        it.says(SystemFrame(subtype="task_notification", task_id="b1"))

    async with open_claude_manager(MockSdk(script)) as session:
        began = trio.current_time()
        assert (await ran(session)).status is RunStatus.COMPLETED
        assert 10 < trio.current_time() - began < 15


async def test_an_older_one_does_not_say_that_a_task_is_in_the_background(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)), tool("t1", "Bash", {"run_in_background": True}))
        it.says(SystemFrame(subtype="task_started", task_id="b1", tool_use_id="t1"))
        it.says(tool_result("t1", "started"), result(prompt.uuid), idle())
        await trio.sleep(10)
        it.says(SystemFrame(subtype="task_notification", task_id="b1"))

    async with open_claude_manager(MockSdk(script)) as session:
        began = trio.current_time()
        assert (await ran(session)).status is RunStatus.COMPLETED
        assert 10 < trio.current_time() - began < 15


async def test_an_error_message_is_no_answer_of_the_model(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        message = ClaudeMessage(content=[TextBlock("API Error: 500")], model="<synthetic>")
        it.says(running(), init(session_of(it)))
        it.says(AssistantFrame(message=message, error="server_error", api_error_status=500))
        it.says(result(prompt.uuid, is_error=True, result="API Error: 500"), idle())

    async with open_claude_manager(MockSdk(script)) as session:
        failed = await ran(session)
    assert failed.failure is not None
    assert (failed.text, failed.failure.message) == ("", "API Error: 500")
    assert failed.failure.retryable


async def test_structured_output_is_there_and_valid_or_the_run_has_failed(
    autojump_clock: MockClock,
) -> None:
    outputs: list[Json] = [None, {"n": 1}, {"n": "one"}]

    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        output = outputs[len(sdk.conversations) - 1]
        more = {} if output is None else {"structured_output": output}
        it.says(running(), init(session_of(it)), result(prompt.uuid, **more), idle())

    sdk: Mock = MockSdk(script)
    schema: Json = {"type": "object", "properties": {"n": {"type": "integer"}}}
    async with open_claude_manager(sdk) as session:
        runs = [await (await session.submit("hi", schema=schema)).result() for _ in outputs]
        impossible = await (await session.submit("hi", schema={"type": "none"})).result()
    found = [None if each.failure is None else each.failure.kind for each in runs]
    is_validated = find_validator_factory() is not None
    assert found == [K.STRUCTURED_INVALID, None, K.STRUCTURED_INVALID if is_validated else None]
    assert runs[1].structured == {"n": 1}
    assert impossible.failure is not None
    assert impossible.failure.kind is K.CONFIG_INVALID
    assert len(sdk.conversations) == len(outputs)


async def test_a_turn_without_a_request_answers_no_message(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)))
        it.says(ResultFrame(subtype="success", origin={"kind": "task-notification"}), idle())
        await trio.sleep(10)
        it.says(running(), *text("well"), result(prompt.uuid), idle())

    async with open_claude_manager(MockSdk(script)) as session:
        done = await ran(session)
    assert (done.status, done.text) == (RunStatus.COMPLETED, "well")


async def test_a_result_of_another_kind_than_success_is_none(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)))
        it.says(result(prompt.uuid, subtype="error_max_turns", is_error=False), idle())

    async with open_claude_manager(MockSdk(script)) as session:
        done = await ran(session)
    assert done.failure is not None
    assert (done.status, done.failure.kind) == (RunStatus.FAILED, K.BUDGET_EXCEEDED)
    assert done.reason == "budget"


def confirmed(*queued: str) -> ControlReplyFrame:
    response: Json = {"still_queued": [*queued], "cancelled": []}
    reply = ControlReplyBody(subtype="success", request_id="interrupt-1", response=response)
    return ControlReplyFrame(response=reply)


@pytest.mark.parametrize("queued", [(), ("another",)])
async def test_a_confirmed_interrupt_is_over_with_the_result_of_the_turn(
    autojump_clock: MockClock, queued: tuple[str, ...]
) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)), confirmed())  # the confirmation answers no request
        await it.gate("at work")
        await it.expect(INTERRUPTED)
        it.says(confirmed(*queued))
        await trio.sleep(0.5)
        it.says(result(prompt.uuid, subtype="error_during_execution", is_error=True))
        await trio.sleep(0.5)
        it.says(idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("at work")
        began = trio.current_time()
        run.cancel()
        sdk.open_gate("at work")
        assert (await run.result()).status is RunStatus.CANCELLED
        assert trio.current_time() - began == pytest.approx(1.0 if queued else 0.5)
        assert not sdk.connections[0].is_closed  # the process is used again


async def test_a_confirmed_interrupt_waits_for_what_is_in_the_background(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        tasks = SystemFrame(
            subtype="background_tasks_changed", tasks=[BackgroundTask(task_id="b1")]
        )
        it.says(running(), init(session_of(it)), tasks)
        await it.gate("at work")
        await it.expect(INTERRUPTED)
        it.says(confirmed(), result(prompt.uuid, subtype="error_during_execution", is_error=True))
        await trio.sleep(0.5)
        it.says(SystemFrame(subtype="background_tasks_changed"), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("at work")
        began = trio.current_time()
        run.cancel()
        sdk.open_gate("at work")
        assert (await run.result()).status is RunStatus.CANCELLED
        assert trio.current_time() - began == pytest.approx(0.5)


async def test_a_process_with_something_in_the_background_is_not_used_after_an_interrupt(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        tasks = SystemFrame(
            subtype="background_tasks_changed", tasks=[BackgroundTask(task_id="b1")]
        )
        it.says(running(), init(session_of(it)), tasks, result(prompt.uuid), idle())
        await it.gate("in the background")
        await it.expect(INTERRUPTED)

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("in the background")
        run.cancel()
        sdk.open_gate("in the background")
        assert (await run.result()).status is RunStatus.CANCELLED
        assert sdk.connections[0].is_closed


async def test_a_process_whose_model_was_silent_is_not_used_again(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)))
        await it.expect(INTERRUPTED)  # the agent reacts all the same
        it.says(result(prompt.uuid, subtype="error_during_execution", is_error=True), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk, model=10) as session:
        assert (await ran(session)).status is RunStatus.TIMED_OUT
        assert sdk.connections[0].is_closed


async def test_a_turn_that_begins_after_a_confirmed_interrupt_is_interrupted_too(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)))
        await it.gate("at work")
        await it.expect(INTERRUPTED)
        it.says(confirmed(), running(), init(session_of(it)))
        await it.expect(INTERRUPTED)
        it.says(confirmed(), result(prompt.uuid, subtype="error_during_execution", is_error=True))

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("at work")
        run.cancel()
        sdk.open_gate("at work")
        assert (await run.result()).status is RunStatus.CANCELLED


async def test_what_goes_on_after_an_interrupt_is_interrupted_too(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)))
        await it.gate("at work")
        await it.expect(INTERRUPTED)
        it.says(result(prompt.uuid, subtype="error_during_execution", is_error=True))
        it.says(running(), init(session_of(it)))  # a queued message, in older versions
        await it.expect(INTERRUPTED)
        it.says(ResultFrame(subtype="error_during_execution", is_error=True), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("at work")
        began = trio.current_time()
        run.cancel()
        sdk.open_gate("at work")
        assert (await run.result()).status is RunStatus.CANCELLED
        assert trio.current_time() - began < 1
