"""What may be set for Claude Code alone."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from sessionmgr.adapter import Options
from sessionmgr.adapter.kit import AnyTool
from sessionmgr.model import Json
from sessionmgr_adapters.claude.hooks import HookParameter

Positive = Annotated[int, msgspec.Meta(gt=0)]


class ClaudeOptions(Options, frozen=True, kw_only=True):
    """How Claude Code is run. What is normal for all providers is said elsewhere, and not here."""

    command: tuple[str, ...] = ("claude",)
    """The program, found on PATH, and its first arguments."""
    home: str | None = None
    """Its configuration and sessions (CLAUDE_CONFIG_DIR); null is the user's own."""
    keep: bool = True
    """Keep the program running between the runs of a session; otherwise each run has its own."""
    text: bool = False
    """Have plain text instead of frames, as a last resort: no tools are told of, nothing can be
    asked or added, and what would be asked is denied."""
    billing: Literal["api", "subscription"] | None = None
    """Who is to pay. A run whose credential says otherwise is refused before it costs anything."""
    fallback_model: str | None = None
    """The model to use while the other is overloaded."""
    append_system_prompt: str | None = None
    """Added to the system prompt that Claude Code has by itself."""
    allow_rules: tuple[str, ...] = ()
    """Permission rules that allow without a question, such as `Bash(git *)`; refused in a plan."""
    ask_user: bool = True
    """Let the agent ask the user, where there is somebody to answer: an `approve` function."""
    mcp_servers: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """MCP servers, as in `mcpServers` of an MCP configuration."""
    strict_mcp: bool = False
    """No other MCP servers than these."""
    settings: str | None = None
    """A file of settings, or their JSON, beside the user's and the project's."""
    setting_sources: tuple[Literal["user", "project", "local"], ...] | None = None
    """Which settings are read at all."""
    agents: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """Sub-agents, by name."""
    fork: bool = False
    """Go on from the session in a new one, and leave the old as it is."""
    background: bool = True
    """Let commands and sub-agents go on in the background; the run lasts until they are done."""
    slash_commands: bool = False
    """Take `/` at the start of a prompt for a command, and `@` for a file."""
    partial_messages: bool = True
    """Stream messages while they are written."""
    follow_up: Literal["next", "now", "later"] = "next"
    """When a message to a running turn is heard: at its next step, at once, or after it."""
    auto_compact_window: Positive = 200_000
    """Tokens of context that are never exceeded: it is made shorter before."""
    tools: tuple[AnyTool, ...] = ()
    """Functions of the caller's that the model may call: in Python only."""
    hooks: tuple[HookParameter, ...] = ()
    """Functions of the caller's that are called when something happens: in Python only."""
    debug_file: str | None = None
    """Where Claude Code writes what it does."""
