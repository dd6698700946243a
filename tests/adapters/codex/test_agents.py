"""Agents of a run, on a mock: they belong to the run, and end with it."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from sessionmgr.adapter import Allow, ApprovalRequest, Decision
from sessionmgr.adapter.kit.json_rpc_caller import PeerRequest, RpcCall
from sessionmgr.model import (
    AnyEvent,
    ErrorOccurred,
    RetryScheduled,
    TokenUsageUpdated,
    ToolCallFailed,
    ToolCallStarted,
    TurnCompleted,
)
from sessionmgr.testing.mock_sdk import INTERRUPTED, SentAnswer
from sessionmgr_adapters.codex.cleanup import AGENT_START_WAIT
from sessionmgr_adapters.codex.frames import (
    CodexFrame,
    CodexTokenCounts,
    CodexTurn,
    ErrorNotice,
    ItemEndedNotice,
    ItemStartedNotice,
    ThreadClosedNotice,
    TokenUsage,
    TokenUsageNotice,
    TurnEndedNotice,
    TurnError,
    TurnStartedNotice,
)
from sessionmgr_adapters.codex.items import SubAgentItem
from tests.adapters.codex.mock_agent import (
    COMMAND,
    Talk,
    begin,
    command,
    end,
    opening,
    result,
    text,
    thread_of,
)
from tests.adapters.codex.mocked_manager import manager_of, play

CLEAN = "thread/backgroundTerminals/clean"


def called(caller: str, agent: str, kind: str = "started") -> list[CodexFrame]:
    item = SubAgentItem(
        id=f"{kind} {agent}", kind=kind, agent_thread_id=agent, agent_path=f"/root/{agent}"
    )
    return [
        ItemStartedNotice(thread_id=caller, item=item),
        ItemEndedNotice(thread_id=caller, item=item),
    ]


def works(agent: str) -> CodexFrame:
    return TurnStartedNotice(thread_id=agent, turn=CodexTurn(id=f"of {agent}", status="inProgress"))


def rests(agent: str, status: str = "completed", error: TurnError | None = None) -> CodexFrame:
    return TurnEndedNotice(
        thread_id=agent, turn=CodexTurn(id=f"of {agent}", status=status, error=error)
    )


async def serve(it: Talk) -> tuple[str, str, object]:
    """Answer the calls that end agents, and return the last of them."""
    call = await it.heard()
    assert isinstance(call, RpcCall), call
    thread = thread_of(call)
    it.says(result(call, {}))
    if call.method == "thread/unsubscribe":
        it.says(ThreadClosedNotice(thread_id=thread))
    return call.method, thread, call.params.get("turnId")


async def test_what_agents_do_is_told_as_their_callers_and_booked(
    autojump_clock: MockClock,
) -> None:
    async def calls(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        counts = CodexTokenCounts(input_tokens=10, output_tokens=1)
        used = TokenUsage(total=counts, last=counts)
        it.says(
            *called(thread, "child"),
            works("child"),
            TokenUsageNotice(thread_id="child", turn_id="of child", token_usage=used),
            ItemStartedNotice(thread_id="child", item=command("c1", "ls")),
            ItemEndedNotice(thread_id="child", item=command("c1", "ls", "completed")),
            *called("child", "deep"),
            works("deep"),
            TokenUsageNotice(thread_id="deep", turn_id="of deep", token_usage=used),
            rests("deep"),
            rests("child"),
            *called(thread, "child", "completed"),
            TokenUsageNotice(thread_id=thread, turn_id="turn-1", token_usage=used),
            *text(thread, "well"),
        )
        end(it, thread)
        while True:
            await serve(it)

    done, events = await play(calls)
    assert (done.status, done.text, done.usage.input, done.usage.output) == (
        *("completed", "well"),
        *(30, 3),
    )
    calls_ = [each for each in events if isinstance(each, ToolCallStarted)]
    assert [(each.tool_name, each.parent_tool_call_id or None) for each in calls_] == [
        ("spawn_agent", None),
        ("shell", "started child"),
        ("spawn_agent", "started child"),
    ]
    booked = [each.parent_tool_call_id for each in events if isinstance(each, TokenUsageUpdated)]
    assert booked[:2] == ["started child", "started deep"]


async def test_a_run_is_open_as_long_as_its_agents_work_and_then_gives_them_back(
    autojump_clock: MockClock,
) -> None:
    heard: list[object] = []

    async def leaves(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        it.says(*called(thread, "child"), works("child"), *called("child", "deep"))
        end(it, thread)
        await trio.testing.wait_all_tasks_blocked()
        it.says(works("deep"), *text("child", "done"), rests("child"))
        await trio.testing.wait_all_tasks_blocked()
        it.says(rests("deep"))
        heard.extend([await serve(it), await serve(it)])

    done, events = await play(leaves)
    assert (done.status, done.text) == ("completed", "")
    [turned] = [each for each in events if isinstance(each, TurnCompleted)]
    assert turned.open_tasks == 2
    told = [each.type for each in events]
    assert told.index("message_received") > told.index("turn_completed")
    assert heard == [("thread/unsubscribe", each, None) for each in ("child", "deep")]


@pytest.mark.parametrize("acts", [False, True])
async def test_an_agent_that_was_told_something_is_given_a_moment_to_act_on_it(
    autojump_clock: MockClock, *, acts: bool
) -> None:
    heard: list[object] = []

    async def tells(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        it.says(*called(thread_of(call), "known", "interacted"))
        end(it, thread_of(call))
        if acts:
            await trio.sleep(AGENT_START_WAIT / 2)
            it.says(works("known"))
            await trio.sleep(AGENT_START_WAIT * 2)
            it.says(*text("known", "done"), rests("known"))
        heard.append(await serve(it))

    done, events = await play(tells)
    assert done.status == "completed"
    assert ("message_received" in [each.type for each in events]) is acts
    assert heard == [("thread/unsubscribe", "known", None)]
    call = next(each for each in events if isinstance(each, ToolCallStarted))
    assert call.tool_name == "message_agent"


async def test_a_cancel_ends_all_that_agents_do_whoever_has_called_them(
    autojump_clock: MockClock,
) -> None:
    heard: list[object] = []

    async def busy(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        it.says(
            *called(thread, "child"),
            works("child"),
            ItemStartedNotice(thread_id="child", item=command("c1", "sleep 100")),
        )
        heard.append(await it.heard())
        end(it, thread, "interrupted")
        heard.append(await serve(it))
        it.says(*called("child", "deep"), rests("child", "interrupted"), works("deep"))
        heard.append(await serve(it))
        it.says(rests("deep", "interrupted"))
        heard.append(await serve(it))
        it.says(ItemEndedNotice(thread_id="child", item=command("c1", "sleep 100", "failed")))
        heard.extend([await serve(it), await serve(it)])

    async with manager_of(busy) as manager:
        session = await manager.open_session("codex")
        run = await session.submit("hi")
        events: list[AnyEvent] = []
        async for event in run:
            events.append(event)
            if isinstance(event, ToolCallStarted) and event.tool_name == "shell":
                run.cancel()
        assert (await run.result()).status == "cancelled"
    assert heard == [
        INTERRUPTED,
        ("turn/interrupt", "child", "of child"),
        ("turn/interrupt", "deep", "of deep"),
        (CLEAN, "child", None),
        ("thread/unsubscribe", "child", None),
        ("thread/unsubscribe", "deep", None),
    ]
    [failed] = [each for each in events if isinstance(each, ToolCallFailed)]
    assert failed.parent_tool_call_id == "started child"


async def test_a_cancel_ends_agents_that_work_after_the_turn_as_well(
    autojump_clock: MockClock,
) -> None:
    heard: list[object] = []

    async def leaves(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        it.says(*called(thread_of(call), "child"), works("child"))
        end(it, thread_of(call))
        heard.append(await serve(it))
        it.says(rests("child", "interrupted"))
        heard.append(await serve(it))

    async with manager_of(leaves) as manager:
        session = await manager.open_session("codex")
        run = await session.submit("hi")
        async for event in run:
            if event.type == "turn_completed":
                run.cancel()
        assert (await run.result()).status == "cancelled"
    assert heard == [
        ("turn/interrupt", "child", "of child"),
        ("thread/unsubscribe", "child", None),
    ]


async def test_agents_of_a_turn_that_fails_are_not_waited_for(autojump_clock: MockClock) -> None:
    heard: list[object] = []

    async def fails(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        it.says(*called(thread_of(call), "child"), works("child"))
        end(it, thread_of(call), "failed", TurnError(message="no", codex_error_info="other"))
        heard.append(await serve(it))
        it.says(rests("child", "interrupted"))
        heard.append(await serve(it))

    done, _ = await play(fails)
    assert done.status == "failed"
    assert heard[0] == ("turn/interrupt", "child", "of child")


async def test_what_an_agent_asks_is_asked_and_its_trouble_is_not_the_runs(
    autojump_clock: MockClock,
) -> None:
    asked: list[ApprovalRequest] = []
    answers: list[object] = []

    async def approve(request: ApprovalRequest) -> Decision:
        await trio.lowlevel.checkpoint()
        asked.append(request)
        return Allow()

    async def asks(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        trouble = TurnError(message="gone", codex_error_info="responseStreamDisconnected")
        it.says(
            *called(thread, "child"),
            works("child"),
            ItemStartedNotice(thread_id="child", item=command("c1", "ls")),
            PeerRequest(5, COMMAND, {"threadId": "child", "itemId": "c1", "command": "ls"}),
        )
        answers.append(await it.heard())
        it.says(
            ItemEndedNotice(thread_id="child", item=command("c1", "ls", "completed")),
            ErrorNotice(thread_id="child", error=trouble, will_retry=True),
            rests("child", "failed", TurnError(message="no", codex_error_info="badRequest")),
        )
        end(it, thread, "failed", TurnError(message="not well", codex_error_info="other"))
        await serve(it)

    done, events = await play(asks, approve=approve)
    assert [(each.tool_name, each.tool_call_id) for each in asked] == [("shell", "c1")]
    assert answers == [SentAnswer("5", Allow())]
    [again] = [each for each in events if isinstance(each, RetryScheduled)]
    assert again.parent_tool_call_id == "started child"
    told = [each for each in events if isinstance(each, ErrorOccurred)]
    assert [(each.failure.message, each.parent_tool_call_id) for each in told] == [
        ("no", "started child")
    ]
    assert done.failure is not None
    assert not done.failure.retryable
