"""The Kimi adapter: runs use the wire of kimi-cli or, with `options.code`, kimi-code over ACP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.adapter.kit import DelegatingAdapter, combined_capabilities
from sessionmgr.process import EnvironmentSpec
from sessionmgr_adapters.kimi.code_adapter import KimiCodeAdapter
from sessionmgr_adapters.kimi.options import KimiOptions
from sessionmgr_adapters.kimi.wire_adapter import KimiWireAdapter

if TYPE_CHECKING:
    from sessionmgr.adapter import Options, ProviderAdapter


class KimiAdapter(DelegatingAdapter):
    """The provider adapter for Kimi; `KimiOptions` are its options."""

    name = "kimi"
    display_name = "Kimi"
    delegates = (KimiWireAdapter, KimiCodeAdapter)
    capabilities = combined_capabilities(*delegates)
    permissions = KimiWireAdapter.permissions
    options = KimiOptions
    serves = KimiWireAdapter.serves | KimiCodeAdapter.serves
    resume_command = KimiWireAdapter.resume_command
    environment = EnvironmentSpec(
        names=(*KimiWireAdapter.environment.names, *KimiCodeAdapter.environment.names)
    )

    @classmethod
    def delegate(cls, options: Options) -> type[ProviderAdapter]:
        """Return the adapter of a run with these options."""
        return KimiCodeAdapter if KimiOptions.of(options).code else KimiWireAdapter
