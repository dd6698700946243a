"""What `codex exec --json` says on its stdout: one JSON object a line.

The frames are open. A field that we do not know is passed over; a type of frame or item that we do
not know comes out of the decoder as what it is, and is told as it came.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from sessionmgr.model import Json
from sessionmgr.wire import Line, NoFrame, read_frames

# --- items --------------------------------------------------------------------------------------


class AgentMessage(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="agent_message"
):
    """What the agent says; the last of a turn is its answer."""

    id: str
    text: str = ""


class Reasoning(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="reasoning"):
    """What it thinks, in short."""

    id: str
    text: str = ""


class Plan(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="plan"):
    """What it proposes to do."""

    id: str
    text: str = ""


class Execution(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="command_execution"
):
    """A command."""

    id: str
    command: str = ""
    aggregated_output: str = ""
    exit_code: int | None = None
    status: str = ""


class FileChange(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="file_change"):
    """A patch."""

    id: str
    changes: Json = None
    status: str = ""


class McpCall(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="mcp_tool_call"):
    """A tool of an MCP server's."""

    id: str
    server: str = ""
    tool: str = ""
    arguments: Json = None
    result: Json = None
    error: Json = None
    status: str = ""


class AgentCall(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="collab_tool_call"
):
    """Something is asked of another agent."""

    id: str
    tool: str = ""
    prompt: str | None = None
    receiver_thread_ids: tuple[str, ...] = ()
    agents_states: Json = None
    status: str = ""


class WebSearch(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="web_search"):
    """A search."""

    id: str
    query: str = ""
    action: Json = None


class Todo(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to be done."""

    text: str = ""
    completed: bool = False


class TodoList(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="todo_list"):
    """What is to be done, and what is."""

    id: str
    items: tuple[Todo, ...] = ()


class Notice(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="error"):
    """A warning: nothing fails of it."""

    id: str
    message: str = ""


Item: TypeAlias = (
    AgentMessage
    | Reasoning
    | Plan
    | Execution
    | FileChange
    | McpCall
    | AgentCall
    | WebSearch
    | TodoList
    | Notice
)


# --- frames -------------------------------------------------------------------------------------


class ThreadStarted(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="thread.started"
):
    """The thread that it goes on in, new or not."""

    thread_id: str


class TurnStarted(msgspec.Struct, frozen=True, tag_field="type", tag="turn.started"):
    """The model is asked."""


class ItemStarted(msgspec.Struct, frozen=True, tag_field="type", tag="item.started"):
    """Something is begun."""

    item: Item


class ItemUpdated(msgspec.Struct, frozen=True, tag_field="type", tag="item.updated"):
    """Something is as it was not before."""

    item: Item


class ItemCompleted(msgspec.Struct, frozen=True, tag_field="type", tag="item.completed"):
    """Something is done, well or not."""

    item: Item


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that the thread has used since it began."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0


class TurnCompleted(msgspec.Struct, frozen=True, tag_field="type", tag="turn.completed"):
    """The turn went well."""

    usage: Counts | None = None


class Complaint(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong, in words."""

    message: str = ""


class TurnFailed(msgspec.Struct, frozen=True, tag_field="type", tag="turn.failed"):
    """The turn went wrong."""

    error: Complaint


class Error(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="error"):
    """Something went wrong: it is tried again, or the turn fails with it next."""

    message: str = ""


Frame: TypeAlias = (
    ThreadStarted
    | TurnStarted
    | ItemStarted
    | ItemUpdated
    | ItemCompleted
    | TurnCompleted
    | TurnFailed
    | Error
)

DECODER: Final = msgspec.json.Decoder[Frame](Frame)


def read(lines: Sequence[Line]) -> list[Frame | NoFrame]:
    """Return what each line of a read is."""
    return read_frames(lines, DECODER)
