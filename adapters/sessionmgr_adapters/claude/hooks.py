"""The caller's functions as options of a run: tools, and hooks on what Claude Code does."""

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
    """A function that is called when something happens, and may have a say in it.

    It gets the event as Claude Code tells it, and returns what a hook of Claude Code's may: `{}`
    to let things go on.
    """

    event: HookEvent
    call: Callable[[dict[str, Json]], Awaitable[dict[str, Json]]]
    matcher: str | None = None
    """The names of the tools that it is about; all, if none are given."""
    timeout: float = 60.0


_PYTHON: Final[dict[str, object]] = {"type": "object", "description": "a Python object"}
HookParameter = Annotated[ClaudeHook, msgspec.Meta(extra_json_schema=_PYTHON)]
