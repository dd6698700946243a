"""The options of agents over ACP."""

from __future__ import annotations

from typing import Literal

import msgspec

from sessionmgr.adapter import Options
from sessionmgr.model import Json


class AcpOptions(Options, frozen=True, kw_only=True):
    """Options of an agent over ACP, beside those that all providers have."""

    agent: str | None = None
    """The id of a known agent. The provider `acp:ID` sets it; with it, leave this out."""
    command: tuple[str, ...] | None = None
    """The program, found on PATH, and its arguments, in place of the agent's usual ones."""
    home: str | None = None
    """Directory of the agent's configuration and sessions; null is the user's own."""
    protocol: Literal[1, 2, "auto"] = 1
    """The protocol version to speak; `auto` is 2 for agents that are known to speak it."""
    mode: str | None = None
    """The agent's own mode, in place of the one to which the permission mode is mapped; refused
    where it may allow more.
    """
    config: dict[str, str | bool] = msgspec.field(default_factory=dict[str, str | bool])
    """Values of the agent's configuration options, by their ids; not the mode, nor the model. Those
    that do not concern the model are refused in modes that ask.
    """
    fork: bool = False
    """Continue the session in a new one, and leave the old one unchanged."""
    auth: str | None = None
    """The id of the method by which the agent logs in, if it asks for a login."""
    mcp_servers: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """MCP servers, as in `mcpServers` of an MCP configuration."""
    meta: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """Extensions (`_meta`) that are sent with the opening of a session."""
