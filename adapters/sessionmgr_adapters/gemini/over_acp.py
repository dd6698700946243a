"""Gemini CLI over ACP: the options of its runs in the terms of that adapter."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sessionmgr_adapters.acp import AcpAdapter, AcpOptions, AgentChoice, quirks_of
from sessionmgr_adapters.gemini.login import gemini_health
from sessionmgr_adapters.gemini.options import GeminiOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.adapter import Health, Options, RunContext, RunSpec

_QUIRKS: Final = quirks_of("gemini")
_COMMAND: Final = re.compile(r"\s*[/$]\s*[\w-]+(\s|$)")
"""A prompt that Gemini may execute itself, such as `/memory show`."""


class GeminiOverAcp(AcpAdapter):
    """The adapter of runs without `options.headless`."""

    name = "gemini"
    display_name = "Gemini over ACP"
    agent = AgentChoice(id="gemini")
    capabilities = _QUIRKS.capabilities
    permissions = _QUIRKS.permissions
    options = GeminiOptions
    environment = _QUIRKS.environment
    resume_command = _QUIRKS.resume_command
    narrows = False

    @classmethod
    def acp_options(cls, options: Options) -> AcpOptions:
        """Return a run's options in the terms of ACP."""
        given = GeminiOptions.of(options)
        return AcpOptions(
            command=(*given.command, "--acp"),
            home=given.home,
            auth=given.auth,
            mcp_servers=given.mcp_servers,
        )

    @classmethod
    def _fault(cls, run: RunContext | RunSpec) -> str | None:
        options = GeminiOptions.of(run.options)
        if options.output != "stream-json":
            return f"options.output: {options.output!r} needs options.headless = true"
        if not options.slash_commands and _COMMAND.match(run.prompt):
            word = run.prompt.split()[0]
            return (
                f"prompt: Gemini would execute {word!r} as a command of its own; begin with other "
                "text, or set options.slash_commands"
            )
        return super()._fault(run)

    @classmethod
    def readiness(cls, options: Options, env: Mapping[str, str], cwd: str) -> Health:
        """Report whether Gemini is installed and logged in."""
        return gemini_health(GeminiOptions.of(options), env, cwd)
