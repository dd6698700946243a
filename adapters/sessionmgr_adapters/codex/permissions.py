"""What our permission modes are to Codex: who is asked, and what the sandbox lets through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.adapter import MappedMode, PermissionMap
from sessionmgr.model import Failure, FailureKind, Fidelity, Json, PermissionMode

if TYPE_CHECKING:
    from sessionmgr_adapters.codex.frames import ThreadSettings

READ_ONLY: Final = "read-only"
WORKSPACE_WRITE: Final = "workspace-write"
FULL_ACCESS: Final = "danger-full-access"
REVIEWER: Final = "user"
"""Who answers what Codex asks: we, and not an agent of its own, as a configuration may have it."""
# How far a sandbox, or its absence, reaches. What is not known reaches as far as any.
_REACH: Final = {"readOnly": 0, "workspaceWrite": 1, "dangerFullAccess": 2}
_TYPES: Final = {
    READ_ONLY: "readOnly",
    WORKSPACE_WRITE: "workspaceWrite",
    FULL_ACCESS: "dangerFullAccess",
}
_ALL: Final = 9


class SandboxBounds(msgspec.Struct, frozen=True, kw_only=True):
    """How far the commands of a run may go that is confined."""

    directories: tuple[str, ...] = ()
    """Where they may write beside the directory that they work in."""
    network: bool = False
    temporary: bool = True
    """Whether they may write in /tmp and TMPDIR."""
    scratch: str | None = None
    """A TMPDIR of their own, in its stead; one of `directories`."""


class SandboxPolicy(msgspec.Struct, frozen=True):
    """When Codex asks, and what commands may do without."""

    approval: str
    sandbox: str

    @property
    def is_confined(self) -> bool:
        """Whether commands may write, and only where they may."""
        return self.sandbox == WORKSPACE_WRITE

    @property
    def shares_temporary(self) -> bool:
        """Whether they may write in what is temporary for all: Codex lets them, by itself.

        That is more than the session's directories, and so too much where nobody is asked.
        """
        return self.approval != "never"

    @property
    def mode_name(self) -> str:
        """Both in one."""
        return f"{self.approval}, {self.sandbox}"

    def sandbox_policy(self, bounds: SandboxBounds) -> dict[str, Json]:
        """Return the sandbox in the app-server's words."""
        policy: dict[str, Json] = {"type": _TYPES[self.sandbox]}
        if self.is_confined:
            policy |= {
                "writableRoots": list(bounds.directories),
                "networkAccess": bounds.network,
                "excludeSlashTmp": not bounds.temporary,
                "excludeTmpdirEnvVar": not bounds.temporary,
            }
        return policy


_ASK: Final = SandboxPolicy("on-request", WORKSPACE_WRITE)
_LOOK: Final = SandboxPolicy("never", READ_ONLY)
_CONFINED: Final = SandboxPolicy("never", WORKSPACE_WRITE)
_FREE: Final = SandboxPolicy("never", FULL_ACCESS)
POLICIES: Final = {each.mode_name: each for each in (_ASK, _LOOK, _CONFINED, _FREE)}

PERMISSIONS: Final = PermissionMap(
    {
        PermissionMode.DEFAULT: MappedMode(_ASK.mode_name, confined=True),
        PermissionMode.ACCEPT_EDITS: MappedMode(_ASK.mode_name, Fidelity.EMULATED, confined=True),
        PermissionMode.PLAN: MappedMode(_LOOK.mode_name, Fidelity.EMULATED, confined=True),
        PermissionMode.FULL_AUTO: MappedMode(_CONFINED.mode_name, confined=True),
        PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS: MappedMode(_FREE.mode_name, confined=False),
    }
)


def is_as_requested(asked: SandboxPolicy, wanted: dict[str, Json], found: ThreadSettings) -> bool:
    """Whether what is in force is just what was asked for."""
    sandbox = _sandbox(found)
    same = all(sandbox.get(name) == value for name, value in wanted.items())
    return same and found.approval_policy == asked.approval


def too_wide_failure(
    asked: SandboxPolicy, wanted: dict[str, Json], found: ThreadSettings
) -> Failure | None:
    """Return the failure that it is when more is allowed than was asked for."""
    sandbox = _sandbox(found)
    fits_in = (
        found.approval_policy == asked.approval
        and found.approvals_reviewer == REVIEWER
        and _is_sandbox_within(wanted, sandbox)
    )
    if fits_in:
        return None
    return Failure(
        kind=FailureKind.PERMISSION_REFUSED,
        message=f"{asked.mode_name!r} was asked for, and {found.approval_policy!r} with {sandbox!r} "
        f"is in force, where {found.approvals_reviewer!r} answers",
        phase="start",
    )


def _sandbox(found: ThreadSettings) -> dict[str, Json]:
    return found.sandbox_policy if isinstance(found.sandbox_policy, dict) else {}


def _is_sandbox_within(wanted: dict[str, Json], found: dict[str, Json]) -> bool:
    """Whether a sandbox lets nothing through that a wanted one does not."""
    reach, limit = _REACH.get(str(found.get("type")), _ALL), _REACH[str(wanted["type"])]
    if reach != limit or wanted["type"] != _TYPES[WORKSPACE_WRITE]:
        has_network = found.get("type") == _TYPES[READ_ONLY] and found.get("networkAccess") is True
        return reach <= limit and not has_network
    roots, allowed = found.get("writableRoots"), wanted["writableRoots"]
    if not isinstance(roots, list) or not isinstance(allowed, list):
        return False
    return all(each in allowed for each in roots) and all(
        found.get(name) is wanted[name]
        for name in ("networkAccess", "excludeSlashTmp", "excludeTmpdirEnvVar")
        if wanted[name] is not (name == "networkAccess")
    )
