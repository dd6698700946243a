"""MCP servers of a client, as the option `mcp_servers` of the providers that have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from sessionmgr.acp_server.errors import INVALID_PARAMS, AcpRequestRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.acp_server.offer import AgentOffer
    from sessionmgr.acp_server.params import JsonObject
    from sessionmgr.model import Json


def read_mcp_servers(servers: Sequence[JsonObject], offer: AgentOffer) -> dict[str, Json]:
    """Return the servers on stdio by name.

    Raises:
        AcpRequestRefused: The agent cannot use them.
    """
    if servers and not offer.mcp:
        raise AcpRequestRefused(
            INVALID_PARAMS, f"mcpServers: {offer.provider} takes no MCP servers; remove them"
        )
    found: dict[str, Json] = {}
    for number, server in enumerate(servers):
        match server:
            case {"name": str(name), "command": str(command)}:
                arguments, variables = server.get("args") or [], server.get("env") or []
                found[name] = {
                    "command": command,
                    "args": arguments,
                    "env": _variables(cast("list[object]", variables)),
                }
            case _:
                kind = server.get("type", "unknown")
                raise AcpRequestRefused(
                    INVALID_PARAMS,
                    f"mcpServers[{number}]: a server of type {kind!r} is not supported; "
                    "use one on stdio, with name, command, args and env",
                )
    return found


def _variables(variables: Sequence[object]) -> JsonObject:
    found: JsonObject = {}
    for each in variables:
        match each:
            case {"name": str(name), "value": str(value)}:
                found[name] = value
            case _:
                raise AcpRequestRefused(
                    INVALID_PARAMS, "mcpServers: env: expected objects with name and value"
                )
    return found
