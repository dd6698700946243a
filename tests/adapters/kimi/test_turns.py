"""Runs on a mock of Kimi: what is sent, and what its answers and requests lead to."""

from __future__ import annotations

import msgspec
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from sessionmgr.adapter import Allow, ApprovalRequest, Decision, Deny
from sessionmgr.adapter.kit import FunctionTool, PeerReply, PeerRequest, RpcCall
from sessionmgr.manager import open_manager
from sessionmgr.model import (
    AnyEvent,
    ErrorOccurred,
    FailureKind,
    Json,
    MessageSent,
    PolicyViolation,
    RunResult,
    RunStarted,
    RunStatus,
)
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import INTERRUPTED, MockSdk, SentAnswer, with_sdk
from sessionmgr.wire import NoiseLine
from sessionmgr_adapters.kimi import KimiOptions
from sessionmgr_adapters.kimi.frames import KimiEvent
from sessionmgr_adapters.kimi.sdk import DENIED, KimiConversation
from tests.adapters.kimi.mock_agent import (
    SERVER,
    Talk,
    answered,
    call,
    edit_request,
    end,
    failed,
    opening,
    result,
    shell_request,
    text,
)
from tests.adapters.kimi.mocked_manager import Script, UncheckedKimi, manager_of, play

K = FailureKind


def failure(found: tuple[RunResult, list[AnyEvent]]) -> tuple[FailureKind, str]:
    assert found[0].failure is not None, found[0]
    return found[0].failure.kind, found[0].failure.message


async def until_call(it: Talk, method: str) -> RpcCall:
    """Wait for a call, and answer those before it."""
    while True:
        heard = await it.heard()
        assert isinstance(heard, RpcCall)
        if heard.method == method:
            return heard
        assert heard.method == "initialize"
        it.says(answered(heard, SERVER))


async def answer_to(request: PeerRequest, **more: object) -> Json:
    """Return the reply to a request in the middle of a turn."""
    replies: list[Json] = []

    async def asks(it: Talk) -> None:
        prompt = await opening(it)
        it.says(text("x"), request)
        reply = await it.heard()
        assert isinstance(reply, PeerReply)
        assert reply.id == request.id
        replies.append(reply.result if reply.error is None else reply.error)
        end(it, prompt)

    found, _ = await play(asks, **more)  # type: ignore[arg-type]
    assert found.status is RunStatus.COMPLETED, found.failure
    return replies[0]


async def test_a_process_is_initialized_once_and_its_plan_mode_is_set_for_each_run(
    autojump_clock: MockClock,
) -> None:
    calls: list[RpcCall] = []

    async def script(it: Talk) -> None:
        while True:
            heard = await it.heard()
            assert isinstance(heard, RpcCall)
            calls.append(heard)
            if heard.method == "prompt":
                it.says(KimiEvent("TurnBegin"), text("yes"))
                end(it, heard)
            else:
                enabled = heard.params.get("enabled")
                fields = SERVER if heard.method == "initialize" else {"plan_mode": enabled}
                it.says(answered(heard, fields))

    async with manager_of(script) as manager:
        session = await manager.open_session("kimi")
        runs = [await session.submit("hi", model="m") for _ in range(2)]
        assert [(await run.result()).text for run in runs] == ["yes", "yes"]
        begun = [each async for each in runs[1] if isinstance(each, RunStarted)]
    assert (begun[0].model, begun[0].cli_version) == ("m", "1.50.0")
    methods = ["initialize", "set_plan_mode", "prompt", "set_plan_mode", "prompt"]
    assert [each.method for each in calls] == methods
    capabilities: Json = {"supports_question": False, "supports_plan_mode": False}
    assert calls[0].params["capabilities"] == capabilities
    assert calls[1].params == {"enabled": False}
    assert calls[2].params == {"user_input": "hi"}


async def test_a_mode_that_is_not_confirmed_refuses_the_run(autojump_clock: MockClock) -> None:
    async def deaf(it: Talk) -> None:
        asked = await until_call(it, "set_plan_mode")
        it.says(answered(asked, {"status": "ok", "plan_mode": False}))

    kind, message = failure(await play(deaf, mode="plan"))
    assert kind is K.PERMISSION_REFUSED
    assert "plan mode to True" in message


async def test_a_process_that_cannot_be_used_is_sent_no_prompt(autojump_clock: MockClock) -> None:
    async def old(it: Talk) -> None:
        it.says(answered(await until_call(it, "initialize"), {"server": {"version": "1.49.0"}}))

    async def refuses(it: Talk) -> None:
        it.says(failed(await until_call(it, "initialize"), -32603, "broken"))

    async def silent(it: Talk) -> None:
        await until_call(it, "initialize")

    async def archived(it: Talk) -> None:
        it.says(NoiseLine(b"kimi-cli is no longer maintained. Use kimi-code."))
        it.ends()

    async def dies(it: Talk) -> None:
        it.ends()

    async def rejects(it: Talk) -> None:
        rejected: Json = {"rejected": [{"name": "Shell", "reason": "conflicts"}]}
        asked = await until_call(it, "initialize")
        it.says(answered(asked, {"server": {"version": "1.50.2"}, "external_tools": rejected}))

    cases: list[tuple[Script, FailureKind, str]] = [
        (old, K.CONFIG_INVALID, "is kimi-cli 1.49.0"),
        (refuses, K.PROVIDER_ERROR, "broken"),
        (silent, K.STALLED, ""),
        (archived, K.CONFIG_INVALID, "install kimi-cli==1.50.0"),
        (dies, K.PROTOCOL_ERROR, "the connection ended"),
        (rejects, K.CONFIG_INVALID, "'name': 'Shell'"),
    ]
    for script, kind, words in cases:
        found = await play(script)
        assert failure(found)[0] is kind, found[0]
        assert words in failure(found)[1]
        assert found[0].failure is not None
        assert found[0].failure.phase == (None if script is silent else "start")


async def test_a_turn_is_a_success_only_if_it_finished_and_did_something(
    autojump_clock: MockClock,
) -> None:
    cases: list[tuple[str, bool, FailureKind | None]] = [
        ("finished", True, None),
        ("finished", False, K.PROVIDER_ERROR),
        ("cancelled", True, K.PROVIDER_ERROR),
        ("max_steps_reached", True, K.BUDGET_EXCEEDED),
        ("odd", True, K.PROVIDER_ERROR),
    ]
    for status, speaks, kind in cases:

        async def script(it: Talk, status: str = status, *, speaks: bool = speaks) -> None:
            prompt = await opening(it)
            it.says(*([text("x")] if speaks else []))
            end(it, prompt, status)

        found, _ = await play(script)
        assert (found.failure and found.failure.kind) == kind, status


async def test_errors_have_their_kinds(autojump_clock: MockClock) -> None:
    cases: list[tuple[int, str, FailureKind, bool]] = [
        (-32003, "Error code: 429 - {'code': 'insufficient_quota'}", K.QUOTA_EXHAUSTED, False),
        (-32003, "Error code: 418 - {}", K.PROVIDER_ERROR, False),
        (-32003, "Error code: 502 - {}", K.PROVIDER_ERROR, True),
        (-32003, "Connection error.", K.PROVIDER_ERROR, True),
        (-32002, "no image_in", K.CAPABILITY_MISSING, False),
        (-32004, "/login", K.AUTH_FAILED, False),
        (-32000, "An agent turn is already in progress", K.SESSION_BUSY, False),
        (-32603, "", K.PROVIDER_ERROR, False),
    ]
    for code, message, kind, retryable in cases:

        async def script(it: Talk, code: int = code, message: str = message) -> None:
            it.says(failed(await opening(it), code, message))

        found, _ = await play(script)
        assert found.failure is not None
        assert (found.failure.kind, found.failure.retryable) == (kind, retryable), message
        assert found.failure.message


async def test_a_tool_that_has_not_asked_ends_the_run(autojump_clock: MockClock) -> None:
    async def acts(it: Talk) -> None:
        prompt = await opening(it)
        it.says(*call("c1", "Shell", '{"command": "rm x"}'), result("c1", "gone"))
        await it.expect(INTERRUPTED)
        end(it, prompt, "cancelled")

    found, events = await play(acts)
    assert failure((found, events))[0] is K.PERMISSION_REFUSED
    assert any(isinstance(each, PolicyViolation) for each in events)

    async def plans(it: Talk) -> None:
        prompt = await opening(it)
        it.says(*call("c1", "WriteFile", '{"path": "plan.md"}'), result("c1", "written"))
        end(it, prompt)

    for mode in ("plan", "full_auto"):
        found, _ = await play(plans, mode=mode)
        assert found.status is RunStatus.COMPLETED, mode


async def test_edits_inside_are_accepted_and_no_others(autojump_clock: MockClock) -> None:
    decisions: dict[str, Decision] = {}
    paths = ("{cwd}/x", "{cwd}/.git/config", "/elsewhere/x", "")

    async def writes(it: Talk) -> None:
        prompt = await opening(it)
        cwd = "/tmp"
        for number, path in enumerate(paths):
            name = f"c{number}"
            it.says(*call(name, "WriteFile", "{}"))
            it.says(edit_request(f"a{number}", name, path.format(cwd=cwd)))
            answer = await it.heard()
            assert isinstance(answer, SentAnswer)
            decisions[path] = answer.decision
        end(it, prompt)

    async with manager_of(writes) as manager:
        session = await manager.open_session("kimi", cwd="/tmp", permission_mode="accept_edits")
        await (await session.submit("hi")).result()
    allowed = [path for path, each in decisions.items() if isinstance(each, Allow)]
    assert allowed == ["{cwd}/x"]


async def test_a_request_may_precede_its_call(autojump_clock: MockClock) -> None:
    asked: list[ApprovalRequest] = []

    async def overtakes(it: Talk) -> None:
        prompt = await opening(it)
        it.says(shell_request("a1", "c1", "ls"), edit_request("a2", "c2", "/tmp/x"))
        await it.heard()
        await it.heard()
        it.says(*call("c1", "Shell", "{}"), result("c1"))
        end(it, prompt)

    async def approve(request: ApprovalRequest) -> Decision:
        await trio.lowlevel.checkpoint()
        asked.append(request)
        return Allow()

    found, _ = await play(overtakes, approve=approve)
    assert found.status is RunStatus.COMPLETED, found.failure
    shell, edit = sorted(asked, key=lambda each: each.effect)
    assert isinstance(shell.tool_input, dict)
    assert (shell.effect, shell.tool_input["command"]) == ("command", "ls")
    assert (edit.effect, edit.paths) == ("edit", ("/tmp/x",))


async def test_work_in_the_background_is_reported_to_end(autojump_clock: MockClock) -> None:
    async def begins(it: Talk) -> None:
        prompt = await opening(it)
        display: Json = [{"type": "background_task", "task_id": "1"}]
        value: Json = {"is_error": False, "output": "id: 1", "message": "", "display": display}
        it.says(*call("c1", "Shell", "{}"))
        it.says(KimiEvent("ToolResult", {"tool_call_id": "c1", "return_value": value}))
        end(it, prompt)

    found, events = await play(begins, mode="full_auto")
    assert found.status is RunStatus.COMPLETED
    [warning] = [each for each in events if isinstance(each, ErrorOccurred)]
    assert "background" in warning.failure.message


async def test_an_approval_that_kimi_withdraws_is_not_answered(autojump_clock: MockClock) -> None:
    async def withdraws(it: Talk) -> None:
        prompt = await opening(it)
        it.says(*call("c1", "Shell", "{}"), shell_request("a1", "c1", "ls"))
        await trio.testing.wait_all_tasks_blocked()
        it.says(KimiEvent("ApprovalResponse", {"request_id": "a1", "response": "reject"}))
        it.says(result("c1", failed=True))
        await trio.testing.wait_all_tasks_blocked()
        end(it, prompt)
        # The same, late: after the turn.
        it.says(KimiEvent("ApprovalResponse", {"request_id": "a1", "response": "reject"}))

    async def never(_: ApprovalRequest) -> Decision:
        await trio.sleep_forever()

    found, _ = await play(withdraws, approve=never)
    assert found.status is RunStatus.COMPLETED, found.failure


QUESTION = PeerRequest(
    "q1", "QuestionRequest", {"id": "q1", "tool_call_id": "c1", "questions": [{"question": "Q?"}]}
)


async def test_a_question_gets_the_users_answers_and_no_others(autojump_clock: MockClock) -> None:
    async def approve(request: ApprovalRequest) -> Decision:
        await trio.lowlevel.checkpoint()
        assert request.tool_input == {"questions": [{"question": "Q?"}]}
        return Allow(tool_input={"answers": {"Q?": "blue"}})

    assert await answer_to(QUESTION, approve=approve) == {
        "request_id": "q1",
        "answers": {"Q?": "blue"},
    }
    for mode in ("full_auto", "plan", "default"):  # a mode has no answers
        assert await answer_to(QUESTION, mode=mode) == {"request_id": "q1", "answers": {}}


async def test_a_hook_is_allowed_and_an_unknown_request_refused(autojump_clock: MockClock) -> None:
    hook = PeerRequest("h1", "HookRequest", {"id": "h1", "event": "Stop"})
    assert await answer_to(hook) == {"request_id": "h1", "action": "allow", "reason": ""}
    assert await answer_to(PeerRequest("x1", "Other")) == "this host does not serve 'Other'"


async def test_a_function_is_called_if_the_mode_allows_it(autojump_clock: MockClock) -> None:
    async def double(given: dict[str, Json]) -> Json:
        await trio.lowlevel.checkpoint()
        return {"twice": given.get("n")}

    tool = FunctionTool(name="double", description="Doubles.", call=double)
    asked: dict[str, Json] = {"id": "c1", "name": "double", "arguments": '{"n": 2}'}
    request = PeerRequest("c1", "ToolCallRequest", asked)
    options = KimiOptions(tools=(tool,))

    async def value(mode: str, given: PeerRequest = request) -> tuple[bool, str]:
        reply = await answer_to(given, mode=mode, options=options)
        assert isinstance(reply, dict)
        assert reply["tool_call_id"] == "c1"
        found = msgspec.convert(reply["return_value"], dict[str, Json])
        return bool(found["is_error"]), str(found["output"])

    assert await value("default") == (False, '{"twice":2}')
    assert (await value("plan"))[0]
    broken = PeerRequest("c1", "ToolCallRequest", {**asked, "arguments": "{oh"})
    assert await value("default", broken) == (False, '{"twice":null}')
    unknown = PeerRequest("c1", "ToolCallRequest", {**asked, "name": "triple"})
    assert (await value("full_auto", unknown))[1] == "unknown tool 'triple'"


async def test_a_message_that_the_turn_refuses_is_a_run_of_its_own(
    autojump_clock: MockClock,
) -> None:
    async def refuses(it: Talk) -> None:
        prompt = await opening(it)
        if prompt.params["user_input"] == "hi":
            it.says(text("working"))
            steer = await it.heard()
            assert isinstance(steer, RpcCall)
            assert (steer.method, steer.params) == ("steer", {"user_input": "more"})
            it.says(failed(steer, -32000, "No agent turn is in progress"))
        it.says(text("done"))
        end(it, prompt)

    async with manager_of(refuses) as manager:
        session = await manager.open_session("kimi")
        run = await session.submit("hi")
        async for event in run:
            if event.type == "message_streamed":
                break
        follow_up = await run.append("more")
        assert not follow_up.accepted
        assert (await follow_up.run.result()).text == "done"


def forgets(*statuses: str) -> Script:
    """Return an agent that accepts a message and does not read it, and the ends of its turns."""

    async def talk(it: Talk) -> None:
        prompt = await opening(it)
        it.says(text("working"))
        steer = await it.heard()
        assert isinstance(steer, RpcCall)
        it.says(answered(steer, {"status": "steered"}))
        await trio.testing.wait_all_tasks_blocked()
        end(it, prompt, statuses[0])
        for status in statuses[1:]:
            again = await it.heard()
            assert isinstance(again, RpcCall)
            it.says(KimiEvent("TurnBegin", {"user_input": again.params["user_input"]}))
            it.says(text(f"read {again.params['user_input']}"))
            end(it, again, status)

    return talk


@pytest.mark.parametrize(
    ("statuses", "message", "states", "says"),
    [
        (["finished", "finished"], "more", ["queued", "sent"], "read more"),
        (["max_steps_reached"], "more", ["queued", "sent", "dropped"], "working"),
        (["finished"], "/yolo", ["queued", "sent", "dropped"], "working"),
    ],
)
async def test_a_message_that_the_turn_did_not_read_begins_another_turn_or_is_dropped(
    autojump_clock: MockClock, statuses: list[str], message: str, states: list[str], says: str
) -> None:
    async with manager_of(forgets(*statuses)) as manager:
        session = await manager.open_session("kimi")
        run = await session.submit("hi")
        async for event in run:
            if event.type == "message_streamed":
                break
        assert (await run.append(message)).accepted
        assert (await run.result()).text.endswith(says)
        sent = [each async for each in run if isinstance(each, MessageSent) and each.follow_up]
    assert [each.state for each in sent] == states


async def test_a_cancel_before_the_prompt_sends_none(autojump_clock: MockClock) -> None:
    async def waits(it: Talk) -> None:
        await until_call(it, "initialize")
        await it.gate("asked")

    async with (
        MockSdk(waits) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"kimi": with_sdk(UncheckedKimi, sdk)},
            environ={"PATH": "/nowhere"},
        ) as manager,
    ):
        session = await manager.open_session("kimi")
        run = await session.submit("hi")
        await sdk.reached("asked")
        run.cancel("enough")
        assert (await run.result()).status is RunStatus.CANCELLED
        sent = sdk.conversations[0].heard_so_far
    assert [each.method for each in sent if isinstance(each, RpcCall)] == ["initialize"]


async def test_a_denial_always_has_feedback(autojump_clock: MockClock) -> None:
    sent: list[PeerReply] = []

    class Recorder(KimiConversation):
        def __init__(self) -> None:
            pass

        async def send(self, message: object) -> None:
            await trio.lowlevel.checkpoint()
            assert isinstance(message, PeerReply)
            sent.append(message)

    for decision in (Allow(), Deny(), Deny(reason="not now")):
        await Recorder().answer("a1", decision)
    results = [each.result for each in sent]
    assert results == [
        {"request_id": "a1", "response": "approve", "feedback": ""},
        {"request_id": "a1", "response": "reject", "feedback": DENIED},
        {"request_id": "a1", "response": "reject", "feedback": "not now"},
    ]
