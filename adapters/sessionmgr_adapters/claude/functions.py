"""The caller's functions that Claude Code may call: tools and hooks.

Tools are served as an MCP server without a process: Claude Code sends the server's JSON-RPC
messages to its host, over its own stdin and stdout. By passing a tool the caller allows its calls;
in plan mode this holds only for tools that read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter.kit import FunctionTools, serve_mcp_message
from sessionmgr_adapters.claude.tool_access import FUNCTION_PREFIX, FUNCTION_SERVER

if TYPE_CHECKING:
    from sessionmgr.model import Json
    from sessionmgr_adapters.claude.hooks import ClaudeHook, ClaudeTool
    from sessionmgr_adapters.claude.tool_access import ToolAccess

TOOL_ACCESS_HOOK: Final = "bounds"
PLAN_MODE_HOOK: Final = "plans"
"""Ids of the hooks of sessionmgr itself."""


@dataclass(frozen=True)
class ClaudeFunctions(FunctionTools):
    """All functions that one process may call."""

    hooks: tuple[ClaudeHook, ...] = ()
    allowed: ToolAccess | None = None
    """The permitted tools of MCP servers; None permits all."""
    plans: bool = False
    """Whether the process serves runs in plan mode."""

    @property
    def introduction(self) -> dict[str, Json]:
        """The part of the initialize request that declares the functions."""
        request: dict[str, Json] = {"sdkMcpServers": [FUNCTION_SERVER]} if self.tools else {}
        hooks: dict[str, list[Json]] = {}
        if self.plans:
            _add_hook(hooks, "PreToolUse", PLAN_MODE_HOOK, matcher="")
        if self.allowed is not None:
            _add_hook(hooks, "PreToolUse", TOOL_ACCESS_HOOK, matcher="mcp__.*")
        for number, each in enumerate(self.hooks):
            _add_hook(hooks, each.event, str(number), matcher=each.matcher, timeout=each.timeout)
        if hooks:
            request["hooks"] = dict(hooks)
        return request

    def find_called(self, name: str) -> ClaudeTool | None:
        """Return the caller's tool that the model calls by this name."""
        return (
            self.find_tool(name.removeprefix(FUNCTION_PREFIX))
            if name.startswith(FUNCTION_PREFIX)
            else None
        )

    async def call_hook(self, callback_id: str, event: Json) -> dict[str, Json]:
        """Call a hook.

        Raises:
            LookupError: No hook has this id.
        """
        if callback_id == TOOL_ACCESS_HOOK:
            return self._enforce_tool_access(event)
        if not callback_id.isdecimal() or int(callback_id) >= len(self.hooks):
            raise LookupError(f"unknown hook {callback_id!r}")
        return await self.hooks[int(callback_id)].call(event if isinstance(event, dict) else {})

    def _enforce_tool_access(self, event: Json) -> dict[str, Json]:
        """Deny a tool that is not permitted, of a server that was started for its other tools."""
        name = event.get("tool_name") if isinstance(event, dict) else None
        if self.allowed is None or self.allowed.is_permitted(str(name)):
            return {}
        return denial_reply(f"{name} is not one of the tools that this run may use.")

    async def serve(self, message: Json) -> dict[str, Json]:
        """Answer a message to the MCP server of the tools."""
        return await serve_mcp_message(FUNCTION_SERVER, self, message)


def _add_hook(hooks: dict[str, list[Json]], event: str, name: str, **fields: Json) -> None:
    hooks.setdefault(event, []).append({"hookCallbackIds": [name], **fields})


def denial_reply(reason: str) -> dict[str, Json]:
    """Return the reply of a hook that denies a call."""
    denied: dict[str, Json] = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    }
    return {"hookSpecificOutput": denied}
