"""Requests for approval, and the decisions that answer them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

import msgspec

from sessionmgr.model import Json

Effect: TypeAlias = Literal["read", "edit", "command", "network", "question", "other"]


class ApprovalRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request to use a tool. `effect` and `paths` describe its effect, as far as it is known."""

    tool_name: str
    """Name of the tool, as the agent writes it."""
    tool_input: Json = None
    """Input of the tool."""
    tool_call_id: str | None = None
    """Id of the tool call, if the provider gives one."""
    reason: str | None = None
    """Reason for the request, if the agent gives one."""
    effect: Effect = "other"
    """Effect of the tool, as far as the adapter knows it; a `question` needs an answer."""
    paths: tuple[str, ...] = ()
    """Absolute paths that the tool would use, as far as the adapter knows them."""
    approval_id: str = ""
    """Id of the request (`apr_…`)."""
    session_id: str = ""
    """Id of the session."""
    run_id: str = ""
    """Id of the run."""
    provider: str = ""
    """Name of the provider."""
    cwd: str = ""
    """Working directory of the run."""
    tool_cwd: str = ""
    """Working directory of the tool, if the request names one."""


class Allow(msgspec.Struct, frozen=True, kw_only=True):
    """Decision to allow the request; a `tool_input` replaces the input of the tool."""

    tool_input: Json | msgspec.UnsetType = msgspec.UNSET
    """Input that replaces the tool's input."""
    reason: str | None = None
    """Reason, for the record."""
    by: str = "caller"
    """Source of the decision."""


class Deny(msgspec.Struct, frozen=True, kw_only=True):
    """Decision to deny the request; `stop` also ends the run."""

    reason: str | None = None
    """Reason, for the record and the agent."""
    stop: bool = False
    """Whether the run ends, too."""
    by: str = "caller"
    """Source of the decision."""


Decision: TypeAlias = Allow | Deny
Approve: TypeAlias = Callable[[ApprovalRequest], Awaitable[Decision]]
