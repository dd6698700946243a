"""What a provider asks before it does something, and what may be answered."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import PurePath
from typing import Literal, TypeAlias

import msgspec

from sessionmgr.model import Json, PermissionMode

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


def by_mode(
    mode: PermissionMode, request: ApprovalRequest, directories: Iterable[str]
) -> Decision | None:
    """Return what the permission mode itself answers; None leaves it to the caller."""
    match mode:
        case PermissionMode.PLAN:
            if request.effect == "read":
                return Allow(by="mode")
            return Deny(reason="the run only plans: nothing may be changed", by="mode")
        case PermissionMode.ACCEPT_EDITS if request.effect == "edit":
            return Allow(by="mode") if _within(request.paths, directories) else None
        case PermissionMode.FULL_AUTO | PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS:
            return Allow(by="mode")
        case _:
            return None


def _within(paths: tuple[str, ...], directories: Iterable[str]) -> bool:
    """Say whether all `paths` are known to be inside one of the directories, wherever links lead.

    What `..` behind a link means depends on who reads it, so nothing is known of that.
    """
    inside = [os.path.realpath(directory) for directory in directories]
    return bool(paths) and all(
        ".." not in PurePath(path).parts
        and PurePath(path).is_absolute()
        and "\0" not in path
        and any(PurePath(os.path.realpath(path)).is_relative_to(each) for each in inside)
        for path in paths
    )
