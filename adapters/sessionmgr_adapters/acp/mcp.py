"""MCP servers of a run: from the form of an MCP configuration to that of ACP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from sessionmgr_adapters.acp.v1 import AcpMcpServer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.model import Json


class McpServerError(ValueError):
    """An MCP server of the options is invalid; the text names it, and why."""


class _ConfiguredServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server in an MCP configuration."""

    type: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}


def mcp_servers_of(given: Mapping[str, Json]) -> tuple[AcpMcpServer, ...]:
    """Return the servers of an MCP configuration.

    Raises:
        McpServerError: One of them is invalid.
    """
    return tuple(_server(name, each) for name, each in given.items())


def _server(name: str, given: Json) -> AcpMcpServer:
    field = f"options.mcp_servers.{name}"
    try:
        found = msgspec.convert(given, _ConfiguredServer)
    except msgspec.ValidationError as error:
        raise McpServerError(f"{field}: {error}") from None
    if bool(found.command) == (found.url is not None):
        raise McpServerError(f"{field}: it needs either a command or a url, not {given!r}")
    if found.url is not None and found.type not in ("", "http", "sse"):
        raise McpServerError(f"{field}.type: unknown type {found.type!r}; known: http, sse")
    return AcpMcpServer(
        name=name,
        command=found.command,
        args=found.args,
        env=found.env,
        url=found.url,
        headers=found.headers,
        transport=found.type or "http",
    )
