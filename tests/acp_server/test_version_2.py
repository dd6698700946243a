"""Version 2: prompts that are answered at once, states, upserts, queued prompts."""

from pathlib import Path
from typing import Any

import pytest

from sessionmgr.model import (
    CompactionCompleted,
    CompactionStarted,
    FailureKind,
    PlanEntry,
    PlanUpdated,
)
from sessionmgr.testing.scripted_provider import Ask, Emit, Error, Fail, Hang, Hear, Say, Tool
from tests.acp_server.client import Message, RpcFailed, SchemaClient, serving


def states(client: SchemaClient) -> list[str]:
    return [each["state"] for each in client.updates("state_update")]


async def idle(client: SchemaClient, times: int = 1) -> Message:
    """Wait for the end of the turn with this number."""
    await client.wait_for(lambda: states(client).count("idle") >= times)
    ends = [each for each in client.updates("state_update") if each["state"] == "idle"]
    return ends[times - 1]


async def test_version_2_is_recognised_by_the_form_of_the_message() -> None:
    async with serving() as client:
        answer = await client.initialize(2)
        assert answer["protocolVersion"] == 2
        assert answer["info"]["name"] == "sessionmgr"
        assert answer["capabilities"]["session"] == {"prompt": {"embeddedContext": {}}, "mcp": {}}
        assert "agentCapabilities" not in answer
    async with serving() as client:
        params: Message = {"protocolVersion": 2, "clientCapabilities": {}}
        assert (await client.request("initialize", params))["protocolVersion"] == 1


async def test_a_prompt_is_answered_at_once_and_ends_with_a_state(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize(2)
        session = await client.new(tmp_path)
        answer = await client.prompt(session, Say(text="Hello", deltas=2), Say(text="whole"))
        end = await idle(client)
        assert end["stopReason"] == "end_turn"
        assert states(client) == ["running", "idle"]
        (asked,) = client.updates("user_message")
        assert asked["messageId"] == answer["messageId"]
        assert client.text() == "Hello"
        (whole,) = client.updates("agent_message")
        assert whole["content"] == [{"type": "text", "text": "whole"}]


async def test_prompts_are_queued_and_answered_when_their_turn_begins(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize(2)
        session = await client.new(tmp_path)

        async def answer(message: Message) -> Message:
            return {"outcome": {"outcome": "selected", "optionId": "allow"}}

        asks = await client.begin_prompt(session, Ask(tool="Bash"), Say(text="1"))
        others = [await client.begin_prompt(session, Say(text=text)) for text in "23"]
        (asked,) = await client.wait_for(
            lambda: [each for each in client.seen if "method" in each and "id" in each]
        )
        answered = [each["id"] for each in client.seen if "method" not in each]
        assert asks in answered
        assert answered.count(others[0]) == 0
        assert states(client) == ["running", "requires_action"]
        await client.send({"id": asked["id"], "result": await answer(asked)})
        await idle(client, 3)
        running = ["running", "idle"]
        assert states(client) == ["running", "requires_action", *running, *running, *running]
        texts = [each["content"][0]["text"] for each in client.updates("agent_message")]
        assert texts == ["1", "2", "3"]


async def test_a_cancellation_drops_the_prompts_that_wait(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize(2)
        session = await client.new(tmp_path)
        await client.prompt(session, Say(text="a"), Hang())
        waiting = await client.begin_prompt(session, Say(text="b"))
        await client.notify("session/cancel", {"sessionId": session})
        with pytest.raises(RpcFailed, match="before it began") as refused:
            await client.answer(waiting)
        assert refused.value.code == -32800
        assert (await idle(client))["stopReason"] == "cancelled"


async def test_one_waiting_prompt_is_cancelled_by_its_id(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize(2)
        session = await client.new(tmp_path)
        answered = await client.begin_prompt(session, Say(text="a"), Hang())
        await client.answer(answered)
        waiting = await client.begin_prompt(session, Say(text="b"))
        await client.notify("$/cancel_request", {"requestId": waiting})
        with pytest.raises(RpcFailed) as refused:
            await client.answer(waiting)
        assert refused.value.code == -32800
        await client.notify("$/cancel_request", {"requestId": answered})  # too late
        await client.request("session/list", {})
        assert states(client) == ["running"]
        await client.notify("session/cancel", {"sessionId": session})
        await idle(client)


async def test_the_queue_of_prompts_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessionmgr.acp_server.session.MOST_QUEUED", 1)
    async with serving() as client:
        await client.initialize(2)
        session = await client.new(tmp_path)
        await client.prompt(session, Hang())
        waiting = await client.begin_prompt(session, Say(text="b"))
        with pytest.raises(RpcFailed, match=r"2 prompts of ses_\w+ wait") as refused:
            await client.prompt(session, Say(text="c"))
        assert refused.value.code == -32001
        await client.notify("session/cancel", {"sessionId": session})
        with pytest.raises(RpcFailed):
            await client.answer(waiting)


async def test_a_message_to_the_running_turn_is_reported(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize(2)
        session = await client.new(tmp_path)
        await client.prompt(session, Hear())
        blocks = [{"type": "text", "text": "psst"}]
        params = {"sessionId": session, "prompt": blocks}
        assert await client.request("_session/steering", params) == {"outcome": "injected"}
        await idle(client)
        assert [each["content"] for each in client.updates("user_message")][1:] == [blocks]


async def test_a_failure_is_the_reason_of_the_idle_state(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize(2)
        session = await client.new(tmp_path)
        await client.prompt(session, Fail(message="no luck", kind=FailureKind.AUTH_FAILED))
        end = await idle(client)
        assert end["stopReason"] == "error"
        assert end["error"]["code"] == -32000
        assert end["error"]["message"] == "no luck"


async def test_a_refused_prompt_is_an_error_and_changes_no_state(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize(2)
        session = await client.new(tmp_path)
        blocks = [{"type": "audio", "data": "", "mimeType": "audio/wav"}]
        with pytest.raises(RpcFailed):
            await client.request("session/prompt", {"sessionId": session, "prompt": blocks})
        assert states(client) == []


async def test_tools_plans_and_notices_have_their_forms(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize(2)
        session = await client.new(tmp_path)
        steps: tuple[Any, ...] = (
            Tool(name="Bash", input={"command": "ls"}, output="ab", prints=("a", "b")),
            Emit(event=PlanUpdated(entries=(PlanEntry(content="one"),))),
            Error(message="careful", severity="warning"),
            Emit(event=CompactionStarted()),
            Emit(event=CompactionCompleted()),
        )
        await client.prompt(session, *steps)
        await idle(client)
        assert client.updates("tool_call") == []
        first, *_, last = client.updates("tool_call_update")
        assert (first["status"], last["status"]) == ("in_progress", "completed")
        chunks = client.updates("tool_call_content_chunk")
        assert "".join(each["content"]["content"]["text"] for each in chunks) == "ab"
        (plan,) = client.updates("plan_update")
        assert plan["plan"]["entries"][0]["content"] == "one"
        (notice,) = client.updates("notice")
        assert (notice["severity"], notice["title"]) == ("warning", "careful")
        started, ended = client.updates("compaction_update")
        assert started["compactionId"] == ended["compactionId"]
        assert (started["status"], ended["status"]) == ("in_progress", "completed")


async def test_a_permission_request_has_a_title_and_a_subject(tmp_path: Path) -> None:
    async with serving() as client:
        asked: list[Message] = []

        async def answer(message: Message) -> Message:
            asked.append(message["params"])
            return {"outcome": {"outcome": "selected", "optionId": "reject"}}

        client.on_request = answer
        await client.initialize(2)
        session = await client.new(tmp_path)
        await client.prompt(session, Ask(tool="Bash", input={"command": "rm a"}, reason="tidy up"))
        await idle(client)
        (request,) = asked
        assert request["title"] == "Bash: rm a"
        assert request["subject"]["type"] == "tool_call"
        assert states(client) == ["running", "requires_action", "running", "idle"]


async def test_a_withdrawn_request_no_longer_blocks_the_session(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with serving() as client:
        await client.initialize(2)
        session = await client.new(tmp_path)
        await client.prompt(session, Ask(tool="Bash", withdraw_after=1.0), Say(text="on"))
        await idle(client)
        assert states(client) == ["running", "requires_action", "running", "idle"]
        assert [each for each in client.seen if each.get("method") == "$/cancel_request"]


@pytest.mark.parametrize("is_replayed", [False, True])
async def test_a_session_is_resumed_with_or_without_its_history(
    tmp_path: Path, is_replayed: bool
) -> None:
    store = str(tmp_path / "store.db")
    async with serving(store=store) as client:
        await client.initialize(2)
        session = await client.new(tmp_path)
        await client.prompt(session, Say(text="Hello"))
        await idle(client)
    async with serving(store=store) as client:
        await client.initialize(2)
        params: Message = {"sessionId": session, "cwd": str(tmp_path)}
        if is_replayed:
            params["replayFrom"] = {"type": "start"}
        state = await client.request("session/resume", params)
        assert state["configOptions"][0]["configId"] == "mode"
        assert len(client.updates("agent_message")) == len(client.updates("user_message"))
        assert len(client.updates("agent_message")) == int(is_replayed)
        assert states(client) == ["idle"]
        with pytest.raises(RpcFailed, match="unknown type 'here'") as refused:
            await client.request("session/resume", {**params, "replayFrom": {"type": "here"}})
        assert refused.value.code == -32602


async def test_methods_of_version_1_are_unknown(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize(2)
        session = await client.new(tmp_path)
        for method in ("session/load", "session/set_mode", "authenticate"):
            await client.send({"id": method, "method": method, "params": {"sessionId": session}})
            with pytest.raises(RpcFailed, match="in version 2") as refused:
                await client.answer(method)
            assert refused.value.code == -32601
        params = {"sessionId": session, "configId": "mode", "type": "id", "value": "plan"}
        options = await client.request("session/set_config_option", params)
        assert options["configOptions"][0]["currentValue"] == "plan"
        listed = await client.request("session/list", {})
        assert listed["sessions"] == []
        assert await client.request("session/close", {"sessionId": session}) == {}
