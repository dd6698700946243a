"""The connection to an agent: what it sends to a real child, and when."""

from __future__ import annotations

import sys
from pathlib import Path

import trio
from msgspec import UNSET

from sessionmgr.manager import open_manager
from sessionmgr.model import Json, PermissionMode
from sessionmgr.store import MemoryStore

# The agent says which messages it got, and follows the order in its prompt.
AGENT = """
import json, sys
heard, open_sessions, turns = [], 0, {}
def write(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def say(session, text):
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    write(method="session/update", params={"sessionId": session, "update": chunk})
def end(reason="end_turn"):
    write(id=turn, result={"stopReason": reason})
for line in sys.stdin:
    message = json.loads(line)
    id, method, params = message.get("id"), message.get("method"), message.get("params", {})
    heard.append(method or "error %d" % message["error"]["code"] if "error" in message else method)
    session = params.get("sessionId", "")
    match method:
        case "initialize":
            can = {"loadSession": True, "sessionCapabilities": {"close": {}}}
            write(id=id, result={"protocolVersion": 1, "agentCapabilities": can})
        case "session/new":
            open_sessions += 1
            write(id=id, result={"sessionId": "s%d" % open_sessions})
        case "session/prompt":
            turn, mine, order = id, session, params["prompt"][0]["text"]
            turns[session] = id
            say(session, "begun")
            match order:
                case "wait":
                    pass
                case "claim":
                    claim = {"sessionUpdate": "subagent_update", "sessionId": "s1", "title": "x"}
                    write(method="session/update", params={"sessionId": session, "update": claim})
                    say("s1", " and ended")
                    write(id=turns["s1"], result={"stopReason": "end_turn"})
                    end()
                case "read":
                    asked = {"sessionId": session, "path": "/no"}
                    write(id=7, method="fs/read_text_file", params=asked)
                case _:
                    say(session, " " + ",".join(map(str, heard)))
                    end()
        case "session/cancel":
            end("cancelled")
        case None:
            say(mine, " " + ",".join(map(str, heard)))
            end()
        case _:
            write(id=id, result={})
"""
OPTIONS = {"command": [sys.executable, "-I", "-S", "-c", AGENT]}


async def test_a_real_child_is_driven_over_its_pipes(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with open_manager(store=MemoryStore(), environ={"HOME": str(tmp_path)}) as manager:
            mode = PermissionMode.FULL_AUTO
            session = await manager.open_session("acp", permission_mode=mode, cwd=tmp_path)
            async with session.start("wait", options=OPTIONS) as run:
                async for event in run:
                    if event.type == "message_streamed":
                        run.cancel()
                assert (await run.result()).status == "cancelled"
            async with session.start("read", options=OPTIONS) as run:
                text = (await run.result()).text
            assert text == (
                "begun initialize,session/new,session/prompt,session/cancel,session/prompt,"
                "error -32001"
            )


async def test_a_session_of_another_run_is_not_that_of_a_sub_agent(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with open_manager(store=MemoryStore(), environ={"HOME": str(tmp_path)}) as manager:
            mode = PermissionMode.FULL_AUTO
            first, second = [
                await manager.open_session("acp", permission_mode=mode, cwd=tmp_path)
                for _ in range(2)
            ]
            async with first.start("wait", options=OPTIONS) as run:
                async for event in run:
                    if event.type == "message_streamed":
                        break
                async with second.start("claim", options=OPTIONS) as other:
                    assert (await other.result()).text == "begun"
                assert (await run.result()).text == "begun and ended"


# It queues prompts, and says in which version each message came.
AGENT_2 = """
import json, sys
heard = []
def write(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def update(kind, **fields):
    write(method="session/update", params={
        "sessionId": "s", "update": {"sessionUpdate": kind, **fields}})
for line in sys.stdin:
    message = json.loads(line)
    id, method, params = message.get("id"), message.get("method"), message.get("params", {})
    heard.append(method or "error " + str(message["error"]["code"]))
    match method:
        case "initialize":
            assert params["protocolVersion"] == 2 and params["info"] and params["clientInfo"]
            info = {"name": "a", "version": "1"}
            able = {"session": {"prompt": {}, "mcp": {"stdio": {}}}}
            write(id=id, result={"protocolVersion": 2, "info": info, "capabilities": able})
        case "session/new":
            mode = {"configId": "mode", "category": "mode", "type": "select", "name": "Mode",
                    "currentValue": "plan", "options": [{"value": "default", "name": "Default"}]}
            write(id=id, result={"sessionId": "s", "configOptions": [mode]})
        case "session/set_config_option":
            heard.append(params["type"])
            mode["currentValue"] = params["value"]
            write(id=id, result={"configOptions": [mode]})
        case "session/prompt":
            write(id=id, result={"messageId": "m"})
            update("state_update", state="running")
            write(id=7, method="fs/read_text_file", params={"sessionId": "s", "path": "/no"})
        case None:
            text = {"type": "text", "text": ",".join(heard)}
            update("agent_message_chunk", messageId="a", content=text)
            update("state_update", state="idle", stopReason="end_turn")
        case _:
            write(id=id, result={})
"""


async def test_the_answer_to_the_handshake_decides_the_version(tmp_path: Path) -> None:
    options: dict[str, Json] = {
        "agent": "claude-agent-acp",
        "command": [sys.executable, "-I", "-S", "-c", AGENT_2],
        "protocol": "auto",
    }
    with trio.fail_after(60):
        async with open_manager(store=MemoryStore(), environ={"HOME": str(tmp_path)}) as manager:
            session = await manager.open_session("acp", cwd=tmp_path)
            async with session.start("hi", options=options) as run:
                text = (await run.result()).text
    # Version 2 has no files of the client, so the request for one is unknown.
    assert text == "initialize,session/new,session/set_config_option,id,session/prompt,error -32601"


# A sub-agent has a session of its own, in which it asks and reports.
AGENT_WITH_SUBAGENT = """
import json, sys
def write(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def update(session, kind, **fields):
    write(method="session/update", params={
        "sessionId": session, "update": {"sessionUpdate": kind, **fields}})
def say(session, text):
    update(session, "agent_message_chunk", content={"type": "text", "text": text})
for line in sys.stdin:
    message = json.loads(line)
    id, method, params = message.get("id"), message.get("method"), message.get("params", {})
    match method:
        case "session/new":
            write(id=id, result={"sessionId": "s"})
        case "initialize":
            write(id=id, result={"protocolVersion": 1, "agentCapabilities": {}})
        case "session/prompt":
            turn = id
            update("s", "subagent_update", sessionId="child", title="Ask")
            update("child", "subagent_update", sessionId="grandchild", title="Ask")
            option = {"optionId": "yes", "name": "Yes", "kind": "allow_once"}
            call = {"toolCallId": "c", "title": "saw", "kind": "execute"}
            asked = {"sessionId": "grandchild", "toolCall": call, "options": [option]}
            say("grandchild", "May I?")
            write(id=7, method="session/request_permission", params=asked)
        case None:
            update("grandchild", "tool_call_update", toolCallId="c", status="completed")
            say("child", "It said " + message["result"]["outcome"]["optionId"] + ".")
            say("s", "Done.")
            write(id=turn, result={"stopReason": "end_turn"})
"""


async def test_what_sub_agents_ask_and_report_belongs_to_the_run(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", "-c", AGENT_WITH_SUBAGENT]
    with trio.fail_after(60):
        async with open_manager(store=MemoryStore(), environ={"HOME": str(tmp_path)}) as manager:
            mode = PermissionMode.FULL_AUTO
            session = await manager.open_session("acp", permission_mode=mode, cwd=tmp_path)
            async with session.start("hi", options={"command": command}) as run:
                events = [event async for event in run]
                assert (await run.result()).text == "Done."
    said = {e.content: e.parent_tool_call_id for e in events if e.type == "message_received"}
    assert said == {
        "May I?": "grandchild",
        "It said yes.": "child",
        "Done.": UNSET,
    }
    assert [e.parent_tool_call_id for e in events if e.type == "tool_call_started"] == [
        "grandchild"
    ]
    assert [e.parent_tool_call_id for e in events if e.type == "tool_call_completed"] == [
        "grandchild"
    ]


async def test_a_session_is_closed_when_the_manager_is_done_with_it(tmp_path: Path) -> None:
    async def text_of(prompt: str) -> str:
        session = await manager.open_session("acp", cwd=tmp_path)
        try:
            async with session.start(prompt, options=OPTIONS) as run:
                return (await run.result()).text
        finally:
            session.release()

    with trio.fail_after(60):
        async with open_manager(store=MemoryStore(), environ={"HOME": str(tmp_path)}) as manager:
            await text_of("one")
            text = await text_of("two")
    assert text.split(",")[2:] == [
        "session/prompt",
        "session/close",
        "session/new",
        "session/prompt",
    ]
