"""Permission modes: what an agent may do without asking."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

from sessionmgr.model.value import Value


class PermissionMode(StrEnum):
    """The five permission modes; each provider has its own names for them."""

    DEFAULT = "default"
    """The provider's own default; each request of the agent goes to the caller."""
    ACCEPT_EDITS = "accept_edits"
    """As default, but edits inside the session's directories are granted."""
    PLAN = "plan"
    """The agent plans only: it changes neither files nor the system."""
    FULL_AUTO = "full_auto"
    """No questions; confined to the session's directories where the provider can confine."""
    DANGEROUSLY_SKIP_PERMISSIONS = "dangerously_skip_permissions"
    """No questions, no sandbox."""


PermissionModeName: TypeAlias = Literal[
    "default", "accept_edits", "plan", "full_auto", "dangerously_skip_permissions"
]
"""The value of a `PermissionMode`, which every entry point accepts in its place."""


class Fidelity(StrEnum):
    """How well a provider's mode corresponds to ours; one known to be wider is never used."""

    EXACT = "exact"
    """The provider's mode does the same."""
    EMULATED = "emulated"
    """The adapter produces the same effect by its answers."""
    NARROWER = "narrower"
    """The agent may do less than the mode allows."""
    UNVERIFIED = "unverified"
    """It is not known what the provider's mode does: the agent may do more without a request."""
    REFUSED = "refused"
    """The provider has no such mode; a run is refused."""


class Permission(Value, frozen=True, kw_only=True, gc=False):
    """The requested mode, the provider's own mode in force, and how well it corresponds."""

    asked: PermissionMode
    """The requested mode."""
    effective: str
    """The provider's own name of the mode in force."""
    fidelity: Fidelity
    """How well the provider's mode corresponds to the requested one."""
    confined: bool | None = None
    """Whether a sandbox of the provider confines the agent; null if unknown."""


class PermissionDenial(Value, frozen=True, kw_only=True, gc=False):
    """One request of an agent that was denied."""

    tool_name: str
    """Name of the tool."""
    tool_call_id: str | None = None
    """Id of the tool call, if the provider names one."""
    reason: str | None = None
    """Reason for the denial."""
    by: str | None = None
    """Source of the decision: `caller`, `rules`, `mode`, `request` (a command), `deadline`, …."""
    summary: str | None = None
    """The key part of the tool's input on one line, such as the command or the path."""
