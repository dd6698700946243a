"""The options of the Codex adapter."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from sessionmgr.adapter import Options
from sessionmgr.adapter.kit import AnyTool, FunctionTool
from sessionmgr.model import Json

CodexTool: TypeAlias = FunctionTool
"""A function that the model may call."""


class CodexOptions(Options, frozen=True, kw_only=True):
    """Codex's own options; settings that all providers share are not among them."""

    command: tuple[str, ...] = ("codex",)
    """The program, found on PATH, and its first arguments."""
    home: str | None = None
    """Codex's home, with its configuration and sessions (CODEX_HOME); null is the user's own."""
    keep: bool = True
    """Keep a thread loaded between the runs of its session, for one minute at most."""
    exec: bool = False
    """Use a `codex exec` process for each run: messages do not stream, none can be added to a
    running turn, and anything that would need an approval is denied.
    """
    config: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """Configuration of the thread, as in config.toml; names may be dotted. It cannot widen what the
    permission mode allows.
    """
    model_provider: str | None = None
    """The configured model provider to use."""
    base_instructions: str | None = None
    """Instructions that replace Codex's own."""
    mcp_servers: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """MCP servers, as in `mcp_servers` of config.toml."""
    fork: bool = False
    """Continue the session's thread in a new one, and leave the old thread unchanged."""
    network: bool = False
    """Allow confined commands to use the network."""
    temporary: bool | None = None
    """Allow confined commands to write to /tmp and TMPDIR. Without this option they may in modes
    that ask for approval, as is Codex's default; in other modes they have a TMPDIR of their own.
    """
    secrets: bool = False
    """Let commands see variables whose names suggest a key, a secret or a token."""
    rules: bool = False
    """Let the user's own rules allow commands outside of the sandbox in plan and full_auto as well.
    Without this option a run in these modes is refused if such rules exist; a run with `exec` is
    not, because `codex exec` can ignore them.
    """
    tools: tuple[AnyTool, ...] = ()
    """The caller's functions that the model may call; in Python only, and from the start of a
    thread.
    """
    follow_up: Literal["next", "now", "later"] = "next"
    """When the model reads a message to a running turn: at its next step, at once, or after it."""

    def __post_init__(self) -> None:
        if self.exec and self.follow_up == "now":
            raise ValueError(
                'follow_up="now" needs exec=false: codex exec accepts no messages during a turn'
            )
        if self.exec and self.tools:
            raise ValueError(
                "tools need exec=false: codex exec cannot call functions of the caller"
            )
