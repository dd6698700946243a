"""Options that hold functions of the caller: tools, and hooks on events of Claude Code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from sessionmgr.adapter.kit import FunctionTool
from sessionmgr.model import Json

HookEvent: TypeAlias = Literal[
    "PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop",
    "SubagentStart", "SubagentStop", "PreCompact", "Notification",
]  # fmt: skip

ClaudeTool: TypeAlias = FunctionTool
"""A function that the model may call."""


@dataclass(frozen=True)
class ClaudeHook:
    """Function that is called for an event of Claude Code, and may influence it.

    It receives the event as Claude Code sends it, and returns the reply of a Claude Code hook: `{}`
    for no influence.
    """

    event: HookEvent
    call: Callable[[dict[str, Json]], Awaitable[dict[str, Json]]]
    matcher: str | None = None
    """The tools that it applies to; None means all."""
    timeout: float = 60.0


_PYTHON: Final[dict[str, object]] = {"type": "object", "description": "a Python object"}
HookParameter = Annotated[ClaudeHook, msgspec.Meta(extra_json_schema=_PYTHON)]
