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


class _Tagged(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """What says of itself what it is."""


# --- items --------------------------------------------------------------------------------------


class _Item(_Tagged, frozen=True, kw_only=True):
    id: str


class _Text(_Item, frozen=True, kw_only=True):
    text: str = ""


class AgentMessage(_Text, frozen=True, kw_only=True, tag="agent_message"):
    """What the agent says; the last of a turn is its answer."""


class Reasoning(_Text, frozen=True, kw_only=True, tag="reasoning"):
    """What it thinks, in short."""


class Plan(_Text, frozen=True, kw_only=True, tag="plan"):
    """What it proposes to do."""


class Execution(_Item, frozen=True, kw_only=True, tag="command_execution"):
    """A command."""

    command: str = ""
    aggregated_output: str = ""
    exit_code: int | None = None
    status: str = ""


class FileChange(_Item, frozen=True, kw_only=True, tag="file_change"):
    """A patch."""

    changes: Json = None
    status: str = ""


class McpCall(_Item, frozen=True, kw_only=True, tag="mcp_tool_call"):
    """A tool of an MCP server's."""

    server: str = ""
    tool: str = ""
    arguments: Json = None
    result: Json = None
    error: Json = None
    status: str = ""


class AgentCall(_Item, frozen=True, kw_only=True, tag="collab_tool_call"):
    """Something is asked of another agent."""

    tool: str = ""
    prompt: str | None = None
    receiver_thread_ids: tuple[str, ...] = ()
    agents_states: Json = None
    status: str = ""


class WebSearch(_Item, frozen=True, kw_only=True, tag="web_search"):
    """A search."""

    query: str = ""
    action: Json = None


class Todo(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to be done."""

    text: str = ""
    completed: bool = False


class TodoList(_Item, frozen=True, kw_only=True, tag="todo_list"):
    """What is to be done, and what is."""

    items: tuple[Todo, ...] = ()


class Notice(_Item, frozen=True, kw_only=True, tag="error"):
    """A warning: nothing fails of it."""

    message: str = ""


Call: TypeAlias = Execution | FileChange | McpCall | AgentCall | WebSearch
Item: TypeAlias = AgentMessage | Reasoning | Plan | TodoList | Notice | Call


# --- frames -------------------------------------------------------------------------------------


class ThreadStarted(_Tagged, frozen=True, kw_only=True, tag="thread.started"):
    """The thread that it goes on in, new or not."""

    thread_id: str


class TurnStarted(_Tagged, frozen=True, kw_only=True, tag="turn.started"):
    """The model is asked."""


class _OfItem(_Tagged, frozen=True):
    item: Item


class ItemStarted(_OfItem, frozen=True, tag="item.started"):
    """Something is begun."""


class ItemUpdated(_OfItem, frozen=True, tag="item.updated"):
    """Something is as it was not before."""


class ItemCompleted(_OfItem, frozen=True, tag="item.completed"):
    """Something is done, well or not."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that the thread has used since it began."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0


class TurnCompleted(_Tagged, frozen=True, tag="turn.completed"):
    """The turn went well."""

    usage: Counts | None = None


class Complaint(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong, in words."""

    message: str = ""


class TurnFailed(_Tagged, frozen=True, tag="turn.failed"):
    """The turn went wrong."""

    error: Complaint


class Error(_Tagged, frozen=True, kw_only=True, tag="error"):
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
