"""What an agent may do without being asked about it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

from sessionmgr.model.value import Value


class PermissionMode(StrEnum):
    """The five modes; each provider has its own words for them."""

    DEFAULT = "default"
    """What the provider does unasked by itself; whatever it asks goes to the caller."""
    ACCEPT_EDITS = "accept_edits"
    """As default, and edits inside the session's directories are granted."""
    PLAN = "plan"
    """Nothing is changed, neither file nor system."""
    FULL_AUTO = "full_auto"
    """No questions; confined to the session's directories where the provider can confine."""
    DANGEROUSLY_SKIP_PERMISSIONS = "dangerously_skip_permissions"
    """No questions, no sandbox."""


PermissionModeName: TypeAlias = Literal[
    "default", "accept_edits", "plan", "full_auto", "dangerously_skip_permissions"
]
"""The value of a `PermissionMode`, which every entry point accepts in its place."""


class Fidelity(StrEnum):
    """How well a provider's mode does what ours says. There is no word for wider."""

    EXACT = "exact"
    """The provider's mode does the same."""
    EMULATED = "emulated"
    """The adapter produces the same effect by its answers."""
    NARROWER = "narrower"
    """The agent may do less than the mode allows."""
    REFUSED = "refused"
    """The provider has no such mode; a run is refused."""


class Permission(Value, frozen=True, kw_only=True, gc=False):
    """The mode that was asked for, the provider's own that is in force, and how well it fits."""

    asked: PermissionMode
    """The requested mode."""
    effective: str
    """The provider's own name of the mode in force."""
    fidelity: Fidelity
    """How well the provider's mode corresponds to the requested one."""
    confined: bool | None = None
    """Whether a sandbox of the provider confines the agent; null if unknown."""


class PermissionDenial(Value, frozen=True, kw_only=True, gc=False):
    """One thing that an agent wanted to do and was not allowed."""

    tool_name: str
    """Name of the tool."""
    tool_call_id: str | None = None
    """Id of the tool call, if the provider names one."""
    reason: str | None = None
    """Reason for the denial."""
    by: str | None = None
    """Source of the decision: `caller`, `rules`, `mode`, `request` (a command), `deadline`, …."""
    summary: str | None = None
    """A short form of the tool's input: its most telling part, such as the command or the path."""
