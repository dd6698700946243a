"""The agents that speak the Agent Client Protocol: their commands and isolated environments."""

from pathlib import Path
from typing import Final

import msgspec

from sessionmgr.testing.model_server import IsolatedEnvironment
from tests.real.agent_programs import ACP, program_of

FLAGS: Final = {
    "gemini": ("--acp",),
    "opencode": ("acp",),
    "goose": ("acp",),
    "kimi-code": ("acp",),
    "kimi-cli": ("acp",),
    "claude-agent-acp": (),
    "codex-acp": (),
    "copilot": ("--acp",),
}
"""The arguments with which each speaks the protocol on its pipes."""


class InstalledAcpAgent(msgspec.Struct, frozen=True):
    """An agent that is installed."""

    id: str
    version: str
    program: Path

    @property
    def command(self) -> list[str]:
        """The command line that starts it."""
        return [str(self.program), *FLAGS[self.id]]

    def environment(self, isolated: IsolatedEnvironment) -> dict[str, str]:
        """Return its environment, and write its settings."""
        method = getattr(isolated, self.id.replace("-", "_"))
        environment: dict[str, str] = method()
        return environment


def installed_agent(name: str) -> InstalledAcpAgent:
    """Return an agent; without its program the test is skipped, or fails in CI."""
    return InstalledAcpAgent(name, ACP[name], program_of(name, ACP[name]))
