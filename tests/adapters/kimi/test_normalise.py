"""Events of Kimi's frames: pieces and their ends, tools, retries, sub-agents, usage."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from sessionmgr.adapter.kit import PeerRequest, RpcAnswer
from sessionmgr.model import (
    CompactionCompleted,
    CompactionStarted,
    Event,
    ImageReceived,
    Json,
    MessageReceived,
    MessageStreamed,
    OutputReceived,
    PlanUpdated,
    RawReceived,
    ReasoningReceived,
    RetryScheduled,
    RunStarted,
    SessionStatsUpdated,
    TokenUsageUpdated,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
    Usage,
)
from sessionmgr.testing.strategies import json_values
from sessionmgr.wire import NoiseLine, UntypedFrame
from sessionmgr_adapters.kimi.frames import KimiEvent, KimiFrame, decode_lines
from sessionmgr_adapters.kimi.normalise import KimiState, end_turn, normalise
from tests.adapters.kimi.mock_agent import call, edit_request, result, shell_request, text


def think(words: str) -> KimiEvent:
    return KimiEvent("ContentPart", {"type": "think", "think": words, "encrypted": None})


def play(*frames: KimiFrame, state: KimiState | None = None) -> list[Event]:
    state = state or KimiState()
    return [event for frame in frames for event in normalise(frame, state)]


def line(kind: str, payload: object, **more: object) -> bytes:
    params = {"type": kind, "payload": payload}
    return json.dumps({"jsonrpc": "2.0", "method": "event", "params": params, **more}).encode()


def test_pieces_become_a_message_when_something_else_follows() -> None:
    state = KimiState()
    events = play(think("a"), think("b"), text("one "), text("two"), state=state)
    events += end_turn(state, "finished")
    assert [each.content for each in events if isinstance(each, ReasoningReceived)] == ["ab"]
    [message] = [each for each in events if isinstance(each, MessageReceived)]
    assert message.content == "one two"
    pieces = [each for each in events if isinstance(each, MessageStreamed)]
    assert {each.message_id for each in pieces} == {message.message_id}
    again = play(text("more"), think("c"), text("again"), state=state)
    assert [each.content for each in again if isinstance(each, MessageReceived)] == ["more"]


def test_the_arguments_of_a_call_are_complete_at_the_next_event() -> None:
    state = KimiState()
    begun, part = call("c1", "Shell", '{"command": ')
    assert play(text("Look."), begun, part, state=state)[-1].type == "message_received"
    assert play(shell_request("a1", "c1", "ls"), state=state) == []  # it overtook the arguments
    assert play(KimiEvent("ToolCallPart", {"arguments_part": '"ls"}'}), state=state) == []
    [started] = play(shell_request("a1", "c1", "ls"), state=state)
    assert started == ToolCallStarted(
        tool_call_id="c1", tool_name="Shell", tool_input={"command": "ls"}
    )
    assert state.tools == {"c1": ("Shell", {"command": "ls"})}
    [ended] = play(result("c1", "x", failed=True, message="exit 3"), state=state)
    assert ended == ToolCallFailed(tool_call_id="c1", tool_name="Shell", tool_output="exit 3\nx")
    [unknown] = play(result("c1", "x"), state=state)
    assert isinstance(unknown, RawReceived)


def test_arguments_that_are_no_json_are_shown_as_they_are() -> None:
    events = play(*call("c1", "Shell", "{oh"), result("c1", failed=True, message="no"))
    assert isinstance(events[0], ToolCallStarted)
    assert events[0].tool_input == "{oh"
    [started] = play(*call("c2", "Think", ""), text("x"))[:1]
    assert isinstance(started, ToolCallStarted)
    assert started.tool_input == {}


def test_a_repeated_step_voids_its_output_and_its_calls() -> None:
    state = KimiState()
    retry: dict[str, Json] = {
        "n": 1,
        "next_attempt": 2,
        "max_attempts": 3,
        "wait_s": 0.5,
        "error_type": "APIStatusError",
        "status_code": 429,
    }
    events = play(
        text("half"), *call("c1", "Shell", "{}"), KimiEvent("StepRetry", retry), state=state
    )
    [voided] = [each for each in events if isinstance(each, ToolCallFailed)]
    assert voided.tool_output == "the step was repeated"
    [scheduled] = [each for each in events if isinstance(each, RetryScheduled)]
    assert (scheduled.attempt, scheduled.delay, scheduled.by) == (2, 0.5, "provider")
    assert scheduled.failure is not None
    assert scheduled.failure.kind == "rate_limited"
    broken = play(text("x"), KimiEvent("StepRetry", {"wait_s": "?"}), state=state)[-1]
    assert isinstance(broken, RetryScheduled)
    assert (broken.attempt, broken.delay) == (1, None)
    assert end_turn(state, "finished") == []


def test_a_message_that_was_begun_again_unannounced_is_received_once() -> None:
    state = KimiState()
    play(text("half "), text("half "), text("of it"), state=state)
    [message] = end_turn(state, "finished", "half of it")
    assert isinstance(message, MessageReceived)
    assert (message.content, message.message_id) == ("half of it", "message-1")
    play(text("one"), state=state)
    [other] = end_turn(state, "finished", "something else")
    assert isinstance(other, MessageReceived)
    assert other.content == "one"


def test_calls_without_a_result_end_with_a_finished_turn_only() -> None:
    for status, ends in (("finished", 1), ("cancelled", 0)):
        state = KimiState()
        play(*call("c1", "Shell", "{}"), KimiEvent("TurnEnd"), state=state)
        assert len(end_turn(state, status)) == ends


def test_the_usage_of_a_step_is_an_increment() -> None:
    spent: Json = {"input_other": 1, "output": 2, "input_cache_read": 3, "input_cache_creation": 4}
    status: dict[str, Json] = {
        "token_usage": spent,
        "context_tokens": 90,
        "max_context_tokens": 100,
        "plan_mode": False,
    }
    state = KimiState()
    first, stats = play(KimiEvent("StatusUpdate", status), state=state)
    step = Usage(input=1, cached_input=3, cache_write=4, output=2)
    assert first == TokenUsageUpdated(usage=step, total=step)
    assert stats == SessionStatsUpdated(context_window=100, context_used=90)
    second = play(KimiEvent("StatusUpdate", {"token_usage": spent}), state=state)
    assert second == [TokenUsageUpdated(usage=step, total=step + step)]
    assert play(KimiEvent("StatusUpdate", {"token_usage": None, "plan_mode": True})) == []


def test_the_events_of_a_sub_agent_name_their_call() -> None:
    def inner(frame: KimiEvent) -> KimiEvent:
        event: Json = {"type": frame.type, "payload": frame.payload}
        return KimiEvent("SubagentEvent", {"parent_tool_call_id": "t1", "event": event})

    state = KimiState()
    begun, part = call("c1", "Shell", "{}")
    frames = (text("root"), inner(text("sub")), inner(begun), inner(part))
    events = play(*frames, inner(result("c1", "ok")), inner(text("end")), state=state)
    assert [each.type for each in events] == [
        *("message_streamed", "message_streamed", "message_received"),
        *("tool_call_started", "tool_call_completed", "message_streamed"),
    ]
    assert [each.parent_tool_call_id for each in events[1:]] == ["t1"] * 5
    assert state.unasked == "Shell"
    play(*call("t1", "Agent", "{}"), text("."), state=state)
    [last, _] = play(result("t1", "summary"), state=state)
    assert isinstance(last, MessageReceived)
    assert (last.content, last.parent_tool_call_id) == ("end", "t1")


def test_a_tool_that_acts_although_it_has_not_asked_is_noted() -> None:
    for asks in (True, False):
        state = KimiState()
        play(*call("c1", "WriteFile", '{"path": "x"}'), state=state)
        if asks:
            play(edit_request("a1", "c1", "/w/x"), state=state)
        play(result("c1", ""), state=state)
        assert state.unasked == (None if asks else "WriteFile")


def test_a_background_task_and_the_images_of_an_output_are_noted() -> None:
    state = KimiState()
    url = "data:image/png;base64,iVBORw0KGgo="
    output: Json = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": url}}]
    events = play(*call("c1", "ReadMediaFile", "{}"), result("c1", output), state=state)
    assert isinstance(events[1], ToolCallCompleted)
    assert "base64" not in str(events[1].tool_output)
    assert isinstance(events[2], ImageReceived)
    assert state.images.collect() == [b"\x89PNG\r\n\x1a\n"]
    display: Json = [{"type": "background_task", "task_id": "1"}]
    value: Json = {"is_error": False, "output": "", "message": "started", "display": display}
    ended = KimiEvent("ToolResult", {"tool_call_id": "c2", "return_value": value})
    events = play(*call("c2", "Shell", "{}"), ended, state=state)
    assert isinstance(events[1], ToolCallCompleted)
    assert events[1].tool_output == "started"
    assert state.has_tasks


def test_other_events_have_their_own_or_are_carried() -> None:
    state = KimiState()
    state.start = RunStarted(provider_session_id="s")
    begin = KimiEvent("TurnBegin", {"user_input": "x"})
    assert play(begin, begin, state=state) == [RunStarted(provider_session_id="s")]
    assert play(KimiEvent("CompactionBegin"), KimiEvent("CompactionEnd")) == [
        CompactionStarted(trigger="auto"),
        CompactionCompleted(trigger="auto"),
    ]
    [plan] = play(KimiEvent("PlanDisplay", {"content": "1. go", "file_path": "/p"}))
    assert isinstance(plan, PlanUpdated)
    assert [each.content for each in plan.entries] == ["1. go"]
    assert play(KimiEvent("Notification", {"title": "t"})) == [
        RawReceived(frame={"type": "Notification", "payload": {"title": "t"}})
    ]
    assert play(KimiEvent("HookTriggered"), KimiEvent("StepInterrupted")) == []
    assert play(RpcAnswer(1, "steer"), PeerRequest("a", "HookRequest")) == []
    assert isinstance(play(NoiseLine(b"hello"))[0], OutputReceived)


def test_lines_are_decoded_to_frames() -> None:
    lines = [
        line("TurnEnd", {}),
        line("HookRequest", {"id": "h"}, method="request", id="h"),
        b'{"jsonrpc":"2.0","id":"7:steer","result":{"status":"steered"}}',
        b'{"jsonrpc":"2.0","id":"0:prompt","error":{"code":-32003,"message":"no","data":null}}',
    ]
    event, request, answer, refused = decode_lines(lines)
    assert event == KimiEvent("TurnEnd", {})
    assert request == PeerRequest("h", "HookRequest", {"id": "h"})
    assert answer == RpcAnswer(7, "steer", b'{"status":"steered"}')
    assert isinstance(refused, RpcAnswer)
    assert refused.refusal is not None
    assert refused.refusal.message == "no"


def test_messages_of_another_form_are_carried() -> None:
    lines = [
        line("X", "no object"),
        line("X", {}, method="other"),
        b'{"jsonrpc":"2.0","id":"nine:x","result":1}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Invalid JSON"}}',
        b'{"jsonrpc":"2.0","id":5,"result":1}',
        b"noise",
    ]
    frames = decode_lines(lines)
    assert [type(each) for each in frames] == [UntypedFrame] * 5 + [NoiseLine]
    assert all(normalise(each, KimiState()) for each in frames)


@given(kind=st.sampled_from([
    *("ContentPart", "ToolCall", "ToolCallPart", "ToolResult", "StatusUpdate", "StepRetry"),
    *("SubagentEvent", "PlanDisplay", "ApprovalResponse", "TurnBegin", "Other"),
]), payload=json_values())  # fmt: skip
def test_no_payload_makes_the_decoder_raise(kind: str, payload: Json) -> None:
    state = KimiState()
    for frame in decode_lines([line(kind, payload), line("SubagentEvent", {"event": payload})]):
        normalise(frame, state)
    end_turn(state, "finished")
