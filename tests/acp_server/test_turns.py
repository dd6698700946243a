"""Prompts in version 1: text, tools, permissions, cancellation, failures."""

import base64
from pathlib import Path
from typing import Any

import pytest

from sessionmgr.manager import open_manager
from sessionmgr.model import (
    FailureKind,
    PlanEntry,
    PlanUpdated,
    SessionStatsUpdated,
)
from sessionmgr.testing import scripted
from sessionmgr.testing.scripted_provider import (
    Ask,
    Emit,
    Fail,
    Finish,
    Flood,
    Hang,
    Hear,
    Say,
    Think,
    Tool,
    Use,
)
from tests.acp_server.client import Message, RpcFailed, serving


async def test_the_text_of_an_agent_arrives_once_and_before_the_answer(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        end = await client.prompt(session, Think(text="hm", deltas=2), Say(text="Hello", deltas=3))
        assert end["stopReason"] == "end_turn"
        assert client.text() == "Hello"
        assert client.text("agent_thought_chunk") == "hm"
        assert "method" not in client.seen[-1]
        ids = {each["messageId"] for each in client.updates("agent_message_chunk")}
        assert len(ids) == 1


async def test_a_message_that_is_not_streamed_is_one_chunk(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        await client.prompt(session, Say(text="one"), Say(text="two"))
        chunks = client.updates("agent_message_chunk")
        assert [each["content"]["text"] for each in chunks] == ["one", "two"]
        assert chunks[0]["messageId"] != chunks[1]["messageId"]


async def test_the_first_prompt_is_the_title_of_the_session(tmp_path: Path) -> None:
    provider = scripted("actor", scripts={"Fix it\nsoon": [Say(text="done")]})
    async with serving(provider) as client:
        await client.initialize()
        session = await client.new(tmp_path)
        await client.prompt(session, "Fix it\nsoon")
        await client.prompt(session, "Fix it\nsoon")
        (info,) = client.updates("session_info_update")
        assert info["title"] == "Fix it"


async def test_a_tool_call_is_reported_from_its_start_to_its_end(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        tool = Tool(
            name="Bash", input={"command": "ls"}, output="a.py", prints=("a", ".py"), fails=False
        )
        await client.prompt(session, tool)
        (started,) = client.updates("tool_call")
        assert started["title"] == "Bash: ls"
        assert started["kind"] == "execute"
        assert started["status"] == "in_progress"
        assert started["rawInput"] == {"command": "ls"}
        *output, ended = client.updates("tool_call_update")
        assert output[-1]["content"][0]["content"]["text"] == "a.py"
        assert ended["status"] == "completed"
        assert ended["rawOutput"] == "a.py"


@pytest.mark.parametrize(
    ("option", "status", "denials"), [("allow", "completed", 0), ("reject", "failed", 1)]
)
async def test_the_client_decides_on_a_permission(
    tmp_path: Path, option: str, status: str, denials: int
) -> None:
    async with serving() as client:
        asked: list[Message] = []

        async def answer(message: Message) -> Message:
            asked.append(message["params"])
            # The tool call was announced before the question.
            known = {each["toolCallId"] for each in client.updates("tool_call")}
            assert message["params"]["toolCall"]["toolCallId"] in known
            return {"outcome": {"outcome": "selected", "optionId": option}}

        client.on_request = answer
        await client.initialize()
        session = await client.new(tmp_path)
        path = str(tmp_path / "a.txt")
        ask = Ask(tool="Write", input={"file_path": path}, effect="edit", paths=(path,))
        end = await client.prompt(session, ask, Say(text="done"))
        assert end["stopReason"] == "end_turn"
        (request,) = asked
        assert [each["kind"] for each in request["options"]] == ["allow_once", "reject_once"]
        assert request["toolCall"]["kind"] == "edit"
        assert request["toolCall"]["locations"] == [{"path": path}]
        assert client.updates("tool_call_update")[-1]["status"] == status


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        ({"outcome": "selected", "optionId": "always"}, "the unknown option 'always'"),
        ({"outcome": "cancelled"}, "the client cancelled the request"),
    ],
)
async def test_any_other_answer_denies(tmp_path: Path, outcome: Message, why: str) -> None:
    async with serving() as client:

        async def answer(message: Message) -> Message:
            return {"outcome": outcome}

        client.on_request = answer
        await client.initialize()
        session = await client.new(tmp_path)
        await client.prompt(session, Ask(tool="Bash", input={"command": "ls"}, reason="must"))
        assert why in client.updates("tool_call_update")[-1]["rawOutput"]
        (asked,) = [each for each in client.seen if "method" in each and "id" in each]
        assert asked["params"]["toolCall"]["content"][0]["content"]["text"] == "must"


async def test_a_client_that_cannot_ask_denies(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        prompt = await client.begin_prompt(session, Ask(tool="Bash", input={"command": "ls"}))
        asked = await client.wait_for(
            lambda: [each for each in client.seen if "method" in each and "id" in each]
        )
        error = {"code": -32601, "message": "no dialogs"}
        await client.send({"id": asked[0]["id"], "error": error})
        assert (await client.answer(prompt))["stopReason"] == "end_turn"
        assert client.updates("tool_call_update")[-1]["status"] == "failed"


async def test_a_cancelled_prompt_withdraws_its_question(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        prompt = await client.begin_prompt(session, Ask(tool="Bash", input={"command": "ls"}))
        (asked,) = await client.wait_for(
            lambda: [each for each in client.seen if "method" in each and "id" in each]
        )
        await client.notify("session/cancel", {"sessionId": session})
        assert (await client.answer(prompt))["stopReason"] == "cancelled"
        withdrawn = [each for each in client.seen if each.get("method") == "$/cancel_request"]
        assert [each["params"]["requestId"] for each in withdrawn] == [asked["id"]]
        outcome = {"outcome": {"outcome": "cancelled"}}
        await client.send({"id": asked["id"], "result": outcome})  # too late, and ignored
        assert (await client.prompt(session, Say(text="on")))["stopReason"] == "end_turn"


@pytest.mark.parametrize("interrupt", ["end", "done", "ignore"])
async def test_a_cancelled_prompt_ends_as_cancelled_whatever_the_agent_reports(
    tmp_path: Path, interrupt: str, autojump_clock: object
) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        prompt = await client.begin_prompt(session, Say(text="a"), Hang(), interrupt=interrupt)
        await client.wait_for(client.text)
        await client.notify("session/cancel", {"sessionId": session})
        assert (await client.answer(prompt))["stopReason"] == "cancelled"


async def test_a_prompt_is_cancelled_by_its_request_id(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        prompt = await client.begin_prompt(session, Say(text="a"), Hang())
        await client.wait_for(client.text)
        await client.notify("$/cancel_request", {"requestId": prompt})
        assert (await client.answer(prompt))["stopReason"] == "cancelled"


async def test_a_cancellation_right_behind_the_prompt_is_not_lost(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        prompt = await client.begin_prompt(session, Hang())
        await client.notify("session/cancel", {"sessionId": session})
        assert (await client.answer(prompt))["stopReason"] == "cancelled"


async def test_a_second_prompt_is_refused_while_one_runs(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        prompt = await client.begin_prompt(session, Hear(), Say(text="end"))
        with pytest.raises(RpcFailed, match="not answered yet") as refused:
            await client.prompt(session, Say(text="no"))
        assert refused.value.code == -32001
        await client.notify("session/cancel", {"sessionId": session})
        await client.answer(prompt)


@pytest.mark.parametrize(
    ("kind", "code"), [(FailureKind.AUTH_FAILED, -32000), (FailureKind.OVERLOADED, -32603)]
)
async def test_a_failed_run_is_an_error_with_its_kind(
    tmp_path: Path, kind: FailureKind, code: int
) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        with pytest.raises(RpcFailed, match="no luck") as refused:
            await client.prompt(session, Fail(message="no luck", kind=kind))
        assert refused.value.code == code
        assert refused.value.data["kind"] == kind.value


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (Finish(stop_reason="max_tokens"), "max_tokens"),
        (Finish(stop_reason="exit"), "end_turn"),
        (Fail(kind=FailureKind.REFUSED), "refusal"),
    ],
)
async def test_the_reason_of_the_end_is_translated(
    tmp_path: Path, step: Finish | Fail, reason: str
) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        assert (await client.prompt(session, step))["stopReason"] == reason


async def test_tokens_costs_and_context_are_reported(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        window = Emit(event=SessionStatsUpdated(context_window=1000, context_used=100))
        use = Use(input=10, output=5, cached_input=2, reasoning=1, usd=0.25)
        end = await client.prompt(session, window, use)
        assert end["usage"]["totalTokens"] == 17
        assert end["usage"]["inputTokens"] == 10
        await client.prompt(session, use)
        update = client.updates("usage_update")[-1]
        assert (update["used"], update["size"]) == (100, 1000)
        assert update["cost"] == {"amount": 0.5, "currency": "USD"}


async def test_a_plan_is_an_update(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        steps = (
            PlanEntry(content="one", status="completed", priority="high"),
            PlanEntry(content="two", status="unheard_of"),
        )
        await client.prompt(session, Emit(event=PlanUpdated(entries=steps)))
        (plan,) = client.updates("plan")
        assert plan["entries"] == [
            {"content": "one", "priority": "high", "status": "completed"},
            {"content": "two", "priority": "medium", "status": "pending"},
        ]


async def test_two_sessions_run_at_once(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        one, two = await client.new(tmp_path), await client.new(tmp_path)
        waiting = await client.begin_prompt(one, Say(text="a"), Hang())
        await client.prompt(two, Say(text="b"))
        assert client.text(session_id=two) == "b"
        await client.notify("session/cancel", {"sessionId": one})
        assert (await client.answer(waiting))["stopReason"] == "cancelled"


async def test_a_slow_client_loses_nothing_and_delays_no_other_session(tmp_path: Path) -> None:
    provider = scripted("actor")
    async with (
        open_manager(adapters={"actor": provider}) as manager,
        serving(provider, manager=manager, in_lockstep=True) as client,
    ):
        await client.initialize()
        one, two = await client.new(tmp_path), await client.new(tmp_path)
        client.pause()
        flood = await client.begin_prompt(one, Flood(events=3000, size=100))
        other = await client.begin_prompt(two, Say(text="b"))
        for session in (one, two):
            await anext(manager.subscribe(session, types=["run_completed"]))
        assert client.updates() == []
        client.proceed()
        assert (await client.answer(flood))["stopReason"] == "end_turn"
        assert len(client.text(session_id=one)) == 300_000
        assert (await client.answer(other))["stopReason"] == "end_turn"


# --- content -------------------------------------------------------------------------------------

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


async def test_links_and_resources_are_part_of_the_prompt(tmp_path: Path) -> None:
    provider = scripted("actor")
    async with serving(provider) as client:
        await client.initialize()
        session = await client.new(tmp_path)
        blocks: list[dict[str, Any]] = [
            {"type": "text", "text": "Read"},
            {"type": "resource_link", "uri": "file:///a.py", "name": "a.py"},
            {"type": "resource", "resource": {"uri": "file:///b", "text": "B", "mimeType": "x/y"}},
        ]
        await client.request("session/prompt", {"sessionId": session, "prompt": blocks})
        expected = 'Read [a.py](file:///a.py)\n<context uri="file:///b">\nB\n</context>'
        assert [each.text for each in provider.log if each.what == "prompt"] == [expected]


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ({"type": "audio", "data": "", "mimeType": "audio/wav"}, "no content of type 'audio/wav'"),
        ({"type": "image", "data": PIXEL, "mimeType": "image/png"}, "takes no image"),
        ({"type": "text", "text": " "}, "no text"),
    ],
)
async def test_content_that_the_agent_cannot_take_is_refused(
    tmp_path: Path, block: Message, why: str
) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        with pytest.raises(RpcFailed, match=why) as refused:
            await client.request("session/prompt", {"sessionId": session, "prompt": [block]})
        assert refused.value.code == -32602
