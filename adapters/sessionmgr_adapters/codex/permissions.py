"""The permission modes in Codex's terms: its approval policies and sandboxes."""

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
"""Codex sends its questions to us; a configuration could send them to an agent of its own."""
# How much each sandbox allows. An unknown one counts as no sandbox at all.
_REACH: Final = {"readOnly": 0, "workspaceWrite": 1, "dangerFullAccess": 2}
_TYPES: Final = {
    READ_ONLY: "readOnly",
    WORKSPACE_WRITE: "workspaceWrite",
    FULL_ACCESS: "dangerFullAccess",
}
_ALL: Final = 9


class SandboxBounds(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a confined run's commands."""

    directories: tuple[str, ...] = ()
    """Directories, beside the working directory, in which commands may write."""
    network: bool = False
    temporary: bool = True
    """Whether commands may write in /tmp and TMPDIR."""
    scratch: str | None = None
    """A TMPDIR of their own instead; one of `directories`."""


class SandboxPolicy(msgspec.Struct, frozen=True):
    """When Codex asks for approval, and what commands may do without it."""

    approval: str
    sandbox: str

    @property
    def is_confined(self) -> bool:
        """Whether commands may write, but only in certain directories."""
        return self.sandbox == WORKSPACE_WRITE

    @property
    def shares_temporary(self) -> bool:
        """Whether commands may write in the shared /tmp and TMPDIR, as is Codex's default.

        That is more than the session's directories, so it is not allowed in a mode without
        questions.
        """
        return self.approval != "never"

    @property
    def mode_name(self) -> str:
        """The approval policy and the sandbox as one word."""
        return f"{self.approval}, {self.sandbox}"

    def sandbox_policy(self, bounds: SandboxBounds) -> dict[str, Json]:
        """Return the sandbox as the app-server's parameter."""
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


def is_as_requested(
    requested: SandboxPolicy, wanted: dict[str, Json], found: ThreadSettings
) -> bool:
    """Whether the settings in force are exactly those requested."""
    sandbox = _sandbox(found)
    same = all(sandbox.get(name) == value for name, value in wanted.items())
    return same and found.approval_policy == requested.approval


def too_wide_failure(
    requested: SandboxPolicy, wanted: dict[str, Json], found: ThreadSettings
) -> Failure | None:
    """Return the failure if the settings in force allow more than those requested."""
    sandbox = _sandbox(found)
    fits_in = (
        found.approval_policy == requested.approval
        and found.approvals_reviewer == REVIEWER
        and _is_sandbox_within(wanted, sandbox)
    )
    if fits_in:
        return None
    return Failure(
        kind=FailureKind.PERMISSION_REFUSED,
        message=f"requested {requested.mode_name!r}, but {found.approval_policy!r} with "
        f"{sandbox!r} is in force (reviewer: {found.approvals_reviewer!r})",
        phase="start",
    )


def _sandbox(found: ThreadSettings) -> dict[str, Json]:
    return found.sandbox_policy if isinstance(found.sandbox_policy, dict) else {}


def _is_sandbox_within(wanted: dict[str, Json], found: dict[str, Json]) -> bool:
    """Whether a sandbox allows nothing that the wanted one does not."""
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
