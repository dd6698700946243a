"""What a provider asks before it does something, and what may be answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

import msgspec

from sessionmgr.model import Json

Effect: TypeAlias = Literal["read", "edit", "command", "network", "other"]


class ApprovalRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A question. `effect` and `paths` say what the tool would do, as far as the adapter knows."""

    tool_name: str
    """Name of the tool, as the agent has it."""
    tool_input: Json = None
    """Input of the tool."""
    tool_call_id: str | None = None
    """Id of the tool call, if the provider names one."""
    reason: str | None = None
    """Reason for the request, if the agent gives one."""
    effect: Effect = "other"
    """What the tool would do, as far as the adapter knows."""
    paths: tuple[str, ...] = ()
    """Absolute paths that the tool would use, as far as the adapter knows."""
    approval_id: str = ""
    """Id of the request (`apr_…`)."""
    session_id: str = ""
    """The session."""
    run_id: str = ""
    """The run."""
    provider: str = ""
    """The provider."""
    cwd: str = ""
    """Where the run works."""
    tool_cwd: str = ""
    """Where the tool would work, if the request names its own directory."""


class Allow(msgspec.Struct, frozen=True, kw_only=True):
    """It may; with a `tool_input`, that instead of what it wanted."""

    tool_input: Json | msgspec.UnsetType = msgspec.UNSET
    """Input that replaces that of the tool."""
    reason: str | None = None
    """Reason, for the record."""
    by: str = "caller"
    """Source of the decision."""


class Deny(msgspec.Struct, frozen=True, kw_only=True):
    """It may not; with `stop`, that is also the end of the run."""

    reason: str | None = None
    """Reason, for the record and the agent."""
    stop: bool = False
    """Whether the run ends, too."""
    by: str = "caller"
    """Source of the decision."""


Decision: TypeAlias = Allow | Deny
Approve: TypeAlias = Callable[[ApprovalRequest], Awaitable[Decision]]
