"""Requests of Claude Code to its host."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from sessionmgr.adapter import Allow, Deny
from sessionmgr.adapter.kit.request_handler import MAX_OPEN_REQUESTS, TOO_MANY_REQUESTS
from sessionmgr.model import Json, RunStatus
from sessionmgr.testing.mock_sdk import MockSdk, SentAnswer
from sessionmgr_adapters.claude import ClaudeHook, ClaudeTool
from sessionmgr_adapters.claude.frames import (
    HostRequest,
    HostRequestBody,
    HostRequestWithdrawn,
)
from sessionmgr_adapters.claude.outgoing import ControlResponse
from tests.adapters.claude.mock_agent import (
    Talk,
    heard_prompt,
    idle,
    init,
    result,
    running,
    session_of,
)
from tests.adapters.claude.mocked_manager import open_claude_manager, ran
from tests.adapters.claude.run_contexts import add


async def test_what_it_asks_of_its_host_is_answered(autojump_clock: MockClock) -> None:
    async def add(given: dict[str, Json]) -> Json:
        return {"sum": len(given)}

    async def fails(event: dict[str, Json]) -> dict[str, Json]:
        raise ValueError("of little use")

    answers: list[ControlResponse] = []

    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)))
        call: Json = {"method": "tools/call", "id": 1, "params": {"name": "add", "arguments": {}}}
        asks = (
            HostRequestBody(subtype="mcp_message", message=call),
            HostRequestBody(subtype="hook_callback", callback_id="0"),
            HostRequestBody(subtype="hook_callback", callback_id="7"),
            HostRequestBody(subtype="something_new"),
        )
        for number, each in enumerate(asks):
            it.says(HostRequest(request_id=str(number), request=each))
            heard = await it.heard()
            assert isinstance(heard, ControlResponse)
            answers.append(heard)
        question = HostRequestBody(
            subtype="can_use_tool", tool_name="mcp__sessionmgr__add", tool_use_id="t"
        )
        it.says(HostRequest(request_id="q", request=question))
        await it.heard()  # the caller allows it by passing the tool
        it.says(result(prompt.uuid), idle())

    tools = (ClaudeTool(name="add", description="", call=add),)
    hooks = (ClaudeHook("Stop", fails),)
    async with open_claude_manager(MockSdk(script)) as session:
        done = await ran(session, tools=tools, hooks=hooks)
    assert done.status is RunStatus.COMPLETED, done.failure
    assert '{\\"sum\\":0}' in str(answers[0].response).replace('"', '\\"')
    assert [each.error for each in answers[1:]] == [
        "ValueError: of little use",
        "LookupError: unknown hook '7'",
        "LookupError: this host does not serve 'something_new'",
    ]


async def test_a_question_that_is_withdrawn_wants_no_answer(autojump_clock: MockClock) -> None:
    asked = trio.Event()

    async def approve(request: object) -> None:
        asked.set()
        await trio.sleep_forever()

    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        question = HostRequestBody(subtype="can_use_tool", tool_name="Bash", tool_use_id="t1")
        it.says(running(), init(session_of(it)), HostRequest(request_id="q", request=question))
        await asked.wait()
        it.says(HostRequestWithdrawn(request_id="q"), HostRequestWithdrawn(request_id="none"))
        it.says(result(prompt.uuid), idle())
        with trio.move_on_after(1):
            raise AssertionError(f"it was answered: {await it.heard()}")

    async with open_claude_manager(MockSdk(script)) as session:
        run = await session.submit("hi", approve=approve)  # type: ignore[arg-type]
        assert (await run.result()).status is RunStatus.COMPLETED


async def test_a_tool_of_the_callers_allows_none_of_its_own_that_is_called_alike(
    autojump_clock: MockClock,
) -> None:
    answers: list[object] = []

    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)))
        for number, name in enumerate(("Bash", "mcp__sessionmgr__Bash")):
            question = HostRequestBody(
                subtype="can_use_tool", tool_name=name, tool_use_id=f"t{number}"
            )
            it.says(HostRequest(request_id=f"q{number}", request=question))
            answers.append(await it.heard())
        it.says(result(prompt.uuid), idle())

    async with open_claude_manager(MockSdk(script)) as session:
        await ran(session, tools=(ClaudeTool("Bash", "Ours.", add),))
    assert [isinstance(each, SentAnswer) and type(each.decision) for each in answers] == [
        Deny,
        Allow,
    ]


async def test_a_request_too_many_is_refused(autojump_clock: MockClock) -> None:
    async def hangs(event: dict[str, Json]) -> dict[str, Json]:
        await trio.sleep_forever()
        raise AssertionError

    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        it.says(running(), init(session_of(it)))
        ask = HostRequestBody(subtype="hook_callback", callback_id="0")
        it.says(
            *(HostRequest(request_id=f"q{n}", request=ask) for n in range(MAX_OPEN_REQUESTS + 1))
        )
        await it.expect(ControlResponse(id=f"q{MAX_OPEN_REQUESTS}", error=TOO_MANY_REQUESTS))
        it.says(result(prompt.uuid), idle())

    async with open_claude_manager(MockSdk(script)) as session:
        done = await ran(session, hooks=(ClaudeHook("Stop", hangs),))
    assert done.status is RunStatus.COMPLETED, done.failure
