"""MCP servers, the user's and a run's own: how to have nothing of theirs used unasked.

Codex does not ask about tools that say of themselves that they do no harm, nor about those that
its configuration allows. They run outside of any sandbox, and may change what they like.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr_adapters.codex.configured import tools_of
from sessionmgr_adapters.codex.overrides import put_together

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sessionmgr.model import Json
    from sessionmgr_adapters.codex.configured import Configured

TABLE: Final = "mcp_servers"
ASK: Final = "prompt"
TRANSPORTS: Final = ("command", "url")
"""What makes a server of a table; Codex takes none without, even if it is not to be used."""


def all_asked(
    config: Mapping[str, Json],
    known: Mapping[str, Sequence[str]],
    projects: Iterable[Configured] = (),
) -> dict[str, Json]:
    """Return a configuration by which each tool is asked about.

    `known` are the servers that are configured elsewhere, with those tools of theirs for which
    something is said there. Whether Codex reads what is configured for `projects`, the nearest
    first, is not known: servers that only they have are not used.
    """
    whole = put_together(config)
    elsewhere: dict[str, Json] = {name: _with_tools({}, tools) for name, tools in known.items()}
    servers = _merged(elsewhere, whole.pop(TABLE, None))
    doubtful = _merged(*(each.mcp_servers for each in reversed([*projects])))
    for name, server in doubtful.items():
        if name in servers:
            servers[name] = _with_tools(servers[name], tools_of(server))
    for server in servers.values():
        _ask(server)
    for name, server in doubtful.items():
        if name not in servers and isinstance(server, dict):
            by = next((each for each in TRANSPORTS if each in server), None)
            if by is not None:  # else Codex makes nothing of it
                servers[name] = {by: server[by], "enabled": False}
    return {**whole, TABLE: servers} if servers else whole


def _with_tools(server: Json, tools: Iterable[str]) -> Json:
    named: Json = {tool: {} for tool in tools}
    return put_together({"tools": named}, server) if named and isinstance(server, dict) else server


def _merged(*tables: Json) -> dict[str, Json]:
    found = put_together({TABLE: {}}, *({TABLE: each} for each in tables if isinstance(each, dict)))
    servers = found[TABLE]
    assert isinstance(servers, dict)
    return servers


def _ask(server: Json) -> None:
    if not isinstance(server, dict):
        return
    server["default_tools_approval_mode"] = ASK
    tools = server.get("tools")
    for tool in tools.values() if isinstance(tools, dict) else ():
        if isinstance(tool, dict):
            tool["approval_mode"] = ASK
