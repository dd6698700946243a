"""The items that are calls of tools, as events: under names that are the same for start and end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec import UnsetType

from sessionmgr.adapter.kit.command_line import NotPlainError, split
from sessionmgr.model import ToolCallCompleted, ToolCallFailed, ToolCallStarted
from sessionmgr_adapters.codex.items import (
    CollabAgentToolCall,
    CommandExecution,
    DynamicToolCall,
    FileChange,
    ImageGeneration,
    ImageView,
    McpToolCall,
    Sleep,
    SubAgentActivity,
    WebSearch,
)

if TYPE_CHECKING:
    from typing import TypeGuard

    from sessionmgr.model import Json
    from sessionmgr_adapters.codex.items import Item

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


def started_call(item: Call, parent: str | UnsetType) -> ToolCallStarted:
    """Return the event that a call begins."""
    return ToolCallStarted(
        tool_call_id=item.id,
        tool_name=tool_name(item),
        tool_input=tool_input(item),
        parent_tool_call_id=parent,
    )


def ended_call(item: Call, parent: str | UnsetType) -> ToolCallCompleted | ToolCallFailed:
    """Return the event that a call is over."""
    ended = ToolCallFailed if _status(item) in _ENDED_BADLY else ToolCallCompleted
    return ended(
        tool_call_id=item.id,
        tool_name=tool_name(item),
        tool_input=tool_input(item),
        tool_output=_output(item),
        parent_tool_call_id=parent,
    )


def tool_name(item: Call) -> str:
    """Return what the tool is called."""
    match item:
        case CommandExecution():
            return SHELL
        case FileChange():
            return PATCH
        case McpToolCall(server=server, tool=tool):
            return f"mcp__{server}__{tool}"
        case DynamicToolCall(tool=tool) | CollabAgentToolCall(tool=tool):
            return tool
        case WebSearch():
            return "web_search"
        case ImageView():
            return "view_image"
        case ImageGeneration():
            return "image_generation"
        case Sleep():
            return "sleep"
        case SubAgentActivity(kind=kind):
            return _DONE_WITH_AGENTS[kind]


def tool_input(item: Call) -> Json:
    """Return what the tool is given."""
    match item:
        case CommandExecution():
            return {"command": bare(item.command), "cwd": item.cwd}
        case FileChange(changes=changes):
            return {"changes": [msgspec.to_builtins(each) for each in changes]}
        case McpToolCall(arguments=arguments) | DynamicToolCall(arguments=arguments):
            return arguments
        case CollabAgentToolCall():
            return {"prompt": item.prompt, "model": item.model}
        case WebSearch():
            return {"query": item.query}
        case ImageView():
            return {"path": item.path}
        case ImageGeneration():
            return {"prompt": item.revised_prompt}
        case Sleep():
            return {"seconds": item.duration_ms / 1000}
        case SubAgentActivity():
            return {"agent": item.agent_path, "model": item.model}


def _status(item: Call) -> str:
    if isinstance(item, ImageView | WebSearch | Sleep | SubAgentActivity):
        return ""
    return item.status


def _output(item: Call) -> Json:
    match item:
        case CommandExecution():
            return {"output": item.aggregated_output, "exit_code": item.exit_code}
        case McpToolCall():
            return item.error.message if item.error is not None else item.result
        case DynamicToolCall():
            return item.content_items
        case CollabAgentToolCall():
            return item.agents_states
        case WebSearch():
            return item.results
        case ImageView() | Sleep() | SubAgentActivity():
            return None
        case FileChange() | ImageGeneration():
            return item.status


def bare(command: str) -> str:
    """Return the script of a system shell's `-c` or `-lc`, and any other command as a whole.

    The model chooses the argv. A name without a directory, or a path that the model may write to,
    can be any program, so such a call is shown and matched as a whole.
    """
    try:
        words = split(command)
    except NotPlainError:
        return command
    match words:
        case [shell, "-c" | "-lc", script] if (
            shell in _SYSTEM_SHELLS and command.startswith(f"{shell} ") and "\0" not in command
        ):
            return script
        case _:
            return command
