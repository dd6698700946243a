"""Append batches: what they make of events before the commit."""

import pytest

from sessionmgr.manager.append_batch import AppendBatch
from sessionmgr.model import (
    EVENT_TYPES,
    ErrorOccurred,
    Event,
    Failure,
    FailureKind,
    MessageReceived,
    MessageStreamed,
    ToolApprovalRequested,
    encode_event,
)
from sessionmgr.store.redaction import REDACTED, Redactor

SECRET = "tops3cret-of-all"


TELLING = pytest.mark.parametrize(
    "event",
    [
        MessageStreamed(delta=SECRET),
        MessageReceived(content=SECRET),
        ErrorOccurred(failure=Failure(kind=FailureKind.CONFIG_INVALID, message=SECRET)),
        MessageStreamed(delta="", parent_tool_call_id=SECRET),
        MessageStreamed(delta="", raw=SECRET),
    ],
    ids=lambda event: event.type,
)


@TELLING
def test_a_secret_is_found_behind_the_shortest_of_envelopes(event: Event) -> None:
    redactor = Redactor([SECRET])
    draft = AppendBatch(last_seq=0, at="", session_id="", provider="", redactor=redactor)
    draft.write(None, event)
    assert SECRET.encode() not in draft.rows[0].body
    assert REDACTED.encode() in draft.rows[0].body


@TELLING
def test_a_secret_is_found_behind_envelopes_that_grow(event: Event) -> None:
    longest = ToolApprovalRequested(approval_id="", tool_name="", tool_input=None)
    draft = AppendBatch(last_seq=98, at="", session_id="", provider="", redactor=Redactor([SECRET]))
    draft.write(None, event, longest, event)  # the numbers 99, 100 and 101
    assert SECRET.encode() not in b"".join(row.body for row in draft.rows)


def test_a_secret_is_found_in_what_we_do_not_know() -> None:
    draft = AppendBatch(last_seq=0, at="", session_id="", provider="", redactor=Redactor([SECRET]))
    draft.write(None, MessageStreamed(delta="", source={"a": SECRET}))
    assert SECRET.encode() not in draft.rows[0].body


def test_each_type_is_named_as_it_is_written() -> None:
    for name, of in EVENT_TYPES.items():
        assert of.type == name
    assert b'"type":"message_streamed"' in encode_event(MessageStreamed(delta=""))
