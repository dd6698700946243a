"""Options of Claude Code."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from sessionmgr.adapter import Options
from sessionmgr.adapter.kit import AnyTool
from sessionmgr.model import Json
from sessionmgr_adapters.claude.hooks import HookParameter

Positive = Annotated[int, msgspec.Meta(gt=0)]


class ClaudeOptions(Options, frozen=True, kw_only=True):
    """Options of Claude Code, beside those that all providers have."""

    command: tuple[str, ...] = ("claude",)
    """The program, found on PATH, and its first arguments."""
    home: str | None = None
    """Directory of its configuration and sessions (CLAUDE_CONFIG_DIR); null is the user's own."""
    keep: bool = True
    """Keep the program running between the runs of a session; otherwise each run has its own."""
    text: bool = False
    """Use plain text instead of stream-json, as a last resort: tool calls are not reported,
    follow-ups are not possible, and every request for approval is denied.
    """
    billing: Literal["api", "subscription"] | None = None
    """Expected billing. A run whose credential is billed otherwise is refused before it costs
    anything.
    """
    fallback_model: str | None = None
    """The model to use while the requested one is overloaded."""
    append_system_prompt: str | None = None
    """Text that is appended to Claude Code's own system prompt."""
    allow_rules: tuple[str, ...] = ()
    """Permission rules that allow calls without a request, such as `Bash(git *)`; refused in plan
    mode.
    """
    ask_user: bool = True
    """Let the agent ask the user questions, if the session has an `approve` function."""
    mcp_servers: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """MCP servers, as in `mcpServers` of an MCP configuration."""
    strict_mcp: bool = False
    """Use no MCP servers but these."""
    settings: str | None = None
    """Path of a settings file, or settings as JSON, beside the user's and the project's."""
    setting_sources: tuple[Literal["user", "project", "local"], ...] | None = None
    """The settings that Claude Code reads; null is its default."""
    agents: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """Sub-agents, by name."""
    fork: bool = False
    """Continue the session in a new one, and leave the old one unchanged."""
    background: bool = True
    """Allow commands and sub-agents in the background; the run lasts until they have ended."""
    slash_commands: bool = False
    """Interpret `/` at the start of a prompt as a command, and `@` as a file."""
    partial_messages: bool = True
    """Stream messages while they are generated."""
    follow_up: Literal["next", "now", "later"] = "next"
    """When the agent reads a message to a running turn: at its next step, at once, or after it."""
    auto_compact_window: Positive = 200_000
    """Maximum size of the context in tokens; it is compacted before it exceeds this."""
    tools: tuple[AnyTool, ...] = ()
    """Functions of the caller that the model may call (Python only)."""
    hooks: tuple[HookParameter, ...] = ()
    """Functions of the caller that are called for events of Claude Code (Python only)."""
    debug_file: str | None = None
    """File to which Claude Code writes its debug log."""
