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
    EMULATED = "emulated"
    NARROWER = "narrower"
    REFUSED = "refused"


class Permission(Value, frozen=True, kw_only=True, gc=False):
    """The mode that was asked for, the provider's own that is in force, and how well it fits."""

    asked: PermissionMode
    effective: str
    fidelity: Fidelity
    confined: bool | None = None


class PermissionDenial(Value, frozen=True, kw_only=True, gc=False):
    """One thing that an agent wanted to do and was not allowed."""

    tool_name: str
    tool_call_id: str | None = None
    reason: str | None = None
    by: str | None = None
    summary: str | None = None
    """A short form of the tool's input: its most telling part, such as the command or the path."""
