"""Malformed messages: no decoder crashes on them, and all resulting events can be stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from sessionmgr.manager.validate_events import validate_events
from sessionmgr.model import Json, encode_event
from sessionmgr.wire import RpcErrorResponse, RpcNotification, RpcRequest, RpcResponse, UntypedFrame
from sessionmgr_adapters.acp.decode import MAX_REPAIRS, convert_leniently, decode_leniently
from sessionmgr_adapters.acp.failures import failure_of_refusal, failure_of_turn
from sessionmgr_adapters.acp.frames import (
    AcpFrame,
    AcpRefusal,
    PermissionRequest,
    PromptEnded,
    SessionUpdate,
)
from sessionmgr_adapters.acp.normalise import begin_turn, close_turn, normalise
from sessionmgr_adapters.acp.state import AcpState
from sessionmgr_adapters.acp.tool_calls import request_input
from sessionmgr_adapters.acp.updates import (
    ContextUpdate,
    ToolCallNews,
    ToolLocation,
    UnknownUpdate,
)
from sessionmgr_adapters.acp.v1 import V1, ProtocolV1
from sessionmgr_adapters.acp.v2 import V2
from tests.adapters.test_odd_frames import kind_of, odd_frames

GOLDEN = Path(__file__).parents[2] / "golden" / "acp"
both = pytest.mark.parametrize("wire", [V1, V2], ids=["v1", "v2"])


def said() -> list[str]:
    """Return each kind of message once, as it was recorded; an answer with its method."""
    found: dict[str, str] = {}
    for path in sorted(GOLDEN.rglob("*.jsonl")):
        sent: dict[object, str] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            entry: dict[str, Any] = json.loads(line)
            msg = entry["msg"]
            if entry["dir"] == ">" and "method" in msg:
                sent[msg.get("id")] = msg["method"]
            if entry["dir"] != "<":
                continue
            update = msg.get("params", {}).get("update", {})
            tags = [update.get(each) for each in ("sessionUpdate", "status", "state")]
            answered = None if "method" in msg else sent.get(msg.get("id"))
            key = f"{kind_of({**msg, 'id': 0})}/{tags}/{answered}/{'error' in msg}"
            found.setdefault(key, json.dumps({**msg, "answered": answered}))
    return list(found.values())


MESSAGES = said()


def decoded(wire: ProtocolV1, message: Json) -> AcpFrame | None:
    match message:
        case {"method": str(method), "id": int() | str() as id_, "params": params}:
            request = RpcRequest(id_, method, json.dumps(params).encode())
            wire.session_of(request)
            return wire.decode(request, "name")
        case {"method": str(method), "params": params}:
            notice = RpcNotification(method, json.dumps(params).encode())
            wire.session_of(notice)
            return wire.decode(notice)
        case {"answered": str(method), "error": error}:
            data = json.dumps(error).encode()
            refusal = RpcErrorResponse(1, -32603, "Internal error", data)
            return wire.decode_answer(method, refusal)
        case {"answered": str(method), "result": result}:
            return wire.decode_answer(method, RpcResponse(1, json.dumps(result).encode()))
        case _:
            return None


@both
@given(messages=st.lists(odd_frames(MESSAGES), max_size=8))
def test_an_agent_may_say_what_it_likes(wire: ProtocolV1, messages: list[Json]) -> None:
    state = AcpState()
    begin_turn(state)
    for message in messages:
        frame = decoded(wire, message)
        if frame is None:
            continue
        events = normalise(frame, state)
        if isinstance(frame, AcpRefusal):
            failure_of_refusal(frame)
        if isinstance(frame, AcpRefusal | PromptEnded):
            failure_of_turn(frame, state, "^Error")
        if isinstance(frame, PermissionRequest) and frame.tool_call is not None:
            request_input(frame.tool_call, state.calls.get(frame.tool_call.tool_call_id))
        for event in validate_events((*events, *close_turn(state)))[0]:
            encode_event(event)


@both
@given(params=st.binary(max_size=40) | st.sampled_from([b"", b"null", b"[]", b"{", b"\xff", b"1"]))
def test_params_may_be_anything(wire: ProtocolV1, params: bytes) -> None:
    methods = ["session/update", "session/request_permission", "$/cancel_request", "terminal/kill"]
    for method in methods:
        assert wire.session_of(RpcNotification(method, params)) is None
        assert isinstance(wire.decode(RpcNotification(method, params)), UntypedFrame)
        assert isinstance(wire.decode(RpcRequest(1, method, params), "1"), UntypedFrame)
    for method in ("initialize", "session/new", "session/prompt", "session/list", "other"):
        wire.decode_answer(method, RpcResponse(1, params or b"null"))


def update_of(update: Json) -> object:
    params = json.dumps({"sessionId": "s", "update": update}).encode()
    frame = V1.decode(RpcNotification("session/update", params))
    assert isinstance(frame, SessionUpdate)
    return frame.update


def test_a_malformed_field_that_may_be_absent_is_left_out() -> None:
    assert update_of(
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c",
            "status": "completed",
            "title": 5,
            "locations": [{"path": 7}],
        }
    ) == ToolCallNews(tool_call_id="c", status="completed")
    assert update_of(
        {"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": {"currency": "USD"}}
    ) == ContextUpdate(used=1, size=2)


def test_an_update_without_a_required_field_is_carried() -> None:
    update: Json = {"sessionUpdate": "tool_call_update", "status": "completed"}
    assert update_of(update) == UnknownUpdate(value=update)


def test_content_of_an_unknown_type_is_carried() -> None:
    update: Json = {"sessionUpdate": "agent_message_chunk", "content": {"type": "smell", "x": 1}}
    assert update_of(update) == UnknownUpdate(value=update)


def test_unknown_fields_are_ignored() -> None:
    assert update_of(
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "of_tomorrow": 1}
    ) == ToolCallNews(tool_call_id="c")


def test_what_is_no_object_is_of_unknown_form() -> None:
    assert isinstance(convert_leniently("text", ToolLocation), UntypedFrame)
    assert isinstance(decode_leniently(b"{", ToolLocation), UntypedFrame)


def test_a_value_with_too_many_malformed_fields_is_of_unknown_form() -> None:
    for count, is_left in ((MAX_REPAIRS - 1, True), (MAX_REPAIRS, False)):
        names = [f"f{number}" for number in range(count)]
        wide = msgspec.defstruct("Wide", [(name, int, 0) for name in names])
        found = convert_leniently(dict.fromkeys(names, "x"), wide)
        assert isinstance(found, wide) == is_left


def test_half_a_surrogate_pair_is_text() -> None:
    params = b'{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":'
    params += b'{"type":"text","text":"\\ud800"}}}'
    frame = V1.decode(RpcNotification("session/update", params))
    assert isinstance(frame, SessionUpdate)
    for event in normalise(frame, AcpState(session="s")):
        assert encode_event(event)
