"""Events are views of bytes: known fields are typed, and no field is lost."""

import json
from pathlib import Path
from typing import ClassVar, Literal, get_type_hints

import msgspec
import pytest
from hypothesis import given, strategies as st

from sessionmgr.model import (
    EVENT_TYPES,
    Event,
    Failure,
    FailureKind,
    Json,
    MessageReceived,
    MessageStreamed,
    PlanEntry,
    PlanUpdated,
    RawReceived,
    RunFailed,
    RunStarted,
    ToolCallStarted,
    UnknownEvent,
    decode_event,
    encode_event,
)
from sessionmgr.testing.strategies import events, json_values
from tests.model.minimal_events import minimal

# The names are the contract: readers of our logs rely on them.
FIELDS = {
    "session_created": "",
    "session_closed": "",
    "session_reopened": "",
    "run_started": "provider_session_id model cwd permission negotiation credential cli_version "
    "resumed_from metadata",
    "message_sent": "message_id content follow_up state",
    "message_streamed": "delta message_id",
    "message_received": "content role message_id",
    "reasoning_streamed": "delta",
    "reasoning_received": "content",
    "tool_call_started": "tool_call_id tool_name tool_input",
    "tool_call_updated": "tool_call_id output_delta",
    "tool_call_completed": "tool_call_id tool_name tool_input tool_output",
    "tool_call_failed": "tool_call_id tool_name tool_input tool_output",
    "tool_approval_requested": "approval_id tool_call_id tool_name tool_input reason by timeout",
    "tool_approval_granted": "approval_id tool_call_id tool_name tool_input reason by",
    "tool_approval_denied": "approval_id tool_call_id tool_name tool_input reason by",
    "plan_updated": "entries",
    "image_received": "media_type blob bytes",
    "token_usage_updated": "usage total cost provenance",
    "provider_session_updated": "provider_session_id",
    "compaction_started": "trigger",
    "compaction_completed": "trigger",
    "compaction_failed": "trigger",
    "rate_limit_updated": "bucket state resets_at utilisation",
    "retry_scheduled": "by attempt delay failure",
    "stall_suspected": "state silent_for evidence",
    "policy_violation": "rule detail",
    "turn_completed": "stop_reason open_tasks",
    "session_stats_updated": "model context_window context_used usage terminal_reason",
    "error_occurred": "failure severity",
    "process_exited": "exit_code signal forced killed_by_os emptied left_running",
    "output_received": "stream text",
    "raw_received": "frame",
    "events_pruned": "first last",
    **dict.fromkeys(
        (
            "run_completed",
            "run_failed",
            "run_cancelled",
            "run_timed_out",
            "run_rate_limited",
            "run_paused",
        ),
        "stop_reason failure reason detail usage cost structured interrupted_tools ended_at",
    ),
}
ENVELOPE = ("seq", "at", "session_id", "run_id", "provider")


def test_these_are_the_types() -> None:
    assert set(EVENT_TYPES) == set(FIELDS)


@pytest.mark.parametrize("name", FIELDS)
def test_an_event_is_written_with_exactly_these_fields(name: str) -> None:
    written = json.loads(encode_event(minimal(name)))
    assert list(written) == ["type", *ENVELOPE, *FIELDS[name].split()]
    assert written["type"] == minimal(name).type == name


@given(events())
def test_an_event_comes_back_as_it_was_written(event: Event) -> None:
    assert decode_event(encode_event(event)) == event


@given(events(), st.dictionaries(st.sampled_from(["newer", "x-y", ""]), json_values(), min_size=1))
def test_fields_nobody_knows_are_carried_through_unchanged(
    event: Event, more: dict[str, Json]
) -> None:
    newer = json.loads(encode_event(event)) | more
    read = decode_event(msgspec.json.encode(newer))
    assert type(read) is type(event)
    assert json.loads(encode_event(read)) == newer


def test_fields_nobody_knows_are_carried_in_the_parts_of_an_event_too() -> None:
    newer = json.loads(
        encode_event(RunFailed(failure=Failure(kind=FailureKind.BILLING, message="no")))
    )
    newer["failure"]["since"] = "2031"
    read = decode_event(json.dumps(newer).encode())
    assert isinstance(read, RunFailed)
    assert read.failure is not None
    assert read.failure.kind is FailureKind.BILLING
    assert json.loads(encode_event(read)) == newer


def test_a_message_of_an_adapter_may_hold_any_text_beside_structured_parts() -> None:
    plan = PlanUpdated(entries=(PlanEntry(content="half \ud800 a pair"),))
    read = decode_event(encode_event(plan))
    assert isinstance(read, PlanUpdated)
    assert [entry.content for entry in read.entries] == ["half \N{REPLACEMENT CHARACTER} a pair"]


def test_fields_nobody_knows_are_carried_in_lists_of_parts() -> None:
    newer: Json = {"type": "plan_updated", "entries": [{"content": "rest", "owner": "me"}]}
    read = decode_event(msgspec.json.encode(newer))
    assert isinstance(read, PlanUpdated)
    assert json.loads(encode_event(read))["entries"][0]["owner"] == "me"


def test_what_is_carried_stays_with_an_event_that_is_stamped() -> None:
    read = decode_event(b'{"type":"message_streamed","delta":"a","tone":"kind"}')
    assert isinstance(read, MessageStreamed)
    stamped = read.stamped(seq=7, at="", session_id="ses_1", run_id="run_1", provider="echo")
    written = json.loads(encode_event(stamped))
    assert (written["seq"], written["tone"]) == (7, "kind")


def test_a_field_of_json_is_what_it_is_made_to_be_whatever_was_carried() -> None:
    read = decode_event(
        b'{"type":"tool_call_started","tool_call_id":"1","tool_name":"t",'
        b'"tool_input":{"key":"secret"},"newer":1}'
    )
    assert isinstance(read, ToolCallStarted)
    redacted = msgspec.structs.replace(read, tool_input={})
    assert json.loads(encode_event(redacted))["tool_input"] == {}


def test_an_event_declares_its_tag_as_a_literal() -> None:
    for tag, event_type in EVENT_TYPES.items():
        declared = get_type_hints(event_type, include_extras=True)["type"]
        assert declared == ClassVar[Literal[tag]]
        assert event_type.type == tag


@pytest.mark.parametrize(
    "body",
    [
        b'{"type":"sung","melody":[1,2],"seq":3,"run_id":"run_9"}',
        b'{ "type" : "sung" , "melody":"\\ud800" }',
        b'{"type":"message_streamed","delta":{"now":"an object"}}',
        b'{"type":"message_streamed","delta":"a","seq":"three"}',
        b'{"type":7}',
        b"{}",
        b"[1]",
        b"",
        b"\xff\xfe",
        b'{"type":"sung"',
        b"[" * 100_000,
    ],
)
def test_what_we_do_not_understand_is_written_back_to_the_byte(body: bytes) -> None:
    read = decode_event(body)
    assert isinstance(read, UnknownEvent)
    assert encode_event(read) == body


def test_an_unknown_event_still_says_where_it_belongs() -> None:
    read = decode_event(
        b'{"type":"sung","seq":3,"at":[1],"session_id":"ses_1","run_id":"run_9","provider":"x"}'
    )
    assert isinstance(read, UnknownEvent)
    assert (read.tag, read.seq, read.at, read.session_id) == ("sung", 3, "", "ses_1")
    assert (read.run_id, read.provider) == ("run_9", "x")


@given(st.binary() | json_values().map(msgspec.json.encode))
def test_no_bytes_are_too_strange_to_be_read(body: bytes) -> None:
    read = decode_event(body)
    assert isinstance(read, Event | UnknownEvent)
    assert decode_event(encode_event(read)) == read


def test_half_a_surrogate_pair_from_an_adapter_is_replaced() -> None:
    written = encode_event(MessageReceived(content="a\ud83d\ude00b\ud800"))
    assert json.loads(written)["content"] == "a\N{GRINNING FACE}b\N{REPLACEMENT CHARACTER}"


def test_optional_fields_are_written_only_where_they_are_set() -> None:
    bare = encode_event(RawReceived(frame={"a": 1}))
    full = encode_event(
        RawReceived(frame={"a": 1}, synthetic=True, parent_tool_call_id="t", raw=[1])
    )
    assert not {"synthetic", "parent_tool_call_id", "raw"} & json.loads(bare).keys()
    assert json.loads(full)["parent_tool_call_id"] == "t"
    assert decode_event(full).type == "raw_received"


def test_a_log_that_is_older_than_all_of_this_is_still_read() -> None:
    lines = (Path(__file__).parent / "old_log.jsonl").read_bytes().splitlines()
    read = [decode_event(line) for line in lines]
    assert [event.seq for event in read] == list(range(1, len(lines) + 1))
    assert isinstance(read[0], RunStarted)
    assert [event.tag for event in read if isinstance(event, UnknownEvent)] == ["mood_changed"]
    for line, event in zip(lines, read, strict=True):
        assert json.loads(line).items() <= json.loads(encode_event(event)).items()
