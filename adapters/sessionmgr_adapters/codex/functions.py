"""Functions of the caller's that Codex may call: its dynamic tools.

A thread has the tools that it was begun with, and keeps them when it is gone on with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from sessionmgr.provider.tool import FunctionTool, outcome_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.model import Json

CodexTool: TypeAlias = FunctionTool
"""A function that the model may call."""


def described(tool: CodexTool) -> Json:
    """Return what Codex is told of a tool."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "inputSchema": dict(tool.schema),
    }


def tool_named(tools: Sequence[CodexTool], name: Json) -> CodexTool | None:
    """Return the tool of a name."""
    return next((each for each in tools if each.name == name), None)


async def called(tool: CodexTool, arguments: Json) -> Json:
    """Call a tool, and return what Codex is told of it."""
    outcome = await outcome_of(tool, arguments)
    return told(outcome.text, failed=outcome.failed)


def told(text: str, *, failed: bool = False) -> Json:
    """Return what Codex is told of a call."""
    return {"contentItems": [{"type": "inputText", "text": text}], "success": not failed}
