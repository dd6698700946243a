"""What may be set for Codex alone."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from sessionmgr.adapter import Options
from sessionmgr.adapter.kit import AnyTool, FunctionTool
from sessionmgr.model import Json

CodexTool: TypeAlias = FunctionTool
"""A function that the model may call."""


class CodexOptions(Options, frozen=True, kw_only=True):
    """How Codex is run. What is normal for all providers is said elsewhere, and not here."""

    command: tuple[str, ...] = ("codex",)
    """The program, found on PATH, and its first arguments."""
    home: str | None = None
    """Its configuration and sessions (CODEX_HOME); null is the user's own."""
    keep: bool = True
    """Keep a thread loaded between the runs of its session, for a minute at most."""
    exec: bool = False
    """Have each run done by `codex exec`, in a process of its own: nothing streams, nothing can be
    asked or added, and what would be asked is denied."""
    config: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """Configuration of the thread, as in config.toml; names may be dotted. It cannot widen what the
    permission mode allows."""
    model_provider: str | None = None
    """Which of the configured providers of models to use."""
    base_instructions: str | None = None
    """In place of the instructions that Codex has by itself."""
    mcp_servers: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """MCP servers, as in `mcp_servers` of config.toml."""
    fork: bool = False
    """Go on from the session's thread in a new one, and leave the old as it is."""
    network: bool = False
    """Let confined commands reach the network."""
    temporary: bool | None = None
    """Let confined commands write to /tmp and TMPDIR. If that is not said, they may where Codex
    asks, as it has it by itself; and where it does not, they have a TMPDIR of their own."""
    secrets: bool = False
    """Let commands see variables whose names speak of a key, a secret or a token."""
    rules: bool = False
    """Let the user's own rules allow commands outside of the sandbox in plan and full_auto as well.
    Without that a run in these modes is refused where there are such rules; `exec` needs no
    refusal, because it can leave them out."""
    tools: tuple[AnyTool, ...] = ()
    """Functions of the caller's that the model may call: in Python only, and from the beginning of
    a thread."""
    follow_up: Literal["next", "now", "later"] = "next"
    """When a message to a running turn is heard: at its next step, at once, or after it."""

    def __post_init__(self) -> None:
        if self.exec and self.follow_up == "now":
            raise ValueError('follow_up="now" and exec=true: nothing is added to a turn there')
        if self.exec and self.tools:
            raise ValueError("tools and exec=true: codex exec calls no functions of ours")
