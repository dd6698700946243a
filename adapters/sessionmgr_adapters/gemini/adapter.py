"""The Gemini adapter: runs go over ACP or, with `options.headless`, without a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.adapter.kit import DelegatingAdapter, combined_capabilities
from sessionmgr_adapters.gemini.headless import GeminiHeadlessAdapter
from sessionmgr_adapters.gemini.options import GeminiOptions
from sessionmgr_adapters.gemini.over_acp import GeminiOverAcp

if TYPE_CHECKING:
    from sessionmgr.adapter import Options, ProviderAdapter


class GeminiAdapter(DelegatingAdapter):
    """The provider adapter for Gemini CLI; `GeminiOptions` are its options."""

    name = "gemini"
    display_name = "Gemini CLI"
    delegates = (GeminiOverAcp, GeminiHeadlessAdapter)
    capabilities = combined_capabilities(*delegates)
    permissions = GeminiOverAcp.permissions
    options = GeminiOptions
    serves = GeminiOverAcp.serves | GeminiHeadlessAdapter.serves
    resume_command = GeminiHeadlessAdapter.resume_command
    environment = GeminiHeadlessAdapter.environment

    @classmethod
    def delegate(cls, options: Options) -> type[ProviderAdapter]:
        """Return the adapter of a run with these options."""
        return GeminiHeadlessAdapter if GeminiOptions.of(options).headless else GeminiOverAcp
