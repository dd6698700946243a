"""Options of Amp."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from sessionmgr.adapter import Options
from sessionmgr.model import Json

Name = Annotated[str, msgspec.Meta(min_length=1)]


class AmpOptions(Options, frozen=True, kw_only=True):
    """Options of Amp, beside those that all providers have."""

    command: tuple[str, ...] = ("amp",)
    """The program, found on PATH, and its first arguments."""
    mode: Name | None = None
    """Agent mode, which determines model, system prompt and tools: `low`, `medium`, `high`, `ultra`
    or that of a plugin; null is Amp's default.
    """
    settings_file: str | None = None
    """Settings file in place of the user's own."""
    permissions: tuple[dict[str, Json], ...] = ()
    """Permission rules, as in the setting `amp.permissions`, before those of the settings; for the
    permission mode default.
    """
    trust_project: bool = False
    """Accept settings of the project (`.amp/settings.json`) that allow more than the user's."""
    mcp_servers: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """MCP servers, as in the setting `amp.mcpServers`, beside those of the settings."""
    visibility: Literal["private", "unlisted", "workspace", "group"] | None = None
    """Visibility of the thread on Amp's server; null is Amp's default."""
