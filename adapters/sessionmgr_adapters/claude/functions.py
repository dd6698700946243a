"""Functions of the caller's that Claude Code may call: tools, and hooks on what it does.

A tool is served as an MCP server without a server: Claude Code sends its JSON-RPC messages to its
host. Whoever gives a tool allows its use; while a run only plans, that holds for those that read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import msgspec

from sessionmgr.adapter.kit.function_tools import FunctionTool, FunctionTools, serve_mcp_message
from sessionmgr.model import Json

if TYPE_CHECKING:
    from sessionmgr_adapters.claude.allowed import Allowed

SERVER: Final = "sessionmgr"
"""What the server of all these tools is called; a tool is `mcp__sessionmgr__NAME` to the model."""
PREFIX: Final = f"mcp__{SERVER}__"
BOUNDS: Final = "bounds"
PLANS: Final = "plans"
"""What our own hooks are called."""

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
AnyHook = Annotated[ClaudeHook, msgspec.Meta(extra_json_schema=_PYTHON)]


@dataclass(frozen=True)
class Functions(FunctionTools):
    """All functions that one child may call."""

    hooks: tuple[ClaudeHook, ...] = ()
    allowed: Allowed | None = None
    """What may be used at all of servers' tools; None is all."""
    plans: bool = False
    """Whether it serves runs that only plan."""

    @property
    def introduction(self) -> dict[str, Json]:
        """What Claude Code is told of them when it is greeted."""
        told: dict[str, Json] = {"sdkMcpServers": [SERVER]} if self.tools else {}
        hooks: dict[str, list[Json]] = {}
        if self.plans:
            _add(hooks, "PreToolUse", PLANS, matcher="")
        if self.allowed is not None:
            _add(hooks, "PreToolUse", BOUNDS, matcher="mcp__.*")
        for number, each in enumerate(self.hooks):
            _add(hooks, each.event, str(number), matcher=each.matcher, timeout=each.timeout)
        if hooks:
            told["hooks"] = dict(hooks)
        return told

    def called(self, name: str) -> ClaudeTool | None:
        """Return the tool of a name, as the model calls it: a tool of its own may be a namesake."""
        return self.find_tool(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None

    async def hook(self, callback_id: str, event: Json) -> dict[str, Json]:
        """Call a hook.

        Raises:
            LookupError: There is none of this name.
        """
        if callback_id == BOUNDS:
            return self._bound(event)
        if not callback_id.isdecimal() or int(callback_id) >= len(self.hooks):
            raise LookupError(f"there is no hook {callback_id!r}")
        return await self.hooks[int(callback_id)].call(event if isinstance(event, dict) else {})

    def _bound(self, event: Json) -> dict[str, Json]:
        """Deny what may not be used of a server that is there for other tools of it."""
        name = event.get("tool_name") if isinstance(event, dict) else None
        if self.allowed is None or self.allowed.permits(str(name)):
            return {}
        return deny_call(f"{name} is none of the tools that this run may use.")

    async def serve(self, message: Json) -> dict[str, Json]:
        """Answer a message to the server of the tools."""
        return await serve_mcp_message(SERVER, self, message)


def _add(hooks: dict[str, list[Json]], event: str, name: str, **fields: Json) -> None:
    hooks.setdefault(event, []).append({"hookCallbackIds": [name], **fields})


def deny_call(reason: str) -> dict[str, Json]:
    """Return the answer of a hook that denies a call."""
    denied: dict[str, Json] = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    }
    return {"hookSpecificOutput": denied}
