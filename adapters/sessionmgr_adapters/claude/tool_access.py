"""Tools that a run may use: those that it names, restricted by the directory's `PERMISSIONS.json`.

`--tools` restricts only Claude Code's own tools. So only those MCP servers are started of which a
tool is named, and a hook denies their other tools.

    {"tier": "standard", "note": "Leave the folder `vendor` alone."}

The file is in the run's directory. A tier only narrows: `readonly` allows tools that read,
`standard` also those that edit, `custom` those listed, and `full` narrows nothing. The note is
added to the system prompt.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from sessionmgr.adapter import Effect
    from sessionmgr_adapters.claude.options import ClaudeOptions

FUNCTION_SERVER: Final = "sessionmgr"
"""Name of the MCP server of these tools; the model calls a tool `mcp__sessionmgr__NAME`."""
FUNCTION_PREFIX: Final = f"mcp__{FUNCTION_SERVER}__"
HARMLESS_TOOLS: Final = (
    *("Agent", "Task", "Skill", "ToolSearch", "SlashCommand", "AskUserQuestion", "LSP"),
    *("EnterPlanMode", "ExitPlanMode", "TodoWrite", "TaskCreate", "TaskGet", "TaskList"),
    *("TaskUpdate", "TaskOutput", "TaskStop", "AgentOutputTool", "BashOutput", "KillShell"),
    *("ListAgents", "ListPeers", "SendMessage", "ReportFindings", "StructuredOutput"),
    *("ListMcpResourcesTool", "ReadMcpResourceTool", "ReadMcpResourceDirTool"),
    "WaitForMcpServers",
)
"""Tools that change nothing by themselves, or that send a request before they do."""
_TOOLS: Final[dict[Effect, tuple[str, ...]]] = {
    "read": ("Read", "Glob", "Grep", "LS", "NotebookRead"),
    "edit": ("Edit", "MultiEdit", "Write", "NotebookEdit"),
    "command": ("Bash", "PowerShell", "Monitor"),
    "network": ("WebFetch", "WebSearch"),
    "other": (
        *HARMLESS_TOOLS,
        *("REPL", "Sleep", "WebBrowser", "Workflow", "TeamCreate", "TeamDelete"),
        *("EnterWorktree", "ExitWorktree", "CronCreate", "CronDelete", "CronList"),
        *("ScheduleWakeup", "RemoteTrigger", "PushNotification", "SendUserMessage"),
        *("SendUserFile", "Brief", "Config", "Artifact", "Projects", "Advisor", "DesignSync"),
        *("ShareOnboardingGuide", "SuggestBackgroundPR"),
    ),
}
"""Claude Code's own tools by effect, in all supported versions."""
_EFFECT_OF: Final[dict[str, Effect]] = {
    name: effect for effect, names in _TOOLS.items() for name in names
}
KNOWN_TOOLS: Final = frozenset(_EFFECT_OF)
_MCP: Final = "mcp__"
_NOT_IN_A_NAME: Final = re.compile("[^a-zA-Z0-9_-]")


class ToolAccess(msgspec.Struct, frozen=True):
    """The only tools that a run may use."""

    own: tuple[str, ...] = ()
    """Claude Code's own tools."""
    others: frozenset[str] = frozenset()
    """Tools of MCP servers and of the caller, by the model's names; a server stands for all of its
    tools.
    """

    def is_permitted(self, name: str) -> bool:
        """Whether the run may use a tool of a server, or of the caller."""
        return name in self.others or any(name.startswith(f"{each}__") for each in self.others)

    def needs(self, server: str) -> bool:
        """Whether the run may use any tool of a server."""
        prefix = mcp_server_prefix(server)
        return any(each == prefix or each.startswith(f"{prefix}__") for each in self.others)


def mcp_server_prefix(server: str) -> str:
    """Return the prefix of the names of a server's tools, without the final `__`."""
    return _MCP + _NOT_IN_A_NAME.sub("_", server)


def tool_access_of(names: Iterable[str] | None, options: ClaudeOptions) -> ToolAccess | None:
    """Return the permitted tools; None permits all."""
    if names is None:
        return None
    functions = {each.name for each in options.tools}
    wanted = dict.fromkeys(names)
    own = tuple(each for each in wanted if each in KNOWN_TOOLS)
    others = (
        FUNCTION_PREFIX + each if each in functions else each for each in wanted if each not in own
    )
    return ToolAccess(own, frozenset(each.removesuffix("__*") for each in others))


def unknown_tool_fault(
    allowed: Collection[str] | None, denied: Collection[str], options: ClaudeOptions
) -> str | None:
    """Return the first unknown tool as a message: it would restrict too much, or nothing."""
    functions = {FUNCTION_PREFIX + each.name: each.name for each in options.tools}
    servers = tuple(mcp_server_prefix(each) for each in options.mcp_servers)
    known = {*KNOWN_TOOLS, *functions, *functions.values(), *servers}
    for each in allowed or ():
        if each in known or any(_is_of(each, server) for server in servers):
            continue
        if "(" in each:
            return (
                f"tools_allowed: {each!r} is a rule; give the tool's name, {nearest_tool(each)!r}"
            )
        if each.startswith(_MCP):
            why = "belongs to no server of the option mcp_servers"
            return f"tools_allowed: {each!r} {why}; did you mean {nearest_tool(each, known)!r}?"
        return f"tools_allowed: unknown tool {each!r}; did you mean {nearest_tool(each, known)!r}?"
    for each in denied:
        if each.partition("(")[0] not in {*KNOWN_TOOLS, *functions} and not each.startswith(_MCP):
            found = nearest_tool(each, {*KNOWN_TOOLS, *functions})
            return f"tools_denied: unknown tool {each!r}; did you mean {found!r}?"
    return None


def _is_of(name: str, server: str) -> bool:
    return name.startswith(f"{server}__") and name != f"{server}__"


def nearest_tool(name: str, known: Collection[str] = KNOWN_TOOLS) -> str:
    """Return the known name that is most similar to another, ignoring case."""
    by_letters = {each.casefold(): each for each in sorted(known, reverse=True)}
    wanted = name.partition("(")[0].casefold()
    (found,) = get_close_matches(wanted, by_letters, 1, cutoff=0)
    return by_letters[found]


def tool_effect(tool_name: str) -> Effect:
    """Return the effect of a tool, as far as its name determines it."""
    return _EFFECT_OF.get(tool_name, "other")


# --- PERMISSIONS.json ----------------------------------------------------------------------------

PERMISSIONS_FILE: Final = "PERMISSIONS.json"
LARGEST_FILE: Final = 64 * 1024
READONLY_TOOLS: Final = ("Read", "Glob", "Grep", "WebFetch", "WebSearch")
STANDARD_TOOLS: Final = (*READONLY_TOOLS, "Edit", "MultiEdit", "Write", "NotebookEdit")


class WorkspaceInvalidError(Exception):
    """The file is invalid; the message names it and the reason."""


class WorkspacePermissions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Permissions of a directory."""

    tier: Literal["readonly", "standard", "full", "custom"] = "full"
    tools: tuple[str, ...] = ()
    """The tools of the tier `custom`."""
    note: str = ""

    @property
    def is_narrow(self) -> bool:
        """Whether it restricts runs."""
        return self.tier != "full"

    def restrict(self, wanted: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """Return the permitted tools among `wanted`; None means all, for both."""
        tiers = {"readonly": READONLY_TOOLS, "standard": STANDARD_TOOLS, "custom": self.tools}
        allowed = tiers.get(self.tier)
        if allowed is None or wanted is None:
            return allowed if wanted is None else wanted
        return tuple(each for each in wanted if each in allowed)


def read_workspace_permissions(directory: str) -> WorkspacePermissions:
    """Return the permissions of a directory; without the file they restrict nothing.

    Raises:
        WorkspaceInvalidError: The file is invalid or unreadable.
    """
    path = Path(directory, PERMISSIONS_FILE)
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        return WorkspacePermissions()
    except OSError as error:
        raise WorkspaceInvalidError(f"{path}: {error.strerror or error}") from None
    if len(data) > LARGEST_FILE:
        raise WorkspaceInvalidError(f"{path}: the file is larger than {LARGEST_FILE} bytes")
    try:
        found = msgspec.json.decode(data, type=WorkspacePermissions)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WorkspaceInvalidError(f"{path}: {error}") from None
    if found.tools and found.tier != "custom":
        raise WorkspaceInvalidError(f"{path}: `tools` needs the tier `custom`")
    for each in found.tools:
        if each not in KNOWN_TOOLS:
            raise WorkspaceInvalidError(
                f"{path}: unknown tool {each!r}; did you mean {nearest_tool(each)!r}?"
            )
    return found
