"""Frames, and their events."""

from __future__ import annotations

from sessionmgr.model import MessageStreamed
from sessionmgr_adapters.claude.frames import decode_lines
from sessionmgr_adapters.claude.normalise import normalise
from sessionmgr_adapters.claude.state import ClaudeState


def lines(*said: str) -> list[str]:
    state = ClaudeState()
    frames = decode_lines([each.encode() for each in said])
    return [event.type for frame in frames for event in normalise(frame, state)]


def test_what_it_says_of_itself_becomes_events() -> None:
    assert lines(
        '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":5}}'
    ) == ["run_started", "rate_limit_updated"]
    assert lines('{"type":"system","subtype":"api_retry","attempt":1,"error_status":529}') == [
        "run_started",
        "retry_scheduled",
    ]
    assert lines('{"type":"system","subtype":"model_fallback","trigger":"overloaded"}') == [
        "run_started",
        "error_occurred",
        "session_stats_updated",
    ]
    assert lines(
        '{"type":"system","subtype":"init","session_id":"a"}',
        '{"type":"system","subtype":"init","session_id":"b"}',
        '{"type":"conversation_reset","new_conversation_id":"c"}',
    ) == ["run_started", "provider_session_updated", "provider_session_updated"]
    assert lines(
        '{"type":"system","subtype":"status","status":"compacting"}',
        '{"type":"system","subtype":"status","status":null,"compact_result":"failed"}',
    ) == ["run_started", "compaction_started", "compaction_failed"]
    assert lines(
        '{"type":"stream_event","event":{"type":"message_stop"},"abandoned_blocks":{}}',
        '{"type":"keep_alive"}',
    ) == ["run_started", "retry_scheduled"]
    assert lines('{"type":"system","subtype":"task_updated","patch":{"status":"killed"}}') == []


def test_how_full_the_context_is_is_said_by_the_agent_and_not_by_those_that_it_calls() -> None:
    state = ClaudeState()
    said = b'{"type":"assistant","message":{"id":"m","content":[],"usage":{"input_tokens":%d}}%b}'
    called = b',"parent_tool_use_id":"t"'
    for tokens, parent in ((7, b""), (9, called)):
        for frame in decode_lines([said % (tokens, parent)]):
            normalise(frame, state)
    assert state.context == 7


def test_pieces_that_do_not_name_their_message_are_of_the_one_that_began() -> None:
    state = ClaudeState()
    begun = b'{"type":"message_start","message":{"id":"m1"}}'
    piece = b'{"type":"content_block_delta","delta":{"type":"text_delta","text":"hi"}}'
    said = [b'{"type":"stream_event","event":%b}' % event for event in (begun, piece)]
    events = [event for frame in decode_lines(said) for event in normalise(frame, state)]
    assert [each.message_id for each in events if isinstance(each, MessageStreamed)] == ["m1/0"]


def test_blocks_of_messages_become_events() -> None:
    search = '{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}'
    found = '{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}'
    hidden = '{"type":"redacted_thinking","data":"x"},{"type":"document","source":{}}'
    empty = '{"type":"text","text":""},{"type":"thinking","thinking":""}'
    content = f'[{search},{found},{hidden},{empty},{{"type":"thinking","thinking":"hm"}}]'
    assert lines(f'{{"type":"assistant","message":{{"id":"m","content":{content}}}}}') == [
        "run_started",
        "tool_call_started",
        "tool_call_completed",
        "reasoning_received",
    ]
    call = '{"type":"tool_use","id":"t1","name":"Bash"}'
    twice = f'{{"type":"assistant","message":{{"content":[{call},{call}]}}}}'
    assert lines(twice) == ["run_started", "tool_call_started"]
    unknown = '{"type":"assistant","message":{"content":[{"type":"hologram"}]}}'
    assert lines(unknown) == ["raw_received"]
    denied = '{"type":"system","subtype":"permission_denied","tool_name":"B","tool_use_id":"t"}'
    assert lines(denied, denied) == [
        "run_started",
        "tool_approval_requested",
        "tool_approval_denied",
    ]


def test_a_call_that_was_asked_about_is_not_denied_once_more_by_the_result() -> None:
    asked = (
        '{"type":"control_request","request_id":"q1",'
        '"request":{"subtype":"can_use_tool","tool_name":"B","tool_use_id":"t1"}}'
    )
    result = (
        '{"type":"result","subtype":"success","permission_denials":'
        '[{"tool_name":"B","tool_use_id":"t1"},{"tool_name":"B","tool_use_id":"t2"}]}'
    )
    assert lines(result).count("tool_approval_denied") == 2
    assert lines(asked, result).count("tool_approval_denied") == 1
