"""Map from our permission modes to a provider's modes, and how exactly they match."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from sessionmgr.adapter.errors import PermissionRefused
from sessionmgr.model import Fidelity, Permission, PermissionMode

if TYPE_CHECKING:
    from collections.abc import Mapping


class MappedMode(msgspec.Struct, frozen=True):
    """The provider's name for a mode, and how exactly it matches ours."""

    effective: str
    fidelity: Fidelity = Fidelity.EXACT
    confined: bool | None = None


class PermissionMap:
    """Map of the modes that a provider has. It refuses all others, and never widens a mode."""

    def __init__(self, modes: Mapping[PermissionMode, MappedMode]) -> None:
        self.modes = {mode: to for mode, to in modes.items() if to.fidelity is not Fidelity.REFUSED}

    def ask(self, provider: str, mode: PermissionMode) -> Permission:
        """Return the provider's mode for `mode`.

        Raises:
            PermissionRefused: The provider has no mode for it.
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


# For a provider that does nothing that could be denied: every mode is exact.
HARMLESS = PermissionMap({mode: MappedMode(mode.value) for mode in PermissionMode})
