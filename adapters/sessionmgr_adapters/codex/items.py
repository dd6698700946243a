"""The items of a turn: what was said, thought and done, as Codex tells it.

They are open: a field that we do not know is passed over, and an item of a type that we do not
know is kept as it came. Many are calls of tools, and events under names that are the same for a
call's start and its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from sessionmgr.adapter.kit.command_line import NotSimpleError, split_argv
from sessionmgr.model import Json, ToolCallCompleted, ToolCallFailed, ToolCallStarted
from sessionmgr.model.json_codec import UnreadableJson, parse_json

if TYPE_CHECKING:
    from typing import TypeGuard


class _Item(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", rename="camel"):
    id: str


class UserMessage(_Item, frozen=True, kw_only=True, tag="userMessage"):
    """What we have said."""

    client_id: str | None = None


class AgentMessage(_Item, frozen=True, kw_only=True, tag="agentMessage"):
    """A message of the model's."""

    text: str = ""


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


class DynamicToolCall(_Item, frozen=True, kw_only=True, tag="dynamicToolCall"):
    """A call of a function of ours."""

    tool: str = ""
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
    """An image that the model has made."""

    status: str = ""
    revised_prompt: str | None = None


class Sleep(_Item, frozen=True, kw_only=True, tag="sleep"):
    """The model waits."""

    duration_ms: float = 0


class ContextCompaction(_Item, frozen=True, kw_only=True, tag="contextCompaction"):
    """The context is made shorter."""


class SubAgentActivity(_Item, frozen=True, kw_only=True, tag="subAgentActivity"):
    """Something was done with another agent, or it has come to its end."""

    kind: str = ""
    agent_thread_id: str = ""
    agent_path: str = ""
    model: str | None = None


class SilentItem(msgspec.Struct, frozen=True):
    """An item that says nothing of what happens in the run."""


class UnknownItem(msgspec.Struct, frozen=True):
    """An item of a type that we do not know, or of another shape."""

    value: Json


Call: TypeAlias = (
    CommandExecution
    | FileChange
    | McpToolCall
    | DynamicToolCall
    | CollabAgentToolCall
    | WebSearch
    | ImageView
    | ImageGeneration
    | Sleep
    | SubAgentActivity
)
KnownItem: TypeAlias = UserMessage | AgentMessage | Reasoning | Plan | ContextCompaction | Call
Item: TypeAlias = KnownItem | SilentItem | UnknownItem

_DECODER: Final = msgspec.json.Decoder(KnownItem)
_SILENT: Final = ("hookPrompt", "functionCallOutput", "enteredReviewMode", "exitedReviewMode")
"""A tuple: the type that an item names may be unhashable."""


def read_item(data: bytes) -> Item:
    """Return what an item is."""
    try:
        item: KnownItem = _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value = parse_json(data)
        if isinstance(value, dict) and value.get("type") in _SILENT:
            return SilentItem()
        return UnknownItem(None if isinstance(value, UnreadableJson) else value)
    return item


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


# --- calls of tools ------------------------------------------------------------------------------

SHELL: Final = "shell"
PATCH: Final = "apply_patch"
# What Codex tells of agents says what was done, and not by which tool.
_DONE_WITH_AGENTS: Final = {
    "started": "spawn_agent",
    "interacted": "message_agent",
    "interrupted": "interrupt_agent",
}
_SYSTEM_SHELLS: Final = frozenset(
    f"{directory}/{name}"
    for directory in ("/bin", "/usr/bin")
    for name in ("sh", "bash", "dash", "ksh", "zsh")
)
_ENDED_BADLY: Final = frozenset({"failed", "declined"})


def is_call(item: Item) -> TypeGuard[Call]:
    """Whether an item is a call of a tool; that an agent has come to its end is none."""
    if isinstance(item, SubAgentActivity):
        return item.kind in _DONE_WITH_AGENTS
    return isinstance(item, Call)


def started_call(item: Call) -> ToolCallStarted:
    """Return the event that a call begins."""
    name, given, _ = shown(item)
    return ToolCallStarted(tool_call_id=item.id, tool_name=name, tool_input=given)


def ended_call(item: Call) -> ToolCallCompleted | ToolCallFailed:
    """Return the event that a call is over."""
    name, given, output = shown(item)
    ended = ToolCallFailed if getattr(item, "status", "") in _ENDED_BADLY else ToolCallCompleted
    return ended(tool_call_id=item.id, tool_name=name, tool_input=given, tool_output=output)


def shown(item: Call) -> tuple[str, Json, Json]:
    """Return what the tool of a call is called, what it is given, and what it gives back."""
    match item:
        case CommandExecution():
            given = {"command": bare(item.command), **_known(cwd=item.cwd)}
            return SHELL, given, {"output": item.aggregated_output, "exit_code": item.exit_code}
        case FileChange():
            return PATCH, {"changes": [*map(msgspec.to_builtins, item.changes)]}, item.status
        case McpToolCall():
            output = item.result if item.error is None else item.error.message
            return f"mcp__{item.server}__{item.tool}", item.arguments, output
        case DynamicToolCall():
            return item.tool, item.arguments, item.content_items
        case CollabAgentToolCall():
            threads = _known(threads=[*item.receiver_thread_ids])
            given = {"prompt": item.prompt, "model": item.model, **threads}
            return item.tool, given, item.agents_states
        case WebSearch():
            return "web_search", {"query": item.query, **_known(action=item.action)}, item.results
        case ImageView():
            return "view_image", {"path": item.path}, None
        case ImageGeneration():
            return "image_generation", {"prompt": item.revised_prompt}, item.status
        case Sleep():
            return "sleep", {"seconds": item.duration_ms / 1000}, None
        case SubAgentActivity():
            name = _DONE_WITH_AGENTS[item.kind]
            return name, {"agent": item.agent_path, "model": item.model}, None


def _known(**given: Json) -> dict[str, Json]:
    """Return what one of the two ways to Codex tells of a call, or its end alone."""
    return {name: value for name, value in given.items() if value}


def bare(command: str) -> str:
    """Return the script of a system shell's `-c` or `-lc`, and any other command as a whole.

    The model chooses the argv. A name without a directory, or a path that the model may write to,
    can be any program, so such a call is shown and matched as a whole.
    """
    try:
        words = split_argv(command)
    except NotSimpleError:
        return command
    match words:
        case [shell, "-c" | "-lc", script] if (
            shell in _SYSTEM_SHELLS and command.startswith(f"{shell} ") and "\0" not in command
        ):
            return script
        case _:
            return command
