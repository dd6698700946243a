"""kimi-code over ACP: the options of its runs in the terms of that adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import Health
from sessionmgr_adapters.acp import AcpAdapter, AcpOptions, AgentChoice, quirks_of
from sessionmgr_adapters.kimi.installation import code_fault
from sessionmgr_adapters.kimi.options import KimiOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.adapter import Options, RunContext, RunSpec

_QUIRKS: Final = quirks_of("kimi-code")
_OF_THE_WIRE: Final = KimiOptions()
"""The values that `keep`, `thinking`, `questions` and `tools` have unless they are given."""


class KimiCodeAdapter(AcpAdapter):
    """The adapter of runs with `options.code`."""

    name = "kimi"
    display_name = "kimi-code"
    agent = AgentChoice(id="kimi-code")
    capabilities = _QUIRKS.capabilities
    permissions = _QUIRKS.permissions
    options = KimiOptions
    environment = _QUIRKS.environment
    resume_command = _QUIRKS.resume_command
    narrows = False

    @classmethod
    def acp_options(cls, options: Options) -> AcpOptions:
        """Return a run's options in the terms of ACP."""
        given = KimiOptions.of(options)
        return AcpOptions(
            command=(*given.program, "acp"),
            home=given.home,
            fork=given.fork,
            mcp_servers=given.mcp_servers,
        )

    @classmethod
    def _fault(cls, run: RunContext | RunSpec) -> str | None:
        options = KimiOptions.of(run.options)
        for name in ("keep", "thinking", "questions", "tools"):
            if getattr(options, name) != getattr(_OF_THE_WIRE, name):
                return f"options.{name}: it is one of kimi-cli; leave it out with options.code"
        return code_fault(options.program, run.env, run.cwd) or super()._fault(run)

    @classmethod
    def readiness(cls, options: Options, env: Mapping[str, str], cwd: str) -> Health:
        """Report whether kimi-code is installed; its login is not checked."""
        fault = code_fault(KimiOptions.of(options).program, env, cwd)
        if fault is not None:
            return Health(state="fail", detail=fault)
        return super().readiness(options, env, cwd)
