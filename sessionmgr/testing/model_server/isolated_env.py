"""The isolated environment of an agent: homes and settings of its own, and one reachable server.

Nothing is inherited. The model server is the agent's proxy as well, and refuses to forward; its log
lists the hosts to which the agent tried to connect, under `strangers`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY: Final = "sk-scripted"
"""The API key of agents, which the server does not check."""

CODEX_MODEL: Final = "gpt-5.5"
"""Codex chooses the tools to offer by the model's name; for this model, the classic ones."""

_CODEX_CONFIG: Final = """\
model = "{model}"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "CODEX_MODEL_KEY"
requires_openai_auth = false
supports_websockets = false
request_max_retries = {retries}
stream_max_retries = {retries}

[analytics]
enabled = false

[features]
plugins = false
apps = false
unbounded_connection_retries = false
"""


class IsolatedEnvironment(msgspec.Struct, frozen=True):
    """A directory with everything that an agent may use, and the address of its server."""

    root: Path
    url: str
    path: str = os.defpath
    """PATH for the agent's tools."""

    @property
    def work(self) -> Path:
        """The working directory."""
        return self.root / "work"

    @property
    def home(self) -> Path:
        """The user's home."""
        return self.root / "home"

    def claude(self, *, retries: int = 1) -> dict[str, str]:
        """Return the environment of a Claude Code that retries a request so many times."""
        config = self.home / ".claude"
        config.mkdir(parents=True, exist_ok=True)
        return {
            **self._environment(),
            "CLAUDE_CONFIG_DIR": str(config),
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_MAX_RETRIES": str(retries),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def codex(
        self, *, retries: int = 0, model: str = CODEX_MODEL, more: str = ""
    ) -> dict[str, str]:
        """Return the environment of a Codex, and write its settings; `more` is TOML to add."""
        config = self.root / "codex"
        config.mkdir(parents=True, exist_ok=True)
        text = _CODEX_CONFIG.format(model=model, url=self.url, retries=retries)
        (config / "config.toml").write_text(text + more, encoding="utf-8")
        return {**self._environment(), "CODEX_HOME": str(config), "CODEX_MODEL_KEY": KEY}

    def _environment(self) -> Mapping[str, str]:
        # Codex requires a home outside of TMPDIR, and an existing TMPDIR.
        scratch = self.root / "tmp"
        for directory in (self.home, self.work, scratch):
            directory.mkdir(parents=True, exist_ok=True)
        proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        return {
            "HOME": str(self.home),
            "TMPDIR": str(scratch),
            "PATH": self.path,
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            **{name: self.url for upper in proxies for name in (upper, upper.lower())},
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
