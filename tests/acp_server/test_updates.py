"""Events as updates: without a server, in both versions."""

from typing import Any

import pytest

from sessionmgr.acp_server.dialect import AcpDialect, AcpDialectV2
from sessionmgr.acp_server.errors import refusal_of, refusal_of_failure
from sessionmgr.acp_server.tool_calls import tool_kind
from sessionmgr.acp_server.updates import EventTranslator, title_of
from sessionmgr.manager import ManagerClosing, SessionBusy
from sessionmgr.model import (
    AnyEvent,
    CompactionFailed,
    CompactionStarted,
    Failure,
    FailureKind,
    Json,
    MessageReceived,
    MessageSent,
    MessageStreamed,
    PolicyViolation,
    RawReceived,
    ReasoningReceived,
    RetryScheduled,
    RunCompleted,
    RunFailed,
    StallSuspected,
    ToolApprovalDenied,
    ToolApprovalGranted,
    ToolApprovalRequested,
    ToolCallCompleted,
    ToolCallStarted,
    ToolCallUpdated,
)

Update = dict[str, Any]


def updates(*events: AnyEvent, version: int = 1, **kwargs: bool) -> list[Update]:
    session: dict[str, Json] = {"notices": {}, "compaction": {}}
    dialect = AcpDialect({"session": session}) if version == 1 else AcpDialectV2()
    return EventTranslator(dialect).updates(events, images={}, **kwargs)


def texts(found: list[Update]) -> list[str]:
    return [each["content"]["text"] for each in found]


@pytest.mark.parametrize("streamed", [None, "m1"])
@pytest.mark.parametrize("whole", [None, "m1"])
def test_a_message_is_one_whichever_of_its_events_names_it(
    streamed: str | None, whole: str | None
) -> None:
    found = updates(
        MessageStreamed(delta="Hel", message_id=streamed),
        MessageStreamed(delta="", message_id=streamed),
        MessageReceived(content="Hello", message_id=whole),
    )
    assert texts(found) == ["Hel", "lo"]
    assert len({each["messageId"] for each in found}) == 1


def test_messages_with_other_ids_are_others() -> None:
    found = updates(
        MessageStreamed(delta="one", message_id="m1"),
        MessageStreamed(delta="two", message_id="m2"),
        MessageReceived(content="three", message_id="m3"),
    )
    assert texts(found) == ["one", "two", "three"]
    assert len({each["messageId"] for each in found}) == 3


def test_the_same_id_in_another_run_is_another_message() -> None:
    found = updates(
        MessageReceived(content="a", message_id="m1", run_id="run_1"),
        MessageReceived(content="b", message_id="m1", run_id="run_2"),
    )
    assert found[0]["messageId"] != found[1]["messageId"]


def test_a_message_that_differs_from_its_pieces_is_replaced_in_version_2() -> None:
    events = MessageStreamed(delta="Hx"), MessageReceived(content="Hello")
    assert texts(updates(*events)) == ["Hx"]
    chunk, whole = updates(*events, version=2)
    assert whole["messageId"] == chunk["messageId"]
    assert whole["content"] == [{"type": "text", "text": "Hello"}]


def test_a_retried_message_is_sent_again() -> None:
    retry = RetryScheduled(by="provider", attempt=2)
    found = updates(MessageStreamed(delta="Hel"), retry, MessageReceived(content="Hello"))
    assert texts([found[0], found[2]]) == ["Hel", "Hello"]
    assert found[1]["title"] == "Retry (attempt 2)"


def test_the_texts_of_sub_agents_are_left_out_and_their_tools_are_not() -> None:
    found = updates(
        MessageStreamed(delta="a", parent_tool_call_id="t1"),
        MessageReceived(content="a", parent_tool_call_id="t1"),
        ReasoningReceived(content="a", parent_tool_call_id="t1"),
        ToolCallStarted(tool_call_id="t2", tool_name="Read", parent_tool_call_id="t1"),
    )
    assert [each["sessionUpdate"] for each in found] == ["tool_call"]
    assert found[0]["_meta"] == {"parentToolCallId": ":t1"}


def test_messages_of_other_terminals_are_shown() -> None:
    prompt = MessageSent(message_id="m1", content="first")
    other = MessageSent(message_id="m2", content="from elsewhere", follow_up=True)
    lost = MessageSent(message_id="m3", content="lost", follow_up=True, state="dropped")
    title, shown = updates(prompt, other, other, lost)
    assert title["title"] == "first"
    assert texts([shown]) == ["from elsewhere"]
    assert len(updates(prompt, other, is_replay=True)) == 3


def test_notices_and_compactions_need_a_client_that_shows_them() -> None:
    events = (
        StallSuspected(state="model", silent_for=60.0),
        PolicyViolation(rule="a rule", detail="why"),
        CompactionStarted(),
        CompactionFailed(),
        RawReceived(frame={}),
    )
    found = updates(*events)
    assert [each.get("title") for each in found[:2]] == ["Silent for 60 s", "a rule"]
    assert found[1]["description"] == "why"
    assert [each["status"] for each in found[2:]] == ["in_progress", "failed"]
    assert EventTranslator(AcpDialect({})).updates(events, images={}) == []


# --- tools ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Bash", "execute"),
        ("NotebookEdit", "edit"),
        ("apply_patch", "edit"),
        ("mcp__files__read_file", "read"),
        ("WebFetch", "fetch"),
        ("ExitPlanMode", "switch_mode"),
        ("Frobnicate", "other"),
        ("", "other"),
    ],
)
def test_the_kind_of_a_tool_follows_from_its_name(name: str, kind: str) -> None:
    assert tool_kind(name) == kind


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("plain", "plain"),
        ([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], "a\nb"),
        ({"output": "of a command", "exit_code": 0}, "of a command"),
        ({"exit_code": 0}, None),
        (7, None),
    ],
)
def test_the_text_of_an_output_is_its_content(output: Json, text: str | None) -> None:
    (found,) = updates(ToolCallCompleted(tool_call_id="t", tool_name="x", tool_output=output))
    assert found["sessionUpdate"] == "tool_call"  # its start was not seen
    assert found["rawOutput"] == output
    content = found.get("content")
    assert (content and content[0]["content"]["text"]) == text


def test_output_of_one_read_is_one_update() -> None:
    pieces = [ToolCallUpdated(tool_call_id="t", output_delta=each) for each in "abc"]
    (found,) = updates(*pieces)
    assert found["content"][0]["content"]["text"] == "abc"


@pytest.mark.parametrize("version", [1, 2])
def test_much_output_is_not_repeated_for_each_line(version: int) -> None:
    translator = EventTranslator(AcpDialect({}) if version == 1 else AcpDialectV2())
    sent: list[Update] = []
    for _ in range(2000):  # each read has one line
        line = ToolCallUpdated(tool_call_id="t", output_delta="x" * 99 + "\n")
        sent += translator.updates([line], images={})
    sent += translator.updates([ToolCallCompleted(tool_call_id="t", tool_name="x")], images={})
    size = len(str(sent))
    assert size < 40 * 200_000
    if version == 1:
        assert sent[-1]["content"][0]["content"]["text"].endswith("x\n")
        assert sent[0]["content"][0]["content"]["text"] == "x" * 99 + "\n"
    else:
        chunks = [each for each in sent if each["sessionUpdate"] == "tool_call_content_chunk"]
        assert len("".join(each["content"]["content"]["text"] for each in chunks)) == 200_000


def test_a_granted_request_may_change_the_input() -> None:
    asked = ToolApprovalRequested(approval_id="a", tool_call_id="t", tool_name="Bash")
    granted = ToolApprovalGranted(approval_id="a", tool_call_id="t", tool_input={"command": "ls"})
    _, found = updates(asked, granted)
    assert found["rawInput"] == {"command": "ls"}
    assert found["status"] == "in_progress"
    assert updates(granted) == []


def test_a_denied_call_stays_failed() -> None:
    asked = ToolApprovalRequested(approval_id="a", tool_call_id="t", tool_name="Bash")
    denied = ToolApprovalDenied(approval_id="a", tool_call_id="t", reason="no")
    begun = ToolCallStarted(tool_call_id="t", tool_name="Bash")
    statuses = [each.get("status") for each in updates(asked, denied, begun, RunCompleted())]
    assert statuses == ["pending", "failed", None]
    assert updates(denied) == []


@pytest.mark.parametrize(
    ("call_id", "end", "status"),
    [
        ("t", RunCompleted(), "failed"),
        (None, RunCompleted(), "completed"),  # the request was all that was known of the call
        (None, RunFailed(), "failed"),
    ],
)
def test_calls_that_are_open_at_the_end_of_a_run_are_closed(
    call_id: str | None, end: AnyEvent, status: str
) -> None:
    asked = ToolApprovalRequested(approval_id="a", tool_call_id=call_id, tool_name="Bash")
    granted = ToolApprovalGranted(approval_id="a", tool_call_id=call_id)
    *_, last = updates(asked, granted, end)
    assert last["status"] == status


# --- the rest ------------------------------------------------------------------------------------


def test_a_title_is_one_short_line() -> None:
    assert title_of("  \n fix   it \n now") == "fix it"
    assert title_of(" \n ") == ""
    assert title_of("x" * 100) == "x" * 79 + "…"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SessionBusy("ses_1", "holder"), -32001),
        (ManagerClosing(), -32603),
        (RuntimeError("a bug"), -32603),
    ],
)
def test_each_error_has_a_code(error: Exception, code: int) -> None:
    refusal = refusal_of(error)
    assert refusal.code == code
    assert refusal.data == {"error": type(error).__name__}
    assert refusal_of(refusal) is refusal


def test_a_failure_says_when_it_may_pass() -> None:
    failure = Failure(kind=FailureKind.RATE_LIMITED, message="slow", retryable=True, retry_at="at")
    refusal = refusal_of_failure(failure)
    assert refusal.data == {"kind": "rate_limited", "retryable": True, "retryAt": "at"}
