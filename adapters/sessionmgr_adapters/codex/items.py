"""The items of a turn: messages, reasoning and tool calls, as Codex reports them.

Items are open: an unknown field is ignored, and an item of unknown type is kept unchanged. Many
are tool calls, and become events in which a call has the same name at its start and its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from sessionmgr.adapter.kit import NotSimpleError, split_argv
from sessionmgr.model import (
    Json,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
    UnreadableJson,
    parse_json,
)

if TYPE_CHECKING:
    from typing import TypeGuard


class _TurnItem(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", rename="camel"):
    id: str


class UserMessageItem(_TurnItem, frozen=True, kw_only=True, tag="userMessage"):
    """A message from us."""

    client_id: str | None = None


class AgentMessageItem(_TurnItem, frozen=True, kw_only=True, tag="agentMessage"):
    """A message of the model."""

    text: str = ""


class ReasoningItem(_TurnItem, frozen=True, kw_only=True, tag="reasoning"):
    """The model's reasoning, or a summary of it."""

    summary: list[str] = []
    content: list[str] = []


class PlanItem(_TurnItem, frozen=True, kw_only=True, tag="plan"):
    """A plan, proposed as text."""

    text: str = ""


class CommandItem(_TurnItem, frozen=True, kw_only=True, tag="commandExecution"):
    """A command."""

    command: str = ""
    cwd: str | None = None
    status: str = ""
    aggregated_output: str | None = None
    exit_code: int | None = None


class FileUpdate(msgspec.Struct, frozen=True):
    """The change that a patch makes to one file."""

    path: str
    kind: Json = None
    diff: str | msgspec.UnsetType = msgspec.UNSET


class FileChangeItem(_TurnItem, frozen=True, kw_only=True, tag="fileChange"):
    """A patch."""

    changes: list[FileUpdate] = []
    status: str = ""


class ToolError(msgspec.Struct, frozen=True):
    """The error of a failed tool call."""

    message: str = ""


class McpToolCallItem(_TurnItem, frozen=True, kw_only=True, tag="mcpToolCall"):
    """A call of an MCP server's tool."""

    server: str = ""
    tool: str = ""
    arguments: Json = None
    status: str = ""
    result: Json = None
    error: ToolError | None = None


class DynamicToolCallItem(_TurnItem, frozen=True, kw_only=True, tag="dynamicToolCall"):
    """A call of one of our functions."""

    tool: str = ""
    arguments: Json = None
    status: str = ""
    content_items: Json = None


class CollabToolCallItem(_TurnItem, frozen=True, kw_only=True, tag="collabAgentToolCall"):
    """A call to agents, which have threads of their own."""

    tool: str = ""
    prompt: str | None = None
    model: str | None = None
    status: str = ""
    receiver_thread_ids: list[str] = []
    agents_states: Json = None


class WebSearchItem(_TurnItem, frozen=True, kw_only=True, tag="webSearch"):
    """A search of the web."""

    query: str = ""
    action: Json = None
    results: Json = None


class ImageViewItem(_TurnItem, frozen=True, kw_only=True, tag="imageView"):
    """An image that the model has looked at."""

    path: str = ""


class ImageGenerationItem(_TurnItem, frozen=True, kw_only=True, tag="imageGeneration"):
    """An image that the model has made."""

    status: str = ""
    revised_prompt: str | None = None


class SleepItem(_TurnItem, frozen=True, kw_only=True, tag="sleep"):
    """The model waits."""

    duration_ms: float = 0


class ContextCompactionItem(_TurnItem, frozen=True, kw_only=True, tag="contextCompaction"):
    """Codex compacts the context."""


class SubAgentItem(_TurnItem, frozen=True, kw_only=True, tag="subAgentActivity"):
    """A call to an agent, or the end of one."""

    kind: str = ""
    agent_thread_id: str = ""
    agent_path: str = ""
    model: str | None = None


class SilentItem(msgspec.Struct, frozen=True):
    """An item without information about the run."""


class UnknownItem(msgspec.Struct, frozen=True):
    """An item of unknown type or form."""

    value: Json


ToolCallItem: TypeAlias = (
    CommandItem
    | FileChangeItem
    | McpToolCallItem
    | DynamicToolCallItem
    | CollabToolCallItem
    | WebSearchItem
    | ImageViewItem
    | ImageGenerationItem
    | SleepItem
    | SubAgentItem
)
KnownItem: TypeAlias = (
    UserMessageItem
    | AgentMessageItem
    | ReasoningItem
    | PlanItem
    | ContextCompactionItem
    | ToolCallItem
)
TurnItem: TypeAlias = KnownItem | SilentItem | UnknownItem

_DECODER: Final = msgspec.json.Decoder(KnownItem)
_SILENT: Final = ("hookPrompt", "functionCallOutput", "enteredReviewMode", "exitedReviewMode")
"""A tuple, not a set: the `type` of an item may be an unhashable value."""


def read_item(data: bytes) -> TurnItem:
    """Return the item in some JSON."""
    try:
        item: KnownItem = _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value = parse_json(data)
        if isinstance(value, dict) and value.get("type") in _SILENT:
            return SilentItem()
        return UnknownItem(None if isinstance(value, UnreadableJson) else value)
    return item


def item_agents(item: TurnItem) -> list[str]:
    """Return the threads of the agents that an item is about."""
    match item:
        case CollabToolCallItem(receiver_thread_ids=threads):
            return threads
        case SubAgentItem(agent_thread_id=thread) if thread:
            return [thread]
        case _:
            return []


def starts_agents(item: TurnItem) -> bool:
    """Whether the agents that an item is about start to work because of it."""
    match item:
        case CollabToolCallItem(tool=tool):
            return tool == "spawnAgent"
        case SubAgentItem(kind=kind):
            return kind == "started"
        case _:
            return False


# --- tool calls ----------------------------------------------------------------------------------

SHELL_TOOL: Final = "shell"
PATCH_TOOL: Final = "apply_patch"
# Codex reports what was done with an agent, but not the name of the tool.
_AGENT_ACTIONS: Final = {
    "started": "spawn_agent",
    "interacted": "message_agent",
    "interrupted": "interrupt_agent",
}
_SYSTEM_SHELLS: Final = frozenset(
    f"{directory}/{name}"
    for directory in ("/bin", "/usr/bin")
    for name in ("sh", "bash", "dash", "ksh", "zsh")
)
_FAILED_STATUSES: Final = frozenset({"failed", "declined"})


def is_call(item: TurnItem) -> TypeGuard[ToolCallItem]:
    """Whether an item is a tool call; the end of an agent is not."""
    if isinstance(item, SubAgentItem):
        return item.kind in _AGENT_ACTIONS
    return isinstance(item, ToolCallItem)


def tool_started_event(item: ToolCallItem) -> ToolCallStarted:
    """Return the event for the start of a call."""
    name, given, _ = describe_tool_call(item)
    return ToolCallStarted(tool_call_id=item.id, tool_name=name, tool_input=given)


def tool_ended_event(item: ToolCallItem) -> ToolCallCompleted | ToolCallFailed:
    """Return the event for the end of a call."""
    name, given, output = describe_tool_call(item)
    ended = ToolCallFailed if getattr(item, "status", "") in _FAILED_STATUSES else ToolCallCompleted
    return ended(tool_call_id=item.id, tool_name=name, tool_input=given, tool_output=output)


def describe_tool_call(item: ToolCallItem) -> tuple[str, Json, Json]:
    """Return the name, the input and the output of a call's tool."""
    match item:
        case CommandItem():
            given = {"command": bare_script(item.command), **_known(cwd=item.cwd)}
            return (
                SHELL_TOOL,
                given,
                {"output": item.aggregated_output, "exit_code": item.exit_code},
            )
        case FileChangeItem():
            return PATCH_TOOL, {"changes": [*map(msgspec.to_builtins, item.changes)]}, item.status
        case McpToolCallItem():
            output = item.result if item.error is None else item.error.message
            return f"mcp__{item.server}__{item.tool}", item.arguments, output
        case DynamicToolCallItem():
            return item.tool, item.arguments, item.content_items
        case CollabToolCallItem():
            threads = _known(threads=[*item.receiver_thread_ids])
            given = {"prompt": item.prompt, "model": item.model, **threads}
            return item.tool, given, item.agents_states
        case WebSearchItem():
            return "web_search", {"query": item.query, **_known(action=item.action)}, item.results
        case ImageViewItem():
            return "view_image", {"path": item.path}, None
        case ImageGenerationItem():
            return "image_generation", {"prompt": item.revised_prompt}, item.status
        case SleepItem():
            return "sleep", {"seconds": item.duration_ms / 1000}, None
        case SubAgentItem():
            name = _AGENT_ACTIONS[item.kind]
            return name, {"agent": item.agent_path, "model": item.model}, None


def _known(**given: Json) -> dict[str, Json]:
    """Return the fields that are present: the two protocols report different ones."""
    return {name: value for name, value in given.items() if value}


def bare_script(command: str) -> str:
    """Return the script of a system shell's `-c` or `-lc`, and any other command unchanged.

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
