"""What a provider makes of our permission modes, and how well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from sessionmgr.adapter.errors import PermissionRefused
from sessionmgr.model import Fidelity, Permission, PermissionMode

if TYPE_CHECKING:
    from collections.abc import Mapping


class MappedMode(msgspec.Struct, frozen=True):
    """The provider's own word for a mode, and how well it does what ours says."""

    effective: str
    fidelity: Fidelity = Fidelity.EXACT
    confined: bool | None = None


class PermissionMap:
    """The modes that a provider has. What it does not name, it refuses; nothing is ever widened."""

    def __init__(self, modes: Mapping[PermissionMode, MappedMode]) -> None:
        self.modes = {mode: to for mode, to in modes.items() if to.fidelity is not Fidelity.REFUSED}

    def ask(self, provider: str, mode: PermissionMode) -> Permission:
        """Return what the provider will be told for `mode`.

        Raises:
            PermissionRefused: It has nothing that would do.
        """
        mapped = self.modes.get(mode)
        if mapped is None:
            raise PermissionRefused(provider, mode, list(self.modes))
        return Permission(
            asked=mode,
            effective=mapped.effective,
            fidelity=mapped.fidelity,
            confined=mapped.confined,
        )


# For a provider that does nothing it could be denied: every mode is what it does anyway.
HARMLESS = PermissionMap({mode: MappedMode(mode.value) for mode in PermissionMode})
