"""The items of a turn: what was said, thought and done, as Codex tells it.

They are open: a field that we do not know is passed over, and an item of a type that we do not
know is kept as it came.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from sessionmgr.model import Json
from sessionmgr.model.json import Unreadable, parse_json


class _Item(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", rename="camel"):
    id: str


class UserMessage(_Item, frozen=True, kw_only=True, tag="userMessage"):
    """What we have said."""

    client_id: str | None = None


class AgentMessage(_Item, frozen=True, kw_only=True, tag="agentMessage"):
    """A message of the model's."""

    text: str = ""
    phase: str | None = None


class Reasoning(_Item, frozen=True, kw_only=True, tag="reasoning"):
    """What the model has thought, or a summary of it."""

    summary: list[str] = []
    content: list[str] = []


class Plan(_Item, frozen=True, kw_only=True, tag="plan"):
    """A plan, put forward as a text."""

    text: str = ""


class CommandExecution(_Item, frozen=True, kw_only=True, tag="commandExecution"):
    """A command."""

    command: str = ""
    cwd: str | None = None
    status: str = ""
    aggregated_output: str | None = None
    exit_code: int | None = None
    process_id: str | None = None
    source: str | None = None


class FileUpdate(msgspec.Struct, frozen=True):
    """What a patch does to one file."""

    path: str
    kind: Json = None
    diff: str | msgspec.UnsetType = msgspec.UNSET


class FileChange(_Item, frozen=True, kw_only=True, tag="fileChange"):
    """A patch."""

    changes: list[FileUpdate] = []
    status: str = ""


class ToolError(msgspec.Struct, frozen=True):
    """Why a tool has failed."""

    message: str = ""


class McpToolCall(_Item, frozen=True, kw_only=True, tag="mcpToolCall"):
    """A call of an MCP server's tool."""

    server: str = ""
    tool: str = ""
    arguments: Json = None
    status: str = ""
    result: Json = None
    error: ToolError | None = None
    read_only_hint: bool | None = None


class DynamicToolCall(_Item, frozen=True, kw_only=True, tag="dynamicToolCall"):
    """A call of a function of ours."""

    tool: str = ""
    namespace: str | None = None
    arguments: Json = None
    status: str = ""
    content_items: Json = None


class CollabAgentToolCall(_Item, frozen=True, kw_only=True, tag="collabAgentToolCall"):
    """What is done with other agents, in threads of their own."""

    tool: str = ""
    prompt: str | None = None
    model: str | None = None
    status: str = ""
    receiver_thread_ids: list[str] = []
    agents_states: Json = None


class WebSearch(_Item, frozen=True, kw_only=True, tag="webSearch"):
    """A search of the web."""

    query: str = ""
    action: Json = None
    results: Json = None


class ImageView(_Item, frozen=True, kw_only=True, tag="imageView"):
    """An image that the model has looked at."""

    path: str = ""


class ImageGeneration(_Item, frozen=True, kw_only=True, tag="imageGeneration"):
    """An image that the model has made: base64."""

    status: str = ""
    result: str = ""
    revised_prompt: str | None = None


class Sleep(_Item, frozen=True, kw_only=True, tag="sleep"):
    """The model waits."""

    duration_ms: float = 0


class ContextCompaction(_Item, frozen=True, kw_only=True, tag="contextCompaction"):
    """The context is made shorter."""


class HookPrompt(_Item, frozen=True, kw_only=True, tag="hookPrompt"):
    """What a hook has told the model."""


class FunctionCallOutput(_Item, frozen=True, kw_only=True, tag="functionCallOutput"):
    """What a function has told the model, as part of the prompt."""


class SubAgentActivity(_Item, frozen=True, kw_only=True, tag="subAgentActivity"):
    """Something was done with another agent, or it has come to its end."""

    kind: str = ""
    agent_thread_id: str = ""
    agent_path: str = ""
    model: str | None = None


class EnteredReviewMode(_Item, frozen=True, kw_only=True, tag="enteredReviewMode"):
    """A review begins."""


class ExitedReviewMode(_Item, frozen=True, kw_only=True, tag="exitedReviewMode"):
    """A review is over."""


class UnknownItem(msgspec.Struct, frozen=True):
    """An item of a type that we do not know, or of another shape."""

    value: Json


KnownItem: TypeAlias = (
    UserMessage
    | AgentMessage
    | Reasoning
    | Plan
    | CommandExecution
    | FileChange
    | McpToolCall
    | DynamicToolCall
    | CollabAgentToolCall
    | WebSearch
    | ImageView
    | ImageGeneration
    | Sleep
    | ContextCompaction
    | HookPrompt
    | FunctionCallOutput
    | SubAgentActivity
    | EnteredReviewMode
    | ExitedReviewMode
)
Item: TypeAlias = KnownItem | UnknownItem

_DECODER: Final = msgspec.json.Decoder(KnownItem)


def agents_in(item: Item) -> list[str]:
    """Return the threads of the agents that an item is about."""
    match item:
        case CollabAgentToolCall(receiver_thread_ids=threads):
            return threads
        case SubAgentActivity(agent_thread_id=thread) if thread:
            return [thread]
        case _:
            return []


def begins_agents(item: Item) -> bool:
    """Whether the agents that an item is about begin to work by it."""
    match item:
        case CollabAgentToolCall(tool=tool):
            return tool == "spawnAgent"
        case SubAgentActivity(kind=kind):
            return kind == "started"
        case _:
            return False


def read_item(data: bytes) -> Item:
    """Return what an item is."""
    try:
        item: KnownItem = _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value = parse_json(data)
        return UnknownItem(None if isinstance(value, Unreadable) else value)
    return item
