"""The agents' programs, installed by `.ci/agents`."""

import os
from pathlib import Path

import pytest

CLAUDE = ("2.1.327", "2.1.197")
CODEX = ("0.169.0", "0.163.0")
ACP = {
    "gemini": "0.61.0",
    "opencode": "1.18.33",
    "goose": "1.50.0",
    "kimi-code": "2.1.0",
    "kimi-cli": "1.50.0",
    "claude-agent-acp": "0.100.0",
    "codex-acp": "2.6.0",
    "copilot": "1.0.102",
}
"""The agents that speak the Agent Client Protocol, and their versions."""

ACP_SDK = "2.4.0"
"""The protocol's own library for TypeScript."""
ACP_PYTHON = "0.12.1"
"""The protocol's own library for Python."""


def place() -> Path:
    """Return the directory of the programs, the same as in `.ci/agents`."""
    if given := os.environ.get("SESSIONMGR_AGENTS"):
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "sessionmgr" / "agents"


def program_of(name: str, version: str) -> Path:
    """Return an agent's program; without it the test is skipped, or fails in CI."""
    program = place() / f"{name}-{version}" / "bin" / name
    if not program.exists():
        reason = f"{name} {version} is not in {place()}: .ci/agents installs it"
        if os.environ.get("SESSIONMGR_AGENTS_REQUIRED", "") not in ("", "0"):
            pytest.fail(reason)
        pytest.skip(reason)
    return program
