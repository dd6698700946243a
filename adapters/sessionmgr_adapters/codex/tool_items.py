"""The items that are calls of tools, as events: under names that are the same for start and end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec import UnsetType

from sessionmgr.adapter.kit.command_line import NotPlainError, split
from sessionmgr.model import ToolCallCompleted, ToolCallFailed, ToolCallStarted
from sessionmgr_adapters.codex import items

if TYPE_CHECKING:
    from typing import TypeGuard

    from sessionmgr.model import Json
    from sessionmgr_adapters.codex.items import Item

Call: TypeAlias = (
    items.CommandExecution
    | items.FileChange
    | items.McpToolCall
    | items.DynamicToolCall
    | items.CollabAgentToolCall
    | items.WebSearch
    | items.ImageView
    | items.ImageGeneration
    | items.Sleep
    | items.SubAgentActivity
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
    if isinstance(item, items.SubAgentActivity):
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
        case items.CommandExecution():
            return SHELL
        case items.FileChange():
            return PATCH
        case items.McpToolCall(server=server, tool=tool):
            return f"mcp__{server}__{tool}"
        case items.DynamicToolCall(tool=tool) | items.CollabAgentToolCall(tool=tool):
            return tool
        case items.WebSearch():
            return "web_search"
        case items.ImageView():
            return "view_image"
        case items.ImageGeneration():
            return "image_generation"
        case items.Sleep():
            return "sleep"
        case items.SubAgentActivity(kind=kind):
            return _DONE_WITH_AGENTS[kind]


def tool_input(item: Call) -> Json:
    """Return what the tool is given."""
    match item:
        case items.CommandExecution():
            return {"command": bare(item.command), **_given(cwd=item.cwd)}
        case items.FileChange(changes=changes):
            return {"changes": [msgspec.to_builtins(each) for each in changes]}
        case items.McpToolCall(arguments=arguments) | items.DynamicToolCall(arguments=arguments):
            return arguments
        case items.CollabAgentToolCall():
            threads: Json = [*item.receiver_thread_ids]
            return {"prompt": item.prompt, "model": item.model, **_given(threads=threads)}
        case items.WebSearch():
            return {"query": item.query, **_given(action=item.action)}
        case items.ImageView():
            return {"path": item.path}
        case items.ImageGeneration():
            return {"prompt": item.revised_prompt}
        case items.Sleep():
            return {"seconds": item.duration_ms / 1000}
        case items.SubAgentActivity():
            return {"agent": item.agent_path, "model": item.model}


def _given(**known: Json) -> dict[str, Json]:
    """Return what is told of a call by one of the two ways to Codex, or at its end alone."""
    return {name: value for name, value in known.items() if value}


def _status(item: Call) -> str:
    if isinstance(item, items.ImageView | items.WebSearch | items.Sleep | items.SubAgentActivity):
        return ""
    return item.status


def _output(item: Call) -> Json:
    match item:
        case items.CommandExecution():
            return {"output": item.aggregated_output, "exit_code": item.exit_code}
        case items.McpToolCall():
            return item.error.message if item.error is not None else item.result
        case items.DynamicToolCall():
            return item.content_items
        case items.CollabAgentToolCall():
            return item.agents_states
        case items.WebSearch():
            return item.results
        case items.ImageView() | items.Sleep() | items.SubAgentActivity():
            return None
        case items.FileChange() | items.ImageGeneration():
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
