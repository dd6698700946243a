"""Version 2 of the protocol: what differs from version 1."""

from __future__ import annotations

import json

import pytest

from sessionmgr.model import Json
from sessionmgr.wire import RpcNotification, RpcRequest, RpcResponse, UntypedFrame
from sessionmgr_adapters.acp.frames import (
    AcpAnswer,
    AcpCapabilities,
    AcpFrame,
    AcpRefusal,
    AuthMethod,
    ElicitationRequest,
    Initialized,
    PermissionRequest,
    PromptAccepted,
    SessionUpdate,
)
from sessionmgr_adapters.acp.updates import (
    AgentContent,
    ConfigOption,
    ConfigUpdate,
    ContentBlock,
    StateUpdate,
    ToolCallUpsert,
    UnknownUpdate,
)
from sessionmgr_adapters.acp.v1 import (
    V1,
    AcpCall,
    AcpMcpServer,
    ClientFeatures,
    ProtocolV1,
    SessionSetup,
)
from sessionmgr_adapters.acp.v2 import V2


def request(method: str, params: Json) -> AcpFrame:
    return V2.decode(RpcRequest(7, method, json.dumps(params).encode()), "7")


def answer(method: str, result: Json) -> AcpAnswer:
    return V2.decode_answer(method, RpcResponse(1, json.dumps(result).encode()))


def update(value: dict[str, Json]) -> object:
    params = json.dumps({"sessionId": "s", "update": value}).encode()
    frame = V2.decode(RpcNotification("session/update", params))
    assert isinstance(frame, SessionUpdate)
    return frame.update


HELLO: Json = {
    "protocolVersion": 2,
    "info": {"name": "an-agent", "version": "1"},
    "capabilities": {
        "session": {"prompt": {"image": {}}, "mcp": {"stdio": {}}, "delete": {}, "fork": None},
        "auth": {},
    },
    "authMethods": [
        {
            "type": "terminal",
            "methodId": "login",
            "name": "Log in",
            "env": [{"name": "A", "value": "b"}, {"name": "C", "value": 1}],
        }
    ],
}


@pytest.mark.parametrize("wire", [V1, V2], ids=["v1", "v2"])
def test_a_handshake_of_version_2_is_known_by_its_form(wire: ProtocolV1) -> None:
    found = wire.decode_answer("initialize", RpcResponse(1, json.dumps(HELLO).encode()))
    assert found == Initialized(
        version=2,
        agent="an-agent",
        agent_version="1",
        capabilities=AcpCapabilities(
            load=True,
            resume=True,
            list=True,
            close=True,
            delete=True,
            image=True,
            mcp_stdio=True,
            logout=True,
        ),
        auth_methods=(AuthMethod(id="login", name="Log in", type="terminal", env={"A": "b"}),),
    )


def test_our_handshake_serves_agents_of_both_versions() -> None:
    params = V2.initialize(ClientFeatures(elicitation_form=True), "1.0").params
    assert params["protocolVersion"] == 2
    assert params["info"] == params["clientInfo"]
    assert params["capabilities"] == {"auth": {"terminal": {}}, "elicitation": {"form": {}}}
    assert "clientCapabilities" in params


def test_a_prompt_is_answered_once_it_is_inserted() -> None:
    assert answer("session/prompt", {"messageId": "m"}) == PromptAccepted(message_id="m")
    assert isinstance(answer("session/prompt", {"stopReason": "end_turn"}), AcpRefusal)


def test_a_state_reports_the_end_of_a_turn() -> None:
    assert update(
        {"sessionUpdate": "state_update", "state": "idle", "stopReason": 5, "background": []}
    ) == StateUpdate(state="idle", background=())


def test_a_message_has_three_states_of_content() -> None:
    name: dict[str, Json] = {"sessionUpdate": "agent_message", "messageId": "m"}
    assert update(name) == AgentContent(message_id="m")
    assert update({**name, "content": None}) == AgentContent(message_id="m", content=None)
    text: Json = [{"type": "text", "text": "x"}]
    assert update({**name, "content": text}) == AgentContent(
        message_id="m", content=(ContentBlock(type="text", text="x"),)
    )
    odd: dict[str, Json] = {**name, "content": [{"type": "smell"}]}
    assert update(odd) == UnknownUpdate(value=odd)


def test_a_config_option_has_another_name_for_its_id() -> None:
    option: Json = {"configId": "brave", "name": "Brave", "type": "boolean", "currentValue": True}
    assert update({"sessionUpdate": "config_option_update", "configOptions": [option]}) == (
        ConfigUpdate(options=(ConfigOption(id="brave", name="Brave", type="boolean", value=True),))
    )


def test_updates_of_version_1_alone_are_unknown() -> None:
    mode: dict[str, Json] = {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}
    assert update(mode) == UnknownUpdate(value=mode)


ASKED: dict[str, Json] = {"sessionId": "s", "title": "Run it?", "options": []}


def test_permission_is_asked_for_a_subject() -> None:
    call: Json = {"type": "tool_call", "toolCall": {"toolCallId": "c", "status": "pending"}}
    found = request("session/request_permission", {**ASKED, "subject": call})
    assert found == PermissionRequest(
        session_id="s",
        name="7",
        title="Run it?",
        options=(),
        tool_call=ToolCallUpsert(tool_call_id="c", status="pending"),
        subject=call,
    )
    command: Json = {"type": "command", "command": "ls", "cwd": "/w", "toolCallId": "c"}
    found = request("session/request_permission", {**ASKED, "subject": command})
    assert isinstance(found, PermissionRequest)
    assert (found.command, found.cwd) == ("ls", "/w")
    assert found.tool_call == ToolCallUpsert(tool_call_id="c")


@pytest.mark.parametrize(
    "subject", [None, {"type": "of_tomorrow"}, {"type": "tool_call", "toolCall": {}}]
)
def test_a_subject_of_unknown_form_is_kept(subject: Json) -> None:
    found = request("session/request_permission", {**ASKED, "subject": subject})
    assert isinstance(found, PermissionRequest)
    assert (found.tool_call, found.command, found.subject) == (None, None, subject)


def test_the_client_has_no_files_and_no_terminals() -> None:
    params: Json = {"sessionId": "s", "path": "/x", "terminalId": "t"}
    assert isinstance(request("fs/read_text_file", params), UntypedFrame)
    assert isinstance(request("terminal/kill", params), UntypedFrame)
    elicitation = request("elicitation/create", {"sessionId": "s", "mode": "form", "message": "?"})
    assert isinstance(elicitation, ElicitationRequest)


def test_only_work_of_known_form_can_be_cancelled() -> None:
    named: dict[str, Json] = {"type": "terminal", "terminalId": "t"}
    call = AcpCall("terminal/cancel", {"sessionId": "s", "terminalId": "t"})
    assert V2.cancel_background("s", named) == call
    assert V1.cancel_background("s", named) is None
    child: dict[str, Json] = {"type": "subagent", "sessionId": "child"}
    assert V2.cancel_background("s", child) == V2.cancel("child")
    assert V2.cancel_background("s", {"type": "of_tomorrow"}) is None


def test_the_version_of_the_agent_is_recorded_with_that_of_the_protocol() -> None:
    assert (V1.program_version("1.2"), V1.program_version("")) == ("1.2", None)
    assert (V2.program_version("1.2"), V2.program_version("")) == ("1.2 (ACP 2)", "(ACP 2)")


def test_what_is_sent_in_another_way() -> None:
    setup = SessionSetup(cwd="/w", mcp_servers=(AcpMcpServer(name="a", command="/bin/a"),))
    loaded = V2.load_session("s", setup)
    assert loaded.method == "session/resume"
    assert loaded.params["replayFrom"] == {"type": "start"}
    assert "replayFrom" not in V2.resume_session("s", setup).params
    assert V2.authenticate("m").method == "auth/login"
    assert V2.set_option("s", "o", "v").params["type"] == "id"
    assert V2.set_option("s", "o", value=False).params["type"] == "boolean"
    assert V2.mcp_server(AcpMcpServer(name="a", command="/bin/a"))["type"] == "stdio"
    assert V2.mcp_server(AcpMcpServer(name="a", url="http://x"))["type"] == "http"
