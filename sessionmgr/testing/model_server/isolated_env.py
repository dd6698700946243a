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

MODEL: Final = "scripted"
"""The model of agents that accept any name."""

GEMINI_MODEL: Final = "gemini-2.5-flash"
"""Gemini refuses names that are not a model of its maker."""

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

_GEMINI_GENERAL: Final = {"enableAutoUpdate": False, "enableAutoUpdateNotification": False}
_GEMINI_SETTINGS: Final = {
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "security": {
        "auth": {"selectedType": "gemini-api-key"},
        "folderTrust": {"enabled": False},
    },
    "tools": {"sandbox": False},
    "model": {"name": GEMINI_MODEL},
}

_KIMI_CONFIG: Final = """\
default_model = "scripted"
telemetry = false

[models.scripted]
provider = "scripted"
model = "{model}"
max_context_size = 100000
capabilities = ["image_in", "thinking"]

[providers.scripted]
type = "openai_legacy"
base_url = "{url}/v1"
api_key = "{key}"
"""

_KIMI_TOKEN: Final = {
    "access_token": KEY,
    "refresh_token": "",
    "expires_at": 0,
    "scope": "",
    "token_type": "Bearer",
    "expires_in": 0,
}
"""It wants a login even where the configured provider needs none, but does not check it."""

_OPENCODE_MODEL: Final = {
    "tool_call": True,
    "attachment": True,
    "reasoning": True,
    "modalities": {"input": ["text", "image"], "output": ["text"]},
    "limit": {"context": 100000, "output": 8000},
    "cost": {"input": 1, "output": 2},
}

_OPENCODE_ASKS: Final = {"edit": "ask", "bash": "ask", "webfetch": "ask"}
"""Without it, opencode asks for nothing inside of its working directory."""

_OPENCODE_PLUGIN: Final = "@opencode-ai/plugin"
"""It fetches this package from npm unless the lock file beside its settings has it."""


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

    def claude_agent_acp(self, *, retries: int = 1) -> dict[str, str]:
        """Return the environment of the Claude Code that speaks the Agent Client Protocol."""
        return self.claude(retries=retries)

    def codex_acp(self, *, retries: int = 0) -> dict[str, str]:
        """Return the environment of the Codex that speaks it, and write its settings."""
        return self.codex(retries=retries)

    def gemini(self, *, retries: int = 1) -> dict[str, str]:
        """Return the environment of a Gemini CLI that retries a request so many times."""
        environment = self._environment()
        settings = {**_GEMINI_SETTINGS, "general": {**_GEMINI_GENERAL, "maxAttempts": retries + 1}}
        _write_json(self.home / ".gemini" / "settings.json", settings)
        return {
            **environment,
            "GEMINI_CLI_HOME": str(self.home),
            "GEMINI_API_KEY": KEY,
            "GEMINI_CLI_NO_RELAUNCH": "1",
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "TERM": "xterm-256color",
        }

    def opencode(self, *, permission: Mapping[str, str] | None = _OPENCODE_ASKS) -> dict[str, str]:
        """Return the environment of an opencode with these permissions, or with its own."""
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{self.url}/v1", "apiKey": KEY},
            "models": {MODEL: _OPENCODE_MODEL},
        }
        config: dict[str, object] = {
            "provider": {"scripted": provider},
            "model": f"scripted/{MODEL}",
            "small_model": f"scripted/{MODEL}",
            "autoupdate": False,
            "share": "disabled",
            "enabled_providers": ["scripted"],
        }
        if permission is not None:
            config["permission"] = dict(permission)
        settings = self.root / "xdg" / "config" / "opencode"
        (settings / "node_modules").mkdir(parents=True, exist_ok=True)
        lock = {"packages": {"": {"dependencies": {_OPENCODE_PLUGIN: "*"}}}}
        _write_json(settings / "package-lock.json", lock)
        switches = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
        return {
            **self._environment(),
            **self._directories_of_its_own(),
            "OPENCODE_CONFIG_CONTENT": msgspec.json.encode(config).decode(),
            **{f"OPENCODE_DISABLE_{switch}": "1" for switch in switches},
        }

    def goose(self, *, mode: str | None = None) -> dict[str, str]:
        """Return the environment of a goose in this mode, or in its own."""
        return {
            **self._environment(),
            **self._directories_of_its_own(),
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": MODEL,
            "GOOSE_DISABLE_KEYRING": "1",
            "OPENAI_HOST": self.url,
            "OPENAI_API_KEY": KEY,
            **({} if mode is None else {"GOOSE_MODE": mode}),
        }

    def kimi_code(self) -> dict[str, str]:
        """Return the environment of a Kimi Code."""
        return {
            **self._environment(),
            "KIMI_CODE_HOME": str(self.home / ".kimi-code"),
            "KIMI_MODEL_NAME": MODEL,
            "KIMI_MODEL_API_KEY": KEY,
            "KIMI_MODEL_PROVIDER_TYPE": "openai",
            "KIMI_MODEL_BASE_URL": f"{self.url}/v1",
            "KIMI_MODEL_MAX_CONTEXT_SIZE": "100000",
            "KIMI_DISABLE_TELEMETRY": "1",
            "KIMI_CODE_NO_AUTO_UPDATE": "1",
        }

    def kimi_cli(self) -> dict[str, str]:
        """Return the environment of a Kimi CLI, and write its settings and a login."""
        share = self.home / ".kimi"
        environment = self._environment()
        _write_json(share / "credentials" / "kimi-code.json", _KIMI_TOKEN)
        text = _KIMI_CONFIG.format(model=MODEL, url=self.url, key=KEY)
        (share / "config.toml").write_text(text, encoding="utf-8")
        return {**environment, "KIMI_SHARE_DIR": str(share), "KIMI_CLI_NO_AUTO_UPDATE": "1"}

    def copilot(self) -> dict[str, str]:
        """Return the environment of a Copilot CLI."""
        return {
            **self._environment(),
            "COPILOT_HOME": str(self.home / ".copilot"),
            "COPILOT_MODEL": MODEL,
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_PROVIDER_API_KEY": KEY,
            "COPILOT_PROVIDER_BASE_URL": f"{self.url}/v1",
        }

    def _directories_of_its_own(self) -> Mapping[str, str]:
        return {
            f"XDG_{kind.upper()}_HOME": str(self.root / "xdg" / kind)
            for kind in ("config", "data", "state", "cache")
        }

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


def _write_json(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.encode(content))
