"""Version 1 of the protocol: what its messages mean, and what is sent."""

from __future__ import annotations

import json

import pytest

from sessionmgr.model import Json
from sessionmgr.wire import RpcErrorResponse, RpcNotification, RpcRequest, RpcResponse, UntypedFrame
from sessionmgr_adapters.acp.frames import (
    Acknowledged,
    AcpAnswer,
    AcpCapabilities,
    AcpEnvVariable,
    AcpFrame,
    AcpRefusal,
    AuthMethod,
    ElicitationCompleted,
    ElicitationRequest,
    Initialized,
    ListedSession,
    OptionsChanged,
    PermissionOption,
    PermissionRequest,
    PromptEnded,
    RequestCancelled,
    SessionMode,
    SessionModes,
    SessionOpened,
    SessionsListed,
    SessionUpdate,
    SilentAcpNotice,
    SteeringAnswered,
    TerminalCreateRequest,
    TerminalKillRequest,
)
from sessionmgr_adapters.acp.updates import (
    AcpPlanEntry,
    AcpUsage,
    AgentPlan,
    ConfigChoice,
    ConfigOption,
    ConfigUpdate,
    ToolCallUpsert,
    UnknownUpdate,
)
from sessionmgr_adapters.acp.v1 import V1, AcpMcpServer, SessionSetup


def notice(method: str, params: Json) -> AcpFrame:
    return V1.decode(RpcNotification(method, json.dumps(params).encode()))


def request(method: str, params: Json) -> AcpFrame:
    return V1.decode(RpcRequest(7, method, json.dumps(params).encode()), "7")


def answer(method: str, result: Json) -> AcpAnswer:
    return V1.decode_answer(method, RpcResponse(1, json.dumps(result).encode()))


def update(value: dict[str, Json]) -> object:
    frame = notice("session/update", {"sessionId": "s", "update": value})
    assert isinstance(frame, SessionUpdate)
    assert frame.session_id == "s"
    return frame.update


# --- the handshake -------------------------------------------------------------------------------


def test_a_handshake_tells_what_the_agent_can_do() -> None:
    found = answer(
        "initialize",
        {
            "protocolVersion": 1,
            "agentInfo": {"name": "an-agent", "title": "Agent", "version": "1.2.3"},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False},
                "mcpCapabilities": {"http": True},
                "sessionCapabilities": {"list": {}, "resume": None, "close": {}},
                "auth": {"logout": {}},
            },
            "authMethods": [
                {"id": "login", "name": "Log in", "type": "terminal", "args": ["login", 1]},
                {"id": "key", "name": "Key", "description": "A key"},
                {"name": "of no use"},
            ],
            "_meta": {"steering": {"supported": True}},
        },
    )
    assert found == Initialized(
        version=1,
        agent="an-agent",
        title="Agent",
        agent_version="1.2.3",
        capabilities=AcpCapabilities(
            load=True,
            list=True,
            close=True,
            image=True,
            mcp_stdio=True,
            mcp_http=True,
            logout=True,
        ),
        auth_methods=(
            AuthMethod(id="login", name="Log in", type="terminal", args=("login",)),
            AuthMethod(id="key", name="Key", description="A key"),
        ),
        steers=True,
        meta={"steering": {"supported": True}},
    )


def test_a_login_in_a_terminal_is_known_in_its_older_form() -> None:
    method: Json = {"id": "login", "_meta": {"terminal-auth": {"args": ["login"]}}}
    found = answer("initialize", {"protocolVersion": 1, "authMethods": [method]})
    assert isinstance(found, Initialized)
    assert [each.type for each in found.auth_methods] == ["terminal"]


@pytest.mark.parametrize("echoed", [1, 2])
def test_an_agent_without_the_form_of_version_2_speaks_version_1(echoed: int) -> None:
    found = answer("initialize", {"protocolVersion": echoed, "agentCapabilities": {}})
    assert isinstance(found, Initialized)
    assert found.version == 1


def test_a_handshake_without_a_version_is_refused() -> None:
    found = answer("initialize", {})
    assert isinstance(found, AcpRefusal)
    assert found.code is None
    assert "initialize" in found.message


# --- sessions ------------------------------------------------------------------------------------

OPTION: Json = {
    "id": "mode",
    "name": "Mode",
    "category": "mode",
    "type": "select",
    "currentValue": "plan",
    "options": [
        {"value": "plan", "name": "Plan", "description": "Only plans"},
        {"group": "g", "name": "More", "options": [{"value": "auto", "name": "Auto"}, {}]},
    ],
}
READ_OPTION = ConfigOption(
    id="mode",
    name="Mode",
    category="mode",
    value="plan",
    choices=(
        ConfigChoice(value="plan", name="Plan", description="Only plans"),
        ConfigChoice(value="auto", name="Auto"),
    ),
)


def test_a_session_has_modes_models_and_options() -> None:
    found = answer(
        "session/new",
        {
            "sessionId": "s",
            "modes": {"currentModeId": "plan", "availableModes": [{"id": "plan", "name": "P"}]},
            "models": {"currentModelId": "m", "availableModels": [{"modelId": "m"}, {}]},
            "configOptions": [OPTION, {"name": "without an id"}],
        },
    )
    assert found == SessionOpened(
        method="session/new",
        session_id="s",
        modes=SessionModes(current="plan", available=(SessionMode(id="plan", name="P"),)),
        models=SessionModes(current="m", available=(SessionMode(id="m"),)),
        options=(READ_OPTION,),
    )


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_a_loaded_session_may_have_nothing_to_tell(method: str) -> None:
    assert answer(method, None) == SessionOpened(method=method)


def test_a_new_session_without_a_name_is_refused() -> None:
    assert isinstance(answer("session/new", {}), AcpRefusal)


def test_the_other_answers() -> None:
    usage: Json = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3, "thoughtTokens": None}
    assert answer("session/prompt", {"stopReason": "end_turn", "usage": usage}) == PromptEnded(
        stop_reason="end_turn", usage=AcpUsage(input_tokens=1, output_tokens=2, total_tokens=3)
    )
    assert answer("session/set_config_option", {"configOptions": [OPTION]}) == OptionsChanged(
        options=(READ_OPTION,)
    )
    assert answer("session/list", {"sessions": [{"sessionId": "s"}], "nextCursor": "n"}) == (
        SessionsListed(sessions=(ListedSession(session_id="s"),), next_cursor="n")
    )
    assert answer("_session/steering", {"outcome": "injected"}) == SteeringAnswered(
        outcome="injected"
    )
    assert answer("session/set_mode", {}) == Acknowledged(method="session/set_mode")


@pytest.mark.parametrize("result", [{}, {"stopReason": 1}, [], None])
def test_a_prompt_without_a_stop_reason_is_refused(result: Json) -> None:
    found = answer("session/prompt", result)
    assert isinstance(found, AcpRefusal)
    assert found.code is None


def test_a_malformed_session_of_a_list_is_left_out() -> None:
    assert answer("session/list", {"sessions": [{}, {"sessionId": "s", "title": 5}]}) == (
        SessionsListed(sessions=(ListedSession(session_id="s"),))
    )


def test_an_error_is_a_refusal() -> None:
    error = RpcErrorResponse(1, -32000, "Authentication required", b'{"a": 1}')
    assert V1.decode_answer("session/new", error) == AcpRefusal(
        method="session/new", code=-32000, message="Authentication required", data={"a": 1}
    )


# --- updates and requests ------------------------------------------------------------------------


def test_config_options_and_plans_have_a_common_form() -> None:
    assert update({"sessionUpdate": "config_option_update", "configOptions": [OPTION]}) == (
        ConfigUpdate(options=(READ_OPTION,))
    )
    entries: Json = [{"content": "one", "status": "pending", "priority": "high"}, 5]
    known = (AcpPlanEntry(content="one", priority="high"),)
    items: dict[str, Json] = {"type": "items", "planId": "p", "entries": entries}
    assert update({"sessionUpdate": "plan_update", "plan": items}) == AgentPlan(entries=known)
    text: dict[str, Json] = {"type": "markdown", "planId": "p", "content": "# Plan"}
    assert update({"sessionUpdate": "plan_update", "plan": text}) == AgentPlan(
        entries=(AcpPlanEntry(content="# Plan"),)
    )
    other: dict[str, Json] = {"sessionUpdate": "plan_update", "plan": {"type": "song"}}
    assert update(other) == UnknownUpdate(value=other)


def test_updates_of_version_2_are_unknown() -> None:
    idle: dict[str, Json] = {"sessionUpdate": "state_update", "state": "idle"}
    assert update(idle) == UnknownUpdate(value=idle)


def test_a_request_for_permission_is_about_a_tool_call() -> None:
    options: Json = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    call: Json = {"toolCallId": "c", "title": 5, "rawInput": {"command": "ls"}}
    found = request(
        "session/request_permission", {"sessionId": "s", "options": options, "toolCall": call}
    )
    assert found == PermissionRequest(
        session_id="s",
        name="7",
        options=(PermissionOption(option_id="yes", name="Yes", kind="allow_once"),),
        tool_call=ToolCallUpsert(tool_call_id="c", raw_input={"command": "ls"}),
    )


@pytest.mark.parametrize(
    "params",
    [
        {"sessionId": "s", "options": []},
        {"sessionId": "s", "options": [], "toolCall": {"title": "no id"}},
        {"sessionId": "s", "options": [{"name": "no id"}], "toolCall": {"toolCallId": "c"}},
    ],
)
def test_a_request_for_permission_that_cannot_be_judged_is_carried(params: Json) -> None:
    assert isinstance(request("session/request_permission", params), UntypedFrame)


def test_requests_for_the_client() -> None:
    assert request(
        "terminal/create",
        {"sessionId": "s", "command": "ls", "args": ["-l"], "env": [{"name": "A", "value": "b"}]},
    ) == TerminalCreateRequest(
        session_id="s",
        name="7",
        command="ls",
        args=("-l",),
        env=(AcpEnvVariable(name="A", value="b"),),
    )
    assert request("terminal/kill", {"sessionId": "s", "terminalId": "t"}) == (
        TerminalKillRequest(session_id="s", name="7", terminal_id="t")
    )
    assert request("elicitation/create", {"sessionId": "s", "mode": "url", "url": "u"}) == (
        ElicitationRequest(session_id="s", name="7", mode="url", url="u")
    )
    assert isinstance(request("terminal/paint", {"sessionId": "s"}), UntypedFrame)
    assert isinstance(notice("terminal/kill", {"sessionId": "s", "terminalId": "t"}), UntypedFrame)


def test_other_notifications() -> None:
    assert notice("$/cancel_request", {"requestId": "a"}) == RequestCancelled(name='"a"')
    assert notice("$/cancel_request", {"requestId": 3}) == RequestCancelled(name="3")
    assert notice("elicitation/complete", {"elicitationId": "e"}) == (
        ElicitationCompleted(elicitation_id="e")
    )
    assert notice("_auth/status_update", {}) == SilentAcpNotice(method="_auth/status_update")
    assert isinstance(notice("of/tomorrow", {"x": 1}), UntypedFrame)


def test_a_message_names_its_session() -> None:
    message = RpcNotification("session/update", b'{"sessionId": "s", "update": {}}')
    assert V1.session_of(message) == "s"
    assert V1.session_of(RpcNotification("x", b'{"sessionId": 5}')) is None
    assert V1.session_of(RpcNotification("x")) is None
    odd = RpcNotification("x", b'{"sessionId": "s", "text": "\\ud800", "n": NaN}')
    assert V1.session_of(odd) == "s"


# --- requests of ours ----------------------------------------------------------------------------


def test_a_server_is_a_command_or_an_address() -> None:
    local = AcpMcpServer(name="a", command="/bin/a", args=("-x",), env={"K": "v"})
    assert V1.mcp_server(local) == {
        "name": "a",
        "command": "/bin/a",
        "args": ["-x"],
        "env": [{"name": "K", "value": "v"}],
    }
    remote = AcpMcpServer(name="b", url="http://x", transport="sse", headers={"A": "1"})
    assert V1.mcp_server(remote) == {
        "type": "sse",
        "name": "b",
        "url": "http://x",
        "headers": [{"name": "A", "value": "1"}],
    }


def test_what_was_not_asked_for_is_not_sent() -> None:
    assert V1.new_session(SessionSetup(cwd="/w")).params == {"cwd": "/w", "mcpServers": []}
    assert V1.list_sessions().params == {}
    assert V1.set_option("s", "o", "v").params == {"sessionId": "s", "configId": "o", "value": "v"}
    assert V1.set_option("s", "o", value=True).params["type"] == "boolean"
