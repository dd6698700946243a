"""The events for recorded frames of `codex exec`."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from sessionmgr.model import (
    ErrorOccurred,
    Event,
    Json,
    MessageReceived,
    PlanUpdated,
    ProviderSessionUpdated,
    RawReceived,
    ReasoningReceived,
    RetryScheduled,
    RunStarted,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
)
from sessionmgr.testing.player import Recording
from sessionmgr_adapters.codex.exec.frames import decode_lines
from sessionmgr_adapters.codex.exec.normalise import ExecState, normalise

GOLDEN = Path(__file__).parents[3] / "golden" / "codex"
RECORDED = sorted(
    path
    for path in GOLDEN.glob("*/*.jsonl")
    if not path.stem.startswith(("the_app_server", "a_script_goes", "a_turn_that_is_cut"))
)


def played(lines: list[bytes]) -> tuple[list[Event], ExecState]:
    state = ExecState()
    return [each for frame in decode_lines(lines) for each in normalise(frame, state)], state


def told(*frames: Json) -> tuple[list[Event], ExecState]:
    return played([msgspec.json.encode(frame) for frame in frames])


def recorded(name: str, version: str = "0.169.0") -> tuple[list[Event], ExecState]:
    entries = Recording.read(GOLDEN / version / f"{name}.jsonl").entries
    return played([each.data() for each in entries if each.dir == "<"])


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_nothing_that_was_recorded_is_unknown(path: Path) -> None:
    events, state = recorded(path.stem, path.parent.name)
    types = [each.type for each in events]
    assert types.count("run_started") == 1
    assert types[0] == "run_started"
    assert not {"raw_received", "output_received"} & set(types)
    assert state.last_turn is not None
    assert state.tools == {}


def test_what_it_thinks_is_shown_and_is_no_part_of_what_it_says() -> None:
    events, state = recorded("a_prompt_is_answered_and_a_tool_runs")
    assert [each.content for each in events if isinstance(each, ReasoningReceived)] == ["I look."]
    said = [each.content for each in events if isinstance(each, MessageReceived)]
    assert said == ["Let me look.", "It is done."]
    assert state.text == "It is done."
    assert state.failure is None


def test_a_command_is_told_with_what_it_printed() -> None:
    events, _ = recorded("a_prompt_is_answered_and_a_tool_runs")
    [begun] = [each for each in events if isinstance(each, ToolCallStarted)]
    [done] = [each for each in events if isinstance(each, ToolCallCompleted)]
    assert begun.tool_call_id == done.tool_call_id
    assert done.tool_input == {"command": "echo it is $((40 + 2))"}
    assert done.tool_output == {"output": "it is 42\n", "exit_code": 0}


def test_a_stream_that_is_cut_is_a_retry_and_no_failure() -> None:
    events, state = recorded("a_cut_stream_is_asked_for_again")
    [retry] = [each for each in events if isinstance(each, RetryScheduled)]
    assert retry.attempt == 1
    assert retry.failure is not None
    assert retry.failure.message.startswith("stream disconnected before completion")
    assert (state.text, state.failure) == ("Whole.", None)


def item(kind: str, *, frame: str = "item.completed", **fields: Json) -> Json:
    return {"type": frame, "item": {"id": "item_1", "type": kind, **fields}}


def test_an_item_that_was_never_begun_is_begun_with_its_end() -> None:
    changes: Json = [{"path": "/a", "kind": "add"}]
    events, _ = told(item("file_change", changes=changes, status="failed"))
    assert [each.type for each in events] == ["tool_call_started", "tool_call_failed"]
    assert isinstance(events[1], ToolCallFailed)
    assert events[1].tool_input == {"changes": changes}


def test_a_command_that_is_declined_has_failed() -> None:
    started = item("command_execution", frame="item.started", command="rm x")
    ended = item("command_execution", command="rm x", status="declined")
    events, _ = told(started, ended)
    assert [each.type for each in events] == ["tool_call_started", "tool_call_failed"]


@pytest.mark.parametrize(
    ("told_as", "name", "output"),
    [
        (
            item(
                "mcp_tool_call",
                server="lab",
                tool="add",
                arguments={"a": 1},
                result={"content": []},
                status="completed",
            ),
            "mcp__lab__add",
            {"content": []},
        ),
        (
            item("mcp_tool_call", server="l", tool="t", error={"message": "no"}, status="failed"),
            "mcp__l__t",
            {"message": "no"},
        ),
        (item("web_search", query="trio", action={"type": "search"}), "web_search", None),
        (
            item("collab_tool_call", tool="wait", agents_states={"x": {}}, status="completed"),
            "wait",
            {"x": {}},
        ),
    ],
)
def test_each_kind_of_call_is_a_call(told_as: Json, name: str, output: Json) -> None:
    events, _ = told(told_as)
    assert isinstance(events[0], ToolCallStarted)
    assert events[0].tool_name == name
    assert isinstance(events[1], ToolCallCompleted | ToolCallFailed)
    assert events[1].tool_output == output


def test_a_plan_is_told_when_it_changes() -> None:
    todo: Json = [{"text": "a", "completed": False}]
    done: Json = [{"text": "a", "completed": True}]
    events, _ = told(
        item("todo_list", frame="item.started", items=todo),
        item("todo_list", frame="item.updated", items=done),
        item("todo_list", items=done),
    )
    plans = [each for each in events if isinstance(each, PlanUpdated)]
    assert [each.entries[0].status for each in plans] == ["pending", "completed"]


def test_a_warning_is_no_failure() -> None:
    events, state = told(item("error", message="fallback metadata is used"))
    assert isinstance(events[0], ErrorOccurred)
    assert events[0].severity == "warning"
    assert state.failure is None


def test_a_thread_that_is_renamed_says_so() -> None:
    first: Json = {"type": "thread.started", "thread_id": "a"}
    events, _ = told(first, first, {"type": "thread.started", "thread_id": "b"})
    assert [type(each) for each in events] == [RunStarted, ProviderSessionUpdated]


@pytest.mark.parametrize(
    "line",
    [{"type": "item.completed", "item": {"id": "1", "type": "hologram"}}, {"type": "turn.paused"}],
)
def test_what_nobody_knows_is_carried_as_it_came(line: Json) -> None:
    events, _ = told(line)
    assert isinstance(events[0], RawReceived)
    assert events[0].frame == line


def test_an_empty_message_is_none_and_one_that_begins_is_none_yet() -> None:
    begins = item("agent_message", frame="item.started", text="So")
    events, _ = told(begins, item("agent_message", text=""), item("reasoning", text=""))
    assert events == []


def test_an_error_without_a_turns_end_is_remembered() -> None:
    events, state = told({"type": "error", "message": "Connection failed: refused"})
    assert events == []
    assert state.last_error is not None
    assert state.last_error.message == "Connection failed: refused"
    assert state.last_turn is None


CUT: Json = {
    "type": "error",
    "message": "Reconnecting... 1/5 (stream disconnected before completion: gone)",
}
CALL: Json = {"id": "c", "type": "command_execution", "command": "ls", "status": "in_progress"}
SAID: Json = {"id": "m", "type": "agent_message", "text": "ha"}


@pytest.mark.parametrize(
    ("progress", "retryable"),
    [
        ([], True),
        ([{"type": "item.started", "item": CALL}], False),
        ([{"type": "item.completed", "item": SAID}], False),
    ],
)
def test_what_was_tried_again_with_success_explains_no_later_failure(
    progress: list[Json], *, retryable: bool
) -> None:
    failed: Json = {"type": "turn.failed", "error": {"message": "Bad Request"}}
    _, state = told(CUT, *progress, failed)
    assert state.failure is not None
    assert state.failure.retryable is retryable
