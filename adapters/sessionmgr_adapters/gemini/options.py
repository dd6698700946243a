"""The options of the Gemini adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from sessionmgr.adapter import Options
from sessionmgr.model import Json

if TYPE_CHECKING:
    from collections.abc import Mapping


class GeminiOptions(Options, frozen=True, kw_only=True):
    """Gemini CLI's own options; settings that all providers share are not among them."""

    command: tuple[str, ...] = ("gemini",)
    """The program, found on PATH, and its first arguments."""
    headless: bool = False
    """Run Gemini without a terminal, in a process for each run, and not over ACP."""
    home: str | None = None
    """Directory that contains `.gemini` with its settings and sessions (GEMINI_CLI_HOME); null is
    the user's own.
    """
    output: Literal["stream-json", "text"] = "stream-json"
    """The output format, if `headless`. `text` is a last resort: tool calls and usage are not
    reported.
    """
    slash_commands: bool = False
    """Interpret `/` at the start of a prompt as a command."""
    trust: bool = False
    """Trust the working directory for this run, if the user has enabled folder trust and has not
    trusted it: its settings, hooks and commands apply.
    """
    auth: str | None = None
    """The method by which Gemini logs in over ACP, if it asks for a login: `oauth-personal`,
    `gemini-api-key` or `vertex-ai`.
    """
    mcp_servers: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """MCP servers, as in `mcpServers` of an MCP configuration; not if `headless`."""

    def variables(self) -> Mapping[str, str]:
        """Return the variable that trusts the working directory."""
        return {"GEMINI_CLI_TRUST_WORKSPACE": "true"} if self.trust else {}
