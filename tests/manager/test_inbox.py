"""The inbox accepts events that are emitted together as it would accept each alone."""

from typing import cast

import pytest
from hypothesis import given, strategies as st

from sessionmgr.adapter.run_context import RunControl
from sessionmgr.manager import InboxFull
from sessionmgr.manager.inbox import MOST_ITEMS, EventBatch, Inbox
from sessionmgr.manager.validate_events import validate_events
from sessionmgr.model import (
    Event,
    MessageReceived,
    MessageStreamed,
    ReasoningStreamed,
    SessionClosed,
    TokenUsageUpdated,
    ToolCallStarted,
    Usage,
)
from sessionmgr.testing.strategies import events


class Going:
    """A run that was not stopped."""

    stop = None


def arrived(*said: Event, size: int | None = None) -> EventBatch:
    """Return the batch that the recorder gets when an adapter emits these events."""
    inbox = Inbox()
    inbox.put_events(cast("RunControl", Going()), said, size)
    found = inbox.pop()
    assert isinstance(found, EventBatch)
    assert inbox.pending == found.size
    return found


PIECES = st.builds(
    MessageStreamed, delta=st.text(max_size=5), message_id=st.sampled_from([None, "m", ""])
) | st.builds(ReasoningStreamed, delta=st.text(max_size=5))
IMPOSSIBLE = TokenUsageUpdated(usage=Usage(input=-1), total=Usage(output=3))


@given(st.lists(PIECES | events() | st.just(IMPOSSIBLE), min_size=1, max_size=8))
def test_events_are_checked_together_as_they_are_alone(said: list[Event]) -> None:
    try:
        alone = [event for each in said for event in validate_events((each,))[0]]
    except TypeError:
        with pytest.raises(TypeError):
            arrived(*said)
        return
    together = arrived(*said)
    assert list(together.events) == alone
    assert together.size > 0


def test_text_beside_other_events_is_stored_as_it_is_and_the_others_are_checked() -> None:
    text = [MessageStreamed(delta=f"{n} ", message_id="m") for n in range(3)]
    whole = MessageReceived(content="0 1 2 ", message_id="m")
    found = arrived(*text, whole, text[0])
    assert found.events == (*text, whole, text[0])
    assert [a is b for a, b in zip(found.events, (*text, whole, text[0]), strict=True)] == [
        *(True, True, True),
        *(False, True),
    ]
    assert (found.is_text, arrived(*text).is_text) == (False, True)
    assert found.size > arrived(whole).size + arrived(*text).size
    wrong = ToolCallStarted(tool_call_id="t", tool_name="x", tool_input={1})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"tool_input is \{1\}"):
        arrived(*text, wrong)
    with pytest.raises(TypeError, match="session_closed is not an adapter's to tell"):
        arrived(*text, SessionClosed())


def test_figures_that_cannot_be_become_a_warning_between_the_text_around_them() -> None:
    before, after = MessageStreamed(delta="a"), MessageStreamed(delta="b")
    types = [each.type for each in arrived(before, IMPOSSIBLE, after).events]
    assert types == [
        "message_streamed",
        "error_occurred",
        "token_usage_updated",
        "message_streamed",
    ]


def test_the_size_that_was_read_counts() -> None:
    assert arrived(MessageStreamed(delta="a"), MessageReceived(content="a"), size=7).size == 7


def test_a_full_inbox_refuses_a_command_and_gives_all_that_it_has_taken() -> None:
    inbox = Inbox()
    for number in range(1, MOST_ITEMS + 1):
        inbox.put(number)
    with pytest.raises(InboxFull):
        inbox.put("one too many")
    assert len(inbox) == MOST_ITEMS
    assert list(iter(inbox.pop, None)) == list(range(1, MOST_ITEMS + 1))
