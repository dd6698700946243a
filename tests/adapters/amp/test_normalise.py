"""Amp's frames as events, and its errors as failures."""

from __future__ import annotations

import pytest
from hypothesis import given

from sessionmgr.manager.validate_events import validate_events
from sessionmgr.model import (
    Event,
    FailureKind,
    Json,
    MessageReceived,
    RawReceived,
    RunStarted,
    ToolCallCompleted,
    ToolCallStarted,
    encode_event,
    encode_json,
)
from sessionmgr.testing.strategies import json_values
from sessionmgr_adapters.amp.failures import result_failure
from sessionmgr_adapters.amp.frames import AmpResult, AnyAmpFrame, decode_lines
from sessionmgr_adapters.amp.normalise import AmpState, normalise
from tests.adapters.amp.mock_agent import (
    assistant,
    done,
    failure,
    said,
    success,
    text,
    tool,
    user,
)


def events_of(*frames: AnyAmpFrame, state: AmpState | None = None) -> list[Event]:
    state = state or AmpState()
    return [event for frame in frames for event in normalise(frame, state)]


def read(message: Json) -> AnyAmpFrame:
    (frame,) = decode_lines([encode_json(message)])
    return frame


def test_texts_before_a_tool_and_after_it_are_messages() -> None:
    words: list[Json] = [{"type": "text", "text": each} for each in ("a", "b", "c")]
    call = tool("t1", "Read", {"path": "x"})
    frames = (assistant(words[0], words[1], call, words[2]), user(done("t1", "out"), done("t1")))
    start, *events = events_of(*frames, assistant(call))
    assert isinstance(start, RunStarted)
    contents = [each.content for each in events if isinstance(each, MessageReceived)]
    assert contents == ["a\n\nb", "c"]
    (began,) = (each for each in events if isinstance(each, ToolCallStarted))
    (ended,) = (each for each in events if isinstance(each, ToolCallCompleted))
    assert (began.tool_name, ended.tool_name, ended.tool_input) == ("Read", "Read", {"path": "x"})
    assert [each.type for each in events].index("tool_call_started") == 1


def test_unknown_blocks_are_carried_and_end_no_turn_less() -> None:
    odd: Json = {"type": "hologram", "size": 3}
    frame = assistant(odd, {"type": "text", "text": 7}, stop="end_turn")
    assert frame.ends_turn
    raw = [each.frame for each in events_of(frame) if isinstance(each, RawReceived)]
    assert raw == [odd, {"type": "text", "text": 7}]
    assert events_of(user(odd))[1] == RawReceived(frame=odd)


def test_a_message_of_a_user_that_is_not_ours_is_recorded() -> None:
    state = AmpState()
    state.unheard["m1"] = "go on"
    events = events_of(said("go on"), said("a hook says no"), state=state)
    assert state.heard == ["m1"]
    assert [each for each in events if isinstance(each, MessageReceived)] == [
        MessageReceived(content="a hook says no", role="user")
    ]
    assert not any(isinstance(each, MessageReceived) for each in events_of(user()))


def test_a_result_text_that_was_no_message_is_one() -> None:
    texts = [
        e.content for e in events_of(text("a"), success("b")) if isinstance(e, MessageReceived)
    ]
    assert texts == ["a", "b"]


def test_a_content_that_is_a_string_is_a_text() -> None:
    frame = read({"type": "assistant", "message": {"content": "well", "usage": [1]}})
    assert events_of(frame)[1:] == [MessageReceived(content="well")]
    odd = read({"type": "assistant", "message": {"content": 5}})
    assert events_of(odd)[1:] == [RawReceived(frame=5)]


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ("Unauthorized The key is wrong.", FailureKind.AUTH_FAILED, False),
        ("Out of Credits Add credits.", FailureKind.BILLING, False),
        ("Usage Quota Exceeded", FailureKind.QUOTA_EXHAUSTED, False),
        ("Rate Limit Hit Try again shortly.", FailureKind.RATE_LIMITED, True),
        ("Model Provider Overloaded", FailureKind.OVERLOADED, True),
        ("Network Error Cannot reach Amp servers.", FailureKind.PROVIDER_ERROR, True),
        ("Context Limit Reached", FailureKind.CONTEXT_EXCEEDED, False),
        ("Something else", FailureKind.PROVIDER_ERROR, False),
        ("A tool requires user approval", FailureKind.PROVIDER_ERROR, False),
    ],
)
def test_an_error_has_the_kind_of_its_title(error: str, kind: FailureKind, retryable: bool) -> None:
    found = result_failure(failure(error))
    assert found is not None
    assert (found.kind, found.retryable) == (kind, retryable)
    assert found.provider_code == "error_during_execution"


def test_a_result_is_a_success_only_if_it_says_so() -> None:
    assert result_failure(success()) is None
    spent = result_failure(failure("", "error_max_turns"))
    assert spent is not None
    assert (spent.kind, spent.message) == (
        FailureKind.BUDGET_EXCEEDED,
        "the turn ended with 'error_max_turns'",
    )
    for odd in (AmpResult(), AmpResult(subtype="success", is_error="?"), AmpResult(is_error=False)):
        assert result_failure(odd) is not None


@given(message=json_values(), kind=json_values())
def test_no_value_makes_the_decoder_raise(message: Json, kind: Json) -> None:
    for type_ in ("system", "assistant", "user", "result"):
        frames: list[Json] = [
            {"type": type_, "subtype": "init", "message": message, "session_id": kind},
            {
                "type": type_,
                "subtype": kind,
                "result": message,
                "error": kind,
                "parent_tool_use_id": kind,
                "message": {"content": [message, kind], "usage": {"input_tokens": message}},
            },
        ]
        for frame in frames:
            events = events_of(read(frame))
            validate_events(tuple(events))
            for event in events:
                encode_event(event)
