"""MCP servers, the user's and a run's own: how to have nothing of theirs used unasked.

Codex does not ask about tools that say of themselves that they do no harm, nor about those that
its configuration allows. They run outside of any sandbox, and may change what they like.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessionmgr.model import Json

TABLE: Final = "mcp_servers"
ASK: Final = "prompt"


def all_asked(config: Mapping[str, Json], known: Mapping[str, Sequence[str]]) -> dict[str, Json]:
    """Return a configuration by which each tool is asked about.

    `known` are the servers that are configured elsewhere, with those tools of theirs for which
    something is said there.
    """
    servers: dict[str, Json] = {
        name: {"tools": {tool: {} for tool in tools}} if tools else {}
        for name, tools in known.items()
    }
    rest: dict[str, Json] = {}
    for name, value in config.items():
        first, *path = name.split(".")
        if first == TABLE:
            _add(servers, _nested(path, value))
        else:
            rest[name] = value
    for server in servers.values():
        if isinstance(server, dict):
            server["default_tools_approval_mode"] = ASK
            tools = server.get("tools")
            for tool in tools.values() if isinstance(tools, dict) else ():
                if isinstance(tool, dict):
                    tool["approval_mode"] = ASK
    return {**rest, TABLE: servers} if servers else rest


def _nested(path: Sequence[str], value: Json) -> Json:
    return value if not path else {path[0]: _nested(path[1:], value)}


def _add(table: dict[str, Json], more: Json) -> None:
    """Add one table to another, and whatever tables are in them likewise."""
    for name, value in more.items() if isinstance(more, dict) else ():
        if isinstance(value, dict):
            inner = table.setdefault(name, {})
            if not isinstance(inner, dict):
                inner = table[name] = {}
            _add(inner, value)
        else:
            table[name] = value
