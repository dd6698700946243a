"""The frames of a headless Gemini as events."""

from __future__ import annotations

import json
from typing import cast

import pytest
from hypothesis import given, strategies as st

from sessionmgr.model import (
    ErrorOccurred,
    Event,
    Json,
    MessageReceived,
    MessageStreamed,
    OutputReceived,
    RawReceived,
    RunStarted,
    TokenUsageUpdated,
    ToolApprovalDenied,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
    TurnCompleted,
    Usage,
)
from sessionmgr_adapters.gemini.headless.frames import decode_lines
from sessionmgr_adapters.gemini.headless.normalise import HeadlessState, normalise
from tests.adapters.test_odd_frames import keep, odd_frames

INIT: Json = {"type": "init", "session_id": "s-1", "model": "m"}
CALL: Json = {
    "type": "tool_use",
    "tool_name": "write_file",
    "tool_id": "t-1",
    "parameters": {"file_path": "x"},
}
STATS: Json = {"total_tokens": 115, "input_tokens": 102, "output_tokens": 10, "cached": 40}
DONE: Json = {"type": "result", "status": "success", "stats": STATS}


def said(text: str, at: str = "2026-11-18T11:39:03.000Z", role: str = "assistant") -> Json:
    return {"type": "message", "role": role, "content": text, "delta": True, "timestamp": at}


def told(*lines: Json) -> tuple[list[Event], HeadlessState]:
    state = HeadlessState()
    decoded = decode_lines([json.dumps(each).encode() for each in lines])
    return [event for frame in decoded for event in normalise(frame, state)], state


def ended(**fields: Json) -> Json:
    return {"type": "tool_result", "tool_id": "t-1", **fields}


def test_a_turn_is_told_from_its_start_to_its_end() -> None:
    prompt = said("hi", role="user")
    events, state = told(INIT, prompt, said("I "), said("write."), CALL, ended(), said("Ok."), DONE)
    assert [type(each) for each in events] == [
        *(RunStarted, MessageStreamed, MessageStreamed, MessageReceived, ToolCallStarted),
        *(ToolCallCompleted, MessageStreamed, MessageReceived, TokenUsageUpdated, TurnCompleted),
    ]
    texts = [each for each in events if isinstance(each, MessageReceived)]
    assert [(each.content, each.message_id) for each in texts] == [
        ("I write.", "message-1"),
        ("Ok.", "message-2"),
    ]
    begun = cast("RunStarted", events[0])
    assert (begun.provider_session_id, begun.model, state.session) == ("s-1", "m", "s-1")
    call = cast("ToolCallStarted", events[4])
    assert (call.tool_name, call.tool_input) == ("write_file", {"file_path": "x"})
    assert state.outcome is not None
    assert state.tools == {}


def test_thoughts_count_as_output() -> None:
    events, _ = told(DONE)
    used = cast("TokenUsageUpdated", events[0])
    assert used.usage == Usage(input=62, cached_input=40, output=13, reasoning=3) == used.total


def test_a_run_that_used_nothing_says_nothing() -> None:
    events, _ = told({"type": "result", "status": "error", "stats": {}})
    assert [each.type for each in events] == ["turn_completed"]
    events, _ = told({"type": "result", "status": "error"})
    assert [each.type for each in events] == ["turn_completed"]


def test_the_first_result_counts() -> None:
    events, state = told(DONE, {"type": "result", "status": "error"})
    assert [each.type for each in events] == ["token_usage_updated", "turn_completed"]
    assert state.outcome is not None
    assert state.outcome.status == "success"


def test_text_of_a_hidden_retry_is_shown_once() -> None:
    again = [said("part ", "2026-11-18T11:39:04.001Z"), said("ial", "2026-11-18T11:39:04.002Z")]
    events, _ = told(said("part "), *again, DONE)
    [message] = [each for each in events if isinstance(each, MessageReceived)]
    deltas = [each.delta for each in events if isinstance(each, MessageStreamed)]
    assert (message.content, deltas) == ("part ial", ["part ", "ial"])


@pytest.mark.parametrize("timestamp", ["", "yesterday", "9999-99-99"])
def test_a_time_that_cannot_be_read_is_no_time(timestamp: str) -> None:
    events, _ = told(said("ha", timestamp), said("ha", timestamp), DONE)
    [message] = [each for each in events if isinstance(each, MessageReceived)]
    assert message.content == "haha"


def test_a_tool_that_fails_says_why() -> None:
    error: Json = {"type": "tool_not_registered", "message": "no such tool"}
    events, _ = told(CALL, ended(status="error", output="out", error=error))
    failed = cast("ToolCallFailed", events[1])
    assert (type(failed), failed.tool_output) == (ToolCallFailed, "no such tool")
    assert failed.tool_name == "write_file"


def test_a_call_that_a_rule_forbids_is_denied() -> None:
    error: Json = {"type": "policy_violation", "message": "denied by policy"}
    events, _ = told(CALL, ended(status="error", error=error))
    assert [each.type for each in events[1:]] == [
        *("tool_approval_requested", "tool_approval_denied", "tool_call_failed"),
    ]
    denied = cast("ToolApprovalDenied", events[2])
    assert (denied.tool_call_id, denied.reason) == ("t-1", "denied by policy")
    assert denied.tool_input == {"file_path": "x"}


def test_a_call_that_never_began_may_end() -> None:
    [event], _ = told(ended(output="out"))
    assert isinstance(event, ToolCallCompleted)
    assert (event.tool_call_id, event.tool_name, event.tool_output) == ("t-1", "", "out")


def notice(severity: str) -> Json:
    return {"type": "error", "severity": severity, "message": "Loop detected"}


def test_a_warning_is_reported_and_an_error_is_remembered() -> None:
    [event], state = told(notice("warning"))
    assert isinstance(event, ErrorOccurred)
    assert event.failure.message == "Loop detected"
    assert state.notice is None
    events, state = told(notice("error"))
    assert (events, state.notice) == ([], "Loop detected")


@pytest.mark.parametrize("progress", [said("Well."), CALL])
def test_an_error_after_which_the_model_continues_is_forgotten(progress: Json) -> None:
    _, state = told(notice("error"), progress)
    assert state.notice is None


def test_a_second_greeting_is_none() -> None:
    events, state = told(INIT, {"type": "init", "session_id": "s-2"})
    assert len(events) == 1
    assert state.session == "s-2"


def test_what_another_author_says_is_kept_with_its_role() -> None:
    [event], _ = told(said("note", role="system"))
    assert isinstance(event, MessageReceived)
    assert (event.role, event.content) == ("system", "note")


def test_an_unknown_frame_is_carried_and_other_text_is_output() -> None:
    frame: Json = {"type": "hologram", "x": 1}
    [event], _ = told(frame)
    assert isinstance(event, RawReceived)
    assert event.frame == frame
    state = HeadlessState()
    [event] = [each for found in decode_lines([b"oops"]) for each in normalise(found, state)]
    assert isinstance(event, OutputReceived)


FRAMES = [
    json.dumps(each)
    for each in (
        *(INIT, said("text"), CALL, DONE, ended(status="error", error={"type": "x"})),
        {"type": "error", "severity": "error", "message": "m"},
    )
]


@given(st.lists(odd_frames(FRAMES), max_size=8))
def test_gemini_may_say_what_it_likes(frames: list[Json]) -> None:
    state = HeadlessState()
    for frame in decode_lines([json.dumps(each).encode() for each in frames]):
        keep(normalise(frame, state))
    keep(state.end_message())
