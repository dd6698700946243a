"""The whole adapter in virtual time, Claude Code a script."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.manager import Clocks, SessionHandle, open_manager
from sessionmgr.model import FailureKind, Json, RunResult, RunStatus
from sessionmgr.testing.mock_sdk import INTERRUPTED, MockSdk, with_sdk
from sessionmgr.wire import NoFrame
from sessionmgr_adapters.claude import ClaudeAdapter, ClaudeHook, ClaudeOptions, ClaudeTool
from sessionmgr_adapters.claude.blocks import TextBlock, ToolResult
from sessionmgr_adapters.claude.frames import (
    Ask,
    Assistant,
    CompactMetadata,
    ControlReply,
    Frame,
    HostRequest,
    HostRequestWithdrawn,
    Lifecycle,
    Message,
    Reply,
    System,
    Task,
    User,
)
from sessionmgr_adapters.claude.launch import ClaudeSpec
from sessionmgr_adapters.claude.orders import HostReply, Request, Say, Told
from tests.adapters.claude.mocked import (
    ACCOUNT,
    HELLO,
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

Mock = MockSdk[Told, Frame | NoFrame]
Script = Callable[[Talk], Awaitable[None]]


@asynccontextmanager
async def stage(
    sdk: Mock, cwd: Path | None = None, **clocks: float
) -> AsyncGenerator[SessionHandle]:
    adapter = with_sdk(ClaudeAdapter, sdk)
    async with sdk, open_manager(adapters={"claude": adapter}, clocks=Clocks(**clocks)) as manager:
        yield await manager.open_session("claude", cwd=cwd or ".")


async def ran(session: SessionHandle, prompt: str = "hi", **options: object) -> RunResult:
    run = await session.submit(prompt, options=ClaudeOptions(**options))  # type: ignore[arg-type]
    return await run.result()


async def answer(it: Talk, words: str = "well", hello: Json = None) -> Say:
    """Answer one prompt, and nothing else."""
    prompt = await heard_prompt(it, hello)
    it.says(running(), init(session_of(it)), *text(words), result(prompt.uuid), idle())
    return prompt


def told(**known: Json) -> dict[str, Json]:
    return {**HELLO, **known}


@pytest.mark.parametrize(
    ("hello", "options", "kind"),
    [
        (told(claude_code_version="2.1.100"), {}, FailureKind.CONFIG_INVALID),
        (told(current_permission_mode="bypassPermissions"), {}, FailureKind.PERMISSION_REFUSED),
        (told(current_permission_mode="brandNew"), {}, FailureKind.PERMISSION_REFUSED),
        (told(), {"billing": "subscription"}, FailureKind.BILLING),
        (told(account={"tokenSource": "claude.ai"}), {"billing": "api"}, FailureKind.BILLING),
        (told(account={}), {"billing": "subscription"}, FailureKind.BILLING),
    ],
)
async def test_what_is_not_as_it_should_be_is_refused_before_anything_is_asked(
    autojump_clock: MockClock, hello: Json, options: dict[str, object], kind: FailureKind
) -> None:
    async def script(it: Talk) -> None:
        heard = await it.heard()
        assert isinstance(heard, Request)
        it.says(
            ControlReply(response=Reply(subtype="success", request_id=heard.id, response=hello))
        )
        raise AssertionError(f"it was asked: {await it.heard()}")

    async with stage(MockSdk(script)) as session:
        failed = await ran(session, "hi", **options)
    assert failed.failure is not None
    assert (failed.status, failed.failure.kind) == (RunStatus.FAILED, kind)


@pytest.mark.parametrize(
    ("account", "billing", "credential"),
    [
        (ACCOUNT, "api", "api_key"),
        ({"tokenSource": "CLAUDE_CODE_OAUTH_TOKEN"}, "subscription", "subscription"),
        ({"tokenSource": "ANTHROPIC_AUTH_TOKEN"}, "api", "unknown"),
        ({"apiProvider": "bedrock"}, "api", "unknown"),
    ],
)
async def test_who_pays_is_told(
    autojump_clock: MockClock, account: Json, billing: str, credential: str
) -> None:
    async def script(it: Talk) -> None:
        await answer(it, hello=told(account=account))

    async with stage(MockSdk(script)) as session:
        run = await session.submit("hi", options={"billing": billing})
        events = [each async for each in run if each.type == "run_started"]
        assert (await run.result()).status is RunStatus.COMPLETED
    assert [getattr(each, "credential") for each in events] == [credential]  # noqa: B009


async def test_a_mode_that_becomes_wider_ends_the_run(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it), "bypassPermissions"))
        await it.expect(INTERRUPTED)
        it.says(result(prompt.uuid, subtype="error_during_execution", is_error=True), idle())

    async with stage(MockSdk(script)) as session:
        run = await session.submit("hi", options={})
        types = [each.type async for each in run]
        failure = (await run.result()).failure
    assert "policy_violation" in types
    assert failure is not None
    assert failure.kind is FailureKind.PERMISSION_REFUSED


async def test_what_can_be_changed_is_changed_in_the_child_that_is_there(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        await answer(it)

    sdk: Mock = MockSdk(script)
    async with stage(sdk) as session:
        await (await session.submit("one", model="opus", effort="low")).result()
        run = await session.submit("two", model="haiku", effort="high", permission_mode="plan")
        await run.result()
        assert len(sdk.connections) == 1
        asked = [each for each in sdk.conversations[1].heard_so_far if isinstance(each, Request)]
        assert [(each.subtype, each.fields) for each in asked] == [
            ("apply_flag_settings", {"settings": {"useAutoModeDuringPlan": False}}),
            ("set_permission_mode", {"mode": "plan"}),
            ("set_model", {"model": "haiku"}),
            ("apply_flag_settings", {"settings": {"effortLevel": "high"}}),
        ]
        await (await session.submit("three", permission_mode="full_auto")).result()
        assert len(sdk.connections) == 2  # no child learns to ask no more
        assert sdk.connections[0].is_closed
        first, second = (each.spec for each in sdk.connections)
        assert isinstance(first, ClaudeSpec)
        assert isinstance(second, ClaudeSpec)
        assert (first.resumes, second.resumes) == (None, first.session)


@pytest.mark.parametrize(
    ("subtype", "kind", "wishes"),
    [
        ("set_model", FailureKind.MODEL_NOT_FOUND, {"model": "none"}),
        ("set_permission_mode", FailureKind.PERMISSION_REFUSED, {"permission_mode": "plan"}),
        ("apply_flag_settings", FailureKind.CONFIG_INVALID, {"effort": "high"}),
        ("initialize", FailureKind.CONFIG_INVALID, {}),
    ],
)
async def test_a_change_that_is_refused_ends_the_run(
    autojump_clock: MockClock, subtype: str, kind: FailureKind, wishes: dict[str, str]
) -> None:
    async def script(it: Talk) -> None:
        while isinstance(heard := await it.heard(), Request):
            refused = heard.subtype == subtype
            it.says(
                ControlReply(
                    response=Reply(
                        subtype="error" if refused else "success",
                        request_id=heard.id,
                        response=HELLO,
                        error="no",
                        error_code="refused",
                    )
                )
            )
        assert isinstance(heard, Say)
        it.says(running(), init(session_of(it)), result(heard.uuid), idle())

    async with stage(MockSdk(script)) as session:
        if subtype != "initialize":
            assert (await ran(session)).status is RunStatus.COMPLETED
        run = await session.submit("hi", **wishes)  # type: ignore[arg-type]
        failure = (await run.result()).failure
    assert failure is not None
    assert (failure.kind, failure.provider_code) == (kind, "refused")


async def test_a_child_of_a_session_is_kept_for_five_minutes(autojump_clock: MockClock) -> None:
    sdk: Mock = MockSdk(answer)  # type: ignore[arg-type]
    async with stage(sdk) as session:
        await ran(session)
        await trio.sleep(290)
        await ran(session)
        assert len(sdk.connections) == 1
        await trio.sleep(301)
        assert sdk.connections[0].is_closed
        await ran(session, keep=False)
        await trio.sleep(0.1)
        assert sdk.connections[1].is_closed


async def test_a_child_that_died_meanwhile_is_replaced(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        if len(sdk.conversations) == 2:
            await it.heard()
            sdk.connections[0].hang_up()
        else:
            await answer(it)

    sdk: Mock = MockSdk(script)
    async with stage(sdk) as session:
        assert (await ran(session)).status is RunStatus.COMPLETED
        assert (await ran(session)).status is RunStatus.COMPLETED
        assert len(sdk.connections) == 2


async def test_the_end_of_the_events_in_a_turn_is_a_failure(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        await heard_prompt(it)
        it.says(running(), init(session_of(it)), *text("half"))
        it.ends()

    async with stage(MockSdk(script)) as session:
        broken = await ran(session)
    assert broken.failure is not None
    assert (broken.failure.kind, broken.text) == (FailureKind.PROTOCOL_ERROR, "half")


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

    async with stage(MockSdk(script)) as session:
        broken = await ran(session)
    assert broken.failure is not None
    assert broken.failure.kind is FailureKind.SESSION_NOT_FOUND


async def test_a_result_without_an_idle_ends_a_turn_after_a_while(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)), *text("well"), result(prompt.uuid))

    async with stage(MockSdk(script)) as session:
        began = trio.current_time()
        assert (await ran(session)).status is RunStatus.COMPLETED
        assert 1 < trio.current_time() - began < 5


async def test_an_older_one_tells_only_by_echoes_what_it_has_taken(
    autojump_clock: MockClock,
) -> None:
    old = System(subtype="init", session_id="s", permission_mode="default", version="2.1.197")

    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), old, tool("t1", "Bash"))
        await it.gate("in a tool")
        it.says(tool_result("t1", "done"))
        more = await it.heard()
        assert isinstance(more, Say)  # it was held until the tool had its result
        it.says(User(message=Message(content="more"), uuid=more.uuid, is_replay=True))
        unnamed = result(prompt.uuid)
        it.says(*text("both"), Assistant(message=Message(content="well")))
        it.says(type(unnamed)(subtype="success"), idle())

    sdk: Mock = MockSdk(script)
    async with stage(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("in a tool")
        follow_up = await run.append("more")
        assert follow_up.accepted
        sdk.open_gate("in a tool")
        done = await run.result()
    assert (done.status, done.text) == (RunStatus.COMPLETED, "well")


async def test_a_message_is_held_while_the_context_is_shortened(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)), System(subtype="status", status="compacting"))
        await it.gate("compacting")
        it.says(System(subtype="status", compact_result="success"))
        metadata = CompactMetadata(trigger="auto")
        it.says(System(subtype="compact_boundary", compact_metadata=metadata))
        more = await it.heard()
        assert isinstance(more, Say)
        assert more.priority == "later"
        it.says(Lifecycle(command_uuid=more.uuid, state="queued"))
        it.says(result(prompt.uuid, is_error=True, result="not well"))
        it.says(running(), init(session_of(it)), *text("more"), result(more.uuid), idle())

    sdk: Mock = MockSdk(script)
    async with stage(sdk) as session:
        run = await session.submit("hi", options={"follow_up": "later"})
        await sdk.reached("compacting")
        assert (await run.append("more")).accepted
        assert len(sdk.conversations[0].heard_so_far) == 2
        sdk.open_gate("compacting")
        types = [each.type async for each in run]
        done = await run.result()
    assert (done.status, done.text, done.turns) == (RunStatus.COMPLETED, "more", 2)
    assert "error_occurred" in types  # of the turn that went wrong
    assert {"compaction_started", "compaction_completed"} <= set(types)


async def test_a_message_that_nobody_has_heard_becomes_a_run(autojump_clock: MockClock) -> None:
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
    async with stage(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("at work")
        sdk.open_gate("at work")
        follow_up = await run.append("more")
        assert not follow_up.accepted
        assert (await run.result()).status is RunStatus.FAILED
        assert (await follow_up.run.result()).status is RunStatus.COMPLETED


async def test_what_goes_on_in_the_background_keeps_a_run_open(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)))
        it.says(System(subtype="background_tasks_changed", tasks=[Task(task_id="b1")]))
        it.says(*text("soon"), result(prompt.uuid), idle())
        await trio.sleep(10)
        it.says(System(subtype="background_tasks_changed"))
        await trio.sleep(1)
        it.says(running(), init(session_of(it)), *text("seen"), result(), idle())

    async with stage(MockSdk(script)) as session:
        done = await ran(session)
    assert (done.status, done.text, done.turns) == (RunStatus.COMPLETED, "seen", 2)


async def test_a_task_that_ends_without_a_word_ends_the_run(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        started = System(subtype="task_started", task_id="b1", is_backgrounded=True)
        it.says(running(), init(session_of(it)), started, result(prompt.uuid), idle())
        await trio.sleep(10)
        it.says(System(subtype="task_notification", task_id="b1"))

    async with stage(MockSdk(script)) as session:
        began = trio.current_time()
        assert (await ran(session)).status is RunStatus.COMPLETED
        assert 10 < trio.current_time() - began < 15


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
    async with stage(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("in a tool")
        run.cancel()
        sdk.open_gate("in a tool")
        assert (await run.result()).status is RunStatus.CANCELLED
        assert sdk.connections[0].is_closed


async def test_what_it_asks_of_its_host_is_answered(autojump_clock: MockClock) -> None:
    async def add(given: dict[str, Json]) -> Json:
        return {"sum": len(given)}

    async def fails(event: dict[str, Json]) -> dict[str, Json]:
        raise ValueError("of little use")

    answers: list[HostReply] = []

    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)))
        call: Json = {"method": "tools/call", "id": 1, "params": {"name": "add", "arguments": {}}}
        asks = (
            Ask(subtype="mcp_message", message=call),
            Ask(subtype="hook_callback", callback_id="0"),
            Ask(subtype="hook_callback", callback_id="7"),
            Ask(subtype="something_new"),
        )
        for number, each in enumerate(asks):
            it.says(HostRequest(request_id=str(number), request=each))
            heard = await it.heard()
            assert isinstance(heard, HostReply)
            answers.append(heard)
        question = Ask(subtype="can_use_tool", tool_name="mcp__sessionmgr__add", tool_use_id="t")
        it.says(HostRequest(request_id="q", request=question))
        await it.heard()  # allowed by whoever gave it
        it.says(result(prompt.uuid), idle())

    tools = (ClaudeTool(name="add", description="", call=add),)
    hooks = (ClaudeHook("Stop", fails),)
    async with stage(MockSdk(script)) as session:
        done = await ran(session, tools=tools, hooks=hooks)
    assert done.status is RunStatus.COMPLETED, done.failure
    assert '{\\"sum\\":0}' in str(answers[0].response).replace('"', '\\"')
    assert [each.error for each in answers[1:]] == [
        "ValueError: of little use",
        "LookupError: there is no hook '7'",
        "LookupError: this host does not serve 'something_new'",
    ]


async def test_a_question_that_is_withdrawn_wants_no_answer(autojump_clock: MockClock) -> None:
    asked = trio.Event()

    async def approve(request: object) -> None:
        asked.set()
        await trio.sleep_forever()

    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        question = Ask(subtype="can_use_tool", tool_name="Bash", tool_use_id="t1")
        it.says(running(), init(session_of(it)), HostRequest(request_id="q", request=question))
        await asked.wait()
        it.says(HostRequestWithdrawn(request_id="q"), HostRequestWithdrawn(request_id="none"))
        it.says(result(prompt.uuid), idle())
        with trio.move_on_after(1):
            raise AssertionError(f"it was answered: {await it.heard()}")

    async with stage(MockSdk(script)) as session:
        run = await session.submit("hi", approve=approve)  # type: ignore[arg-type]
        assert (await run.result()).status is RunStatus.COMPLETED


async def test_an_error_message_is_no_answer_of_the_model(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        message = Message(content=[TextBlock("API Error: 500")], model="<synthetic>")
        it.says(running(), init(session_of(it)))
        it.says(Assistant(message=message, error="server_error", api_error_status=500))
        it.says(result(prompt.uuid, is_error=True, result="API Error: 500"), idle())

    async with stage(MockSdk(script)) as session:
        failed = await ran(session)
    assert failed.failure is not None
    assert (failed.text, failed.failure.message) == ("", "API Error: 500")
    assert failed.failure.retryable


async def test_an_image_that_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    async def script(it: Talk) -> None:
        raise AssertionError("it was asked")

    async with stage(MockSdk(script), tmp_path) as session:
        run = await session.submit("hi", images=("none.png",))
        failure = (await run.result()).failure
    assert failure is not None
    assert failure.kind is FailureKind.CONFIG_INVALID


async def test_a_run_without_its_structured_output_has_failed(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        output: Json = {"n": 1}
        more = {"structured_output": output} if len(sdk.conversations) == 2 else {}
        it.says(running(), init(session_of(it)), result(prompt.uuid, **more), idle())

    sdk: Mock = MockSdk(script)
    async with stage(sdk) as session:
        first = await (await session.submit("hi", schema={"type": "object"})).result()
        second = await (await session.submit("hi", schema={"type": "object"})).result()
    assert first.failure is not None
    assert first.failure.kind is FailureKind.STRUCTURED_INVALID
    assert second.structured == {"n": 1}


async def test_an_image_that_a_tool_shows_is_kept_in_the_store(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        source: Json = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}
        content: Json = [{"type": "image", "source": source}]
        shown = User(message=Message(content=[ToolResult("t1", content)]))
        it.says(running(), init(session_of(it)), tool("t1", "Read"), shown)
        it.says(result(prompt.uuid), idle())

    async with stage(MockSdk(script)) as session:
        (image,) = (await ran(session)).images
    assert (image.media_type, image.bytes) == ("image/png", 5)
    assert image.blob == hashlib.sha256(b"hello").hexdigest()


@pytest.mark.parametrize("version", ["2.1.197", "2.1.100"])
async def test_an_older_one_is_asked_for_its_version_by_another_way(version: str) -> None:
    asked: list[Say] = []

    async def script(it: Talk) -> None:
        asked.append(await answer(it, hello={"account": ACCOUNT}))

    async with stage(MockSdk(script)) as session:
        old = await ran(session, "/compact", command=("/bin/echo", version))
        assert old.failure is not None
        assert version in old.failure.message or "slash_commands" in old.failure.message
        assert asked == []
        taken = await ran(session, "/x", command=("/bin/echo", version), slash_commands=True)
    assert (taken.status is RunStatus.COMPLETED) == (version == "2.1.197")
    assert [each.is_text for each in asked] == ([False] if version == "2.1.197" else [])


async def test_an_order_of_cancel_while_it_is_greeted_asks_nothing(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        await it.heard()
        await it.gate("greeted")
        raise AssertionError(f"it was asked: {await it.heard()}")

    sdk: Mock = MockSdk(script)
    async with stage(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("greeted")
        run.cancel()
        assert (await run.result()).status is RunStatus.CANCELLED
        assert sdk.connections[0].is_closed  # nobody knows what it would answer
