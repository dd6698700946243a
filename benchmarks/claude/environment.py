"""The environment of Claude Code contestants."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import agent_setup
from benchmarks.agent_setup import AgentSetup


@contextmanager
def claude_setup() -> Generator[AgentSetup]:
    """Serve a model, and create an empty home."""
    with agent_setup.set_up_agent("claude", _environment) as setup:
        yield setup


def _environment(root: Path, url: str) -> dict[str, str]:
    (root / "home" / ".claude").mkdir()
    return {
        "CLAUDE_CONFIG_DIR": str(root / "home" / ".claude"),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-scripted",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }
