"""The protocol's own schemas: what we send is valid, and what it declares has a type here."""

from __future__ import annotations

import json

import pytest

from sessionmgr.adapter.kit import PromptImage
from sessionmgr.model import Json, encode_event
from sessionmgr.wire import RpcNotification, RpcRequest, RpcResponse, UntypedFrame
from sessionmgr_adapters.acp import answers
from sessionmgr_adapters.acp.frames import AcpRefusal, AgentRequest, SessionUpdate
from sessionmgr_adapters.acp.normalise import begin_turn, close_turn, normalise
from sessionmgr_adapters.acp.state import AcpState
from sessionmgr_adapters.acp.updates import UnknownUpdate
from sessionmgr_adapters.acp.v1 import (
    V1,
    AcpCall,
    AcpMcpServer,
    ClientFeatures,
    ProtocolV1,
    SessionSetup,
    SystemPrompt,
)
from sessionmgr_adapters.acp.v2 import V2
from tests.adapters.acp.schema import ProtocolSchema, load

KINDS = [(V1, "stable"), (V1, "unstable"), (V2, "stable"), (V2, "unstable")]
every_schema = pytest.mark.parametrize(
    ("wire", "kind"), KINDS, ids=[f"v{wire.version}-{kind}" for wire, kind in KINDS]
)
each_version = pytest.mark.parametrize("wire", [V1, V2], ids=["v1", "v2"])

ASKED: dict[str, Json] = {"sessionId": "s", "title": "t", "options": []}
UNSUPPORTED = {"mcp/message"}
"""Requests for capabilities that we do not offer."""
EXTENSIONS = {"_session/steering", "session/set_model"}
"""Requests of ours that are not in the schema."""


def dumped(value: Json) -> bytes:
    return json.dumps(value).encode()


@every_schema
@pytest.mark.parametrize("full", [False, True], ids=["required", "full"])
def test_each_declared_update_has_a_type(wire: ProtocolV1, kind: str, *, full: bool) -> None:
    schema = load(wire.version, kind)
    variants = schema.variants("SessionUpdate", "sessionUpdate")
    assert {"agent_message_chunk", "tool_call_update"} <= variants.keys()
    for tag, variant in variants.items():
        update = schema.sample(variant, full=full)
        assert schema.faults("SessionUpdate", update) == [], tag
        params = dumped({"sessionId": "s", "update": update})
        frame = wire.decode(RpcNotification("session/update", params))
        assert isinstance(frame, SessionUpdate), tag
        assert not isinstance(frame.update, UnknownUpdate), tag
        state = AcpState(session="s")
        begin_turn(state)
        for event in [*normalise(frame, state), *close_turn(state)]:
            assert encode_event(event)
            assert event.type != "raw_received" or tag == "notice"


@every_schema
def test_an_undeclared_update_is_carried(wire: ProtocolV1, kind: str) -> None:
    load(wire.version, kind)
    params = dumped({"sessionId": "s", "update": {"sessionUpdate": "of_tomorrow", "x": 1}})
    frame = wire.decode(RpcNotification("session/update", params))
    assert isinstance(frame, SessionUpdate)
    assert frame.update == UnknownUpdate(value={"sessionUpdate": "of_tomorrow", "x": 1})


@every_schema
@pytest.mark.parametrize("full", [False, True], ids=["required", "full"])
def test_each_declared_request_has_a_type(wire: ProtocolV1, kind: str, *, full: bool) -> None:
    schema = load(wire.version, kind)
    requests = schema.messages("client", "Request")
    assert "session/request_permission" in requests
    for method, name in requests.items():
        params = schema.sample(schema.types[name], full=full)
        assert schema.faults(name, params) == [], method
        frame = wire.decode(RpcRequest(1, method, dumped(params)), "1")
        if method in UNSUPPORTED:
            assert isinstance(frame, UntypedFrame)
        else:
            assert isinstance(frame, AgentRequest), method
            assert frame.name == "1"
            normalise(frame, AcpState())


@every_schema
def test_each_variant_of_a_subject_and_of_an_elicitation_has_a_type(
    wire: ProtocolV1, kind: str
) -> None:
    schema = load(wire.version, kind)
    for mode, variant in schema.variants("CreateElicitationRequest", "mode").items():
        elicitation: Json = {"message": "m", **_object(schema, variant)}
        frame = wire.decode(RpcRequest(1, "elicitation/create", dumped(elicitation)), "1")
        assert isinstance(frame, AgentRequest), mode
    if wire is V1:
        return
    for type_, variant in schema.variants("RequestPermissionSubject", "type").items():
        asked: Json = {**ASKED, "subject": _object(schema, variant)}
        frame = wire.decode(RpcRequest(1, "session/request_permission", dumped(asked)), "1")
        assert isinstance(frame, AgentRequest), type_
        assert getattr(frame, "tool_call", None) is not None


def _object(schema: ProtocolSchema, variant: dict[str, Json]) -> dict[str, Json]:
    sample = schema.sample(variant, full=True)
    assert isinstance(sample, dict)
    return sample


@every_schema
@pytest.mark.parametrize("full", [False, True], ids=["required", "full"])
def test_each_declared_answer_has_a_type(wire: ProtocolV1, kind: str, *, full: bool) -> None:
    schema = load(wire.version, kind)
    for method, name in schema.messages("agent", "Response").items():
        result = schema.sample(schema.types[name], full=full)
        assert schema.faults(name, result) == [], method
        answer = wire.decode_answer(method, RpcResponse(1, dumped(result)))
        assert not isinstance(answer, AcpRefusal), method


SETUP = SessionSetup(
    cwd="/work",
    directories=("/more",),
    mcp_servers=(
        AcpMcpServer(name="local", command="/bin/server", args=("-x",), env={"KEY": "value"}),
        AcpMcpServer(name="remote", url="https://example.invalid/", headers={"A": "b"}),
    ),
    system_prompt=SystemPrompt(text="Be brief.", override=True),
)
BLOCKS = [
    answers.text_block("Hello"),
    answers.image_block(PromptImage("image/png", b"\x89PNG")),
    answers.resource_link("file:///work/a.txt", "a.txt"),
]
ALL = ClientFeatures(
    read_file=True, write_file=True, terminal=True, elicitation_form=True, elicitation_url=True
)


def requests_of(wire: ProtocolV1) -> list[AcpCall]:
    calls = [
        *(wire.initialize(ClientFeatures(), "1.0"), wire.initialize(ALL, "1.0")),
        *(wire.authenticate("login"), wire.new_session(SETUP), wire.load_session("s", SETUP)),
        *(wire.resume_session("s", SETUP), wire.fork_session("s", SETUP)),
        *(wire.new_session(SessionSetup(cwd="/work")), wire.prompt("s", BLOCKS)),
        *(wire.steer("s", BLOCKS), wire.cancel("s"), wire.set_model("s", "m")),
        *(wire.set_option("s", "mode", "plan"), wire.set_option("s", "brave", value=True)),
        *(wire.close_session("s"), wire.delete_session("s"), wire.list_sessions()),
        wire.list_sessions("/work", "next"),
    ]
    if wire is V2:
        work: list[Json] = [
            {"type": "terminal", "terminalId": "t"},
            {"type": "tool_call", "toolCallId": "c"},
        ]
        cancelled = [V2.cancel_background("s", each) for each in work]
        return [*calls, *(each for each in cancelled if each is not None)]
    return [*calls, wire.set_mode("s", "plan")]


@each_version
def test_our_requests_are_valid_and_have_no_unknown_fields(wire: ProtocolV1) -> None:
    schema = load(wire.version, "unstable")
    types = {**schema.messages("agent", "Request"), **schema.messages("agent", "Notification")}
    for method, params in requests_of(wire):
        if method in EXTENSIONS:
            continue
        assert schema.faults(types[method], params) == [], method
        extra = {"clientInfo", "clientCapabilities"} if wire is V2 else set[str]()
        assert schema.unknown_fields(types[method], params) <= extra, method


def test_a_handshake_for_version_2_is_valid_in_version_1() -> None:
    schema = load(1, "stable")
    assert schema.faults("InitializeRequest", V2.initialize(ALL, "1.0").params) == []


ANSWERS = [
    ("session/request_permission", answers.permission_answer("allow")),
    ("session/request_permission", answers.permission_answer(None)),
    ("elicitation/create", answers.elicitation_answer("accept", {"name": "x", "many": ["y"]})),
    ("elicitation/create", answers.elicitation_answer("decline")),
    ("fs/read_text_file", answers.file_answer("text")),
    ("fs/write_text_file", answers.EMPTY),
    ("terminal/create", answers.terminal_created("t")),
    ("terminal/output", answers.terminal_output("text", truncated=False)),
    (
        "terminal/output",
        answers.terminal_output(
            "text", truncated=True, exit_status=answers.terminal_exit(None, "SIGTERM")
        ),
    ),
    ("terminal/wait_for_exit", answers.terminal_exit(3, None)),
    ("terminal/kill", answers.EMPTY),
    ("terminal/release", answers.EMPTY),
]


@each_version
def test_our_answers_are_valid(wire: ProtocolV1) -> None:
    schema = load(wire.version, "stable")
    types = schema.messages("client", "Response")
    for method, answer in ANSWERS:
        if method in types:
            assert schema.faults(types[method], answer) == [], method
    assert wire is V2 or {method for method, _ in ANSWERS} == types.keys()
