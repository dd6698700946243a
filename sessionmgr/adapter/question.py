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
    tool_input: Json = None
    tool_call_id: str | None = None
    reason: str | None = None
    effect: Effect = "other"
    paths: tuple[str, ...] = ()
    approval_id: str = ""
    session_id: str = ""
    run_id: str = ""
    provider: str = ""
    cwd: str = ""
    """Where the run works."""
    tool_cwd: str = ""
    """Where the tool would work, if the request names its own directory."""


class Allow(msgspec.Struct, frozen=True, kw_only=True):
    """It may; with a `tool_input`, that instead of what it wanted."""

    tool_input: Json | msgspec.UnsetType = msgspec.UNSET
    reason: str | None = None
    by: str = "caller"


class Deny(msgspec.Struct, frozen=True, kw_only=True):
    """It may not; with `stop`, that is also the end of the run."""

    reason: str | None = None
    stop: bool = False
    by: str = "caller"


Decision: TypeAlias = Allow | Deny
Approve: TypeAlias = Callable[[ApprovalRequest], Awaitable[Decision]]
