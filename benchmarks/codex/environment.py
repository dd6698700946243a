"""The environment of Codex contestants."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks import agent_setup
from benchmarks.agent_setup import AgentSetup

CONFIGURATION: Final = """\
model = "gpt-5.5"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0
[features]
plugins = false
apps = false
[analytics]
enabled = false
"""


@contextmanager
def codex_setup() -> Generator[AgentSetup]:
    """Serve a model, and create a home whose configuration names it."""
    with agent_setup.set_up_agent("codex", _environment) as setup:
        yield setup


def _environment(root: Path, url: str) -> dict[str, str]:
    home = root / "codex"
    home.mkdir()
    (home / "config.toml").write_text(CONFIGURATION.format(url=url))
    return {"CODEX_HOME": str(home), "SCRIPTED_KEY": "sk-scripted"}
