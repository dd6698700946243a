"""Requests of Codex to its host, on a mock."""

from __future__ import annotations

from typing import NoReturn

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter import Allow, ApprovalRequest, Decision, Deny
from sessionmgr.adapter.kit.json_rpc_caller import PeerReply, PeerRequest
from sessionmgr.adapter.kit.request_handler import MAX_OPEN_REQUESTS, TOO_MANY_REQUESTS
from sessionmgr.manager import open_manager
from sessionmgr.model import Json, ToolApprovalDenied
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import MockSdk, SentAnswer, with_sdk
from sessionmgr_adapters.codex import CodexAdapter, CodexOptions, CodexTool
from sessionmgr_adapters.codex.approvals import request_name
from sessionmgr_adapters.codex.frames import ItemStartedNotice, RequestResolvedNotice
from sessionmgr_adapters.codex.items import FileChangeItem, FileUpdate
from tests.adapters.codex.mock_agent import (
    COMMAND,
    Talk,
    begin,
    end,
    opening,
    thread_of,
)
from tests.adapters.codex.mocked_manager import answered, ask, play


async def test_with_nobody_to_ask_all_is_denied() -> None:
    for method in (COMMAND, "item/fileChange/requestApproval", "item/permissions/requestApproval"):
        answer = await ask(PeerRequest(0, method, {"itemId": "c"}))
        assert isinstance(answer, SentAnswer)
        assert isinstance(answer.decision, Deny)


async def test_a_request_that_nobody_knows_is_refused() -> None:
    answer = await ask(PeerRequest(7, "attestation/generate", {}))
    assert isinstance(answer, PeerReply)
    assert (answer.id, answer.result) == (7, None)
    assert answer.error == "this host does not serve 'attestation/generate'"


def patch(path: str) -> ItemStartedNotice:
    return ItemStartedNotice(
        item=FileChangeItem(id="c", changes=[FileUpdate(path)], status="inProgress")
    )


@pytest.mark.parametrize(("path", "granted"), [("a.txt", True), ("/etc/passwd", False)])
async def test_edits_inside_are_granted_where_edits_are_accepted(path: str, granted: bool) -> None:
    asking = PeerRequest(0, "item/fileChange/requestApproval", {"itemId": "c"})
    answer = await ask(asking, mode="accept_edits", before=patch(path))
    assert isinstance(answer, SentAnswer)
    assert isinstance(answer.decision, Allow) is granted


async def test_a_question_that_is_withdrawn_is_asked_no_more() -> None:
    async def withdrawn(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        it.says(PeerRequest(3, COMMAND, {"itemId": "c", "command": "ls"}))
        await it.gate("asked")
        it.says(RequestResolvedNotice(thread_id=thread_of(call), request_id=3))
        await it.gate("withdrawn")
        end(it, thread_of(call))

    async with (
        MockSdk(withdrawn) as sdk,
        open_manager(
            store=MemoryStore(), adapters={"codex": with_sdk(CodexAdapter, sdk)}
        ) as manager,
    ):
        asked, dropped = trio.Event(), trio.Event()

        async def approve(_: ApprovalRequest) -> Decision:
            asked.set()
            try:
                await trio.sleep_forever()
            finally:
                dropped.set()
            raise AssertionError

        session = await manager.open_session("codex", approve=approve)
        run = await session.submit("hi")
        await asked.wait()
        sdk.open_gate("asked")
        await dropped.wait()
        sdk.open_gate("withdrawn")
        assert (await run.result()).status == "completed"
        heard = sdk.conversations[0].heard_so_far
        assert not any(isinstance(each, SentAnswer) for each in heard)


async def test_a_question_whose_name_was_used_before_can_be_withdrawn(
    autojump_clock: MockClock,
) -> None:
    both, dropped = trio.Event(), trio.Event()

    async def asks(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        for name in ("first", "second"):
            it.says(PeerRequest(3, COMMAND, {"itemId": name, "command": name}))
        assert isinstance(await it.heard(), SentAnswer)
        it.says(RequestResolvedNotice(thread_id=thread_of(call), request_id=3))
        await dropped.wait()
        end(it, thread_of(call))

    async def approve(request: ApprovalRequest) -> Decision:
        if request.tool_call_id == "first":
            await both.wait()
            return Allow()
        both.set()
        try:
            await trio.sleep_forever()
        finally:
            dropped.set()
        raise AssertionError

    assert (await play(asks, approve=approve))[0].status == "completed"


@pytest.mark.parametrize("method", [COMMAND, "item/tool/call"])
async def test_a_request_too_many_is_refused_and_nobody_hears_of_it(method: str) -> None:
    heard: list[object] = []
    asked: list[Json] = []

    async def asks(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        params: dict[str, Json] = {"itemId": "c", "tool": "hangs", "arguments": {}}
        it.says(*(PeerRequest(number, method, params) for number in range(MAX_OPEN_REQUESTS + 1)))
        heard.append(await it.heard())
        end(it, thread_of(call))

    async def hangs(given: object) -> NoReturn:
        asked.append(None)
        await trio.sleep_forever()
        raise AssertionError

    tool = CodexTool("hangs", "Never end.", hangs)
    await play(asks, approve=hangs, options=CodexOptions(tools=(tool,)))
    refusals = {
        COMMAND: SentAnswer(
            request_name(MAX_OPEN_REQUESTS), Deny(reason=TOO_MANY_REQUESTS, by="limit")
        ),
        "item/tool/call": PeerReply(MAX_OPEN_REQUESTS, error=TOO_MANY_REQUESTS),
    }
    assert (heard, len(asked)) == ([refusals[method]], MAX_OPEN_REQUESTS)


async def test_a_function_that_is_not_called_is_denied_as_the_call_that_it_is() -> None:
    tool = CodexTool("weather", "Say what the weather is.", weather)
    _, events = await answered(
        PeerRequest(0, "item/tool/call", {"callId": "c", "tool": "weather", "arguments": {}}),
        mode="plan",
        options=CodexOptions(tools=(tool,)),
    )
    denied = [each.tool_call_id for each in events if isinstance(each, ToolApprovalDenied)]
    assert denied == ["c"]


async def weather(given: dict[str, Json]) -> Json:
    await trio.lowlevel.checkpoint()
    if "city" not in given:
        raise ValueError("which city?")
    return {"mild": given["city"]}


@pytest.mark.parametrize(
    ("mode", "arguments", "said", "success"),
    [
        ("default", {"city": "Rome"}, '{"mild":"Rome"}', True),
        ("default", {}, "ValueError: which city?", False),
        ("plan", {"city": "Rome"}, "the run only plans: nothing may be changed", False),
    ],
)
async def test_functions_of_the_caller_are_called(
    mode: str, arguments: Json, said: str, success: bool
) -> None:
    tool = CodexTool("weather", "Say what the weather is.", weather)
    params: dict[str, Json] = {"callId": "c", "tool": "weather", "arguments": arguments}
    answer = await ask(
        PeerRequest(0, "item/tool/call", params), mode=mode, options=CodexOptions(tools=(tool,))
    )
    assert isinstance(answer, PeerReply)
    assert answer.result == {
        "contentItems": [{"type": "inputText", "text": said}],
        "success": success,
    }


async def test_a_function_that_nobody_has_given_fails_by_name() -> None:
    params: dict[str, Json] = {"threadId": "", "tool": "nothing", "arguments": {}}
    reply = await ask(PeerRequest(0, "item/tool/call", params))
    assert isinstance(reply, PeerReply)
    assert reply.result == {
        "contentItems": [{"type": "inputText", "text": "unknown tool 'nothing'"}],
        "success": False,
    }
