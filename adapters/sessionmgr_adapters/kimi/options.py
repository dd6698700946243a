"""Options of Kimi."""

from __future__ import annotations

import msgspec

from sessionmgr.adapter import Options
from sessionmgr.adapter.kit import AnyTool
from sessionmgr.model import Json


class KimiOptions(Options, frozen=True, kw_only=True):
    """Options of Kimi, beside those that all providers have."""

    code: bool = False
    """Use the successor, kimi-code, over ACP; otherwise kimi-cli 1.50 over its wire."""
    command: tuple[str, ...] | None = None
    """The program, found on PATH, and its first arguments; null is `kimi-cli`, or `kimi` with
    `code`.
    """
    home: str | None = None
    """Directory of its configuration and sessions (KIMI_SHARE_DIR, or KIMI_CODE_HOME with `code`);
    null is the user's own.
    """
    keep: bool = True
    """Keep the program running between the runs of a session; otherwise each run has its own."""
    thinking: bool | None = None
    """Whether the model thinks first; null leaves it to Kimi's configuration."""
    questions: bool = False
    """Let the agent ask the user questions, if the session has an `approve` function."""
    tools: tuple[AnyTool, ...] = ()
    """Functions of the caller that the model may call (Python only)."""
    fork: bool = False
    """Continue the session in a new one, and leave the old one unchanged; with `code` only."""
    mcp_servers: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """MCP servers, as in `mcpServers` of an MCP configuration; with `code` only."""

    @property
    def program(self) -> tuple[str, ...]:
        """The program and its first arguments."""
        return self.command or (("kimi",) if self.code else ("kimi-cli",))
