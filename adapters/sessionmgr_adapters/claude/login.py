"""Detection of a login from Claude Code's environment and files, without starting it.

Verified against `claude auth status` of 2.1.327. A result never contains the value of a key or
token.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import Health
from sessionmgr.adapter.kit import FileRefusedError, missing_program_reason, read_json_object
from sessionmgr.model import Json, UnreadableJson, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sessionmgr_adapters.claude.options import ClaudeOptions

PROGRAM: Final = "claude"
INSTALL: Final = (
    "install Claude Code (npm install -g @anthropic-ai/claude-code), or set command in "
    "[options.claude]"
)
LOG_IN: Final = "run `claude` and log in with /login, or set ANTHROPIC_API_KEY"
MANAGED: Final = Path("/etc/claude-code/managed-settings.json")

_KEYS: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_CLOUDS: Final = (
    *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
    *("CLAUDE_CODE_USE_MANTLE", "CLAUDE_CODE_USE_ANTHROPIC_AWS"),
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
)
# Login methods whose outcome only Claude Code itself can determine.
_UNDETECTABLE: Final = (
    *("ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_PROFILE", "ANTHROPIC_IDENTITY_TOKEN"),
    *("ANTHROPIC_IDENTITY_TOKEN_FILE", "CLAUDE_CODE_USE_GATEWAY"),
    *("CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR", "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR"),
)
_ON: Final = frozenset({"1", "true", "yes", "on"})


def claude_health(
    options: ClaudeOptions, env: Mapping[str, str], cwd: str, *, platform: str = sys.platform
) -> Health:
    """Report whether Claude Code is installed and logged in, judging by files and variables."""
    missing = missing_program_reason(options.command, env, cwd, INSTALL)
    if missing is not None:
        return missing
    if Path(options.command[0]).name != PROGRAM:
        return Health(detail=f"{options.command[0]} is there; its login is unknown")
    unknown: list[str] = []
    found = _login(options, env, Path(cwd), unknown)
    if found is not None:
        return Health(detail=f"Claude Code is installed and has a login: {found}")
    if platform == "darwin":
        unknown.append("a login may be in the keychain")
    if unknown:
        return Health(detail=f"Claude Code is installed; its login is unknown: {unknown[0]}")
    return Health(state="fail", detail=f"Claude Code is not logged in; {LOG_IN}")


def _login(
    options: ClaudeOptions, env: Mapping[str, str], cwd: Path, unknown: list[str]
) -> str | None:
    """Return the login that was found; add each source that cannot be read to `unknown`."""
    home = Path(env["HOME"]) if env.get("HOME") else None
    named = options.home or env.get("CLAUDE_CONFIG_DIR")
    directory = cwd / named if named else home / ".claude" if home else None
    settings = list(_settings(options, directory, cwd, unknown))
    variables = dict(env)
    for inner in (each.get("env") for each in settings):
        if isinstance(inner, dict):
            variables |= {name: str(value) for name, value in inner.items()}
    given = {name: variables.get(name, "").strip() for name in (*_CLOUDS, *_KEYS)}
    for name, value in given.items():
        if value and (name in _KEYS or value.lower() in _ON):
            return f"{name} is set"
    if any(each.get("apiKeyHelper") for each in settings):
        return "apiKeyHelper is set"
    unknown += [f"{name} is set" for name in _UNDETECTABLE if variables.get(name)]
    if directory is None or home is None:
        unknown.append("HOME is not set")
        return None
    account = directory if named else home
    return _stored_login(directory / ".credentials.json", account / ".claude.json", unknown)


def _stored_login(credentials: Path, account: Path, unknown: list[str]) -> str | None:
    oauth = _read(credentials, unknown).get("claudeAiOauth")
    if isinstance(oauth, dict) and (oauth.get("accessToken") or oauth.get("refreshToken")):
        return f"{credentials}"
    if _read(account, unknown).get("primaryApiKey"):
        return f"a key in {account}"
    return None


def _settings(
    options: ClaudeOptions, directory: Path | None, cwd: Path, unknown: list[str]
) -> Iterator[dict[str, Json]]:
    """Yield the settings that Claude Code would read, in increasing order of precedence."""
    sources = options.setting_sources
    local = cwd / ".claude"
    files = {
        "user": directory / "settings.json" if directory else None,
        "project": local / "settings.json",
        "local": local / "settings.local.json",
    }
    for source, path in files.items():
        if path is not None and (sources is None or source in sources):
            yield _read(path, unknown)
    if options.settings is not None:
        yield _given(options.settings, cwd, unknown)
    yield _read(MANAGED, unknown)


def _given(settings: str, cwd: Path, unknown: list[str]) -> dict[str, Json]:
    if not settings.lstrip().startswith("{"):
        return _read(cwd / os.path.expanduser(settings), unknown)  # noqa: PTH111  # no user, no error
    found = parse_json(settings)
    return found if isinstance(found, dict) and not isinstance(found, UnreadableJson) else {}


def _read(path: Path, unknown: list[str]) -> dict[str, Json]:
    try:
        return read_json_object(path)
    except FileRefusedError as error:
        unknown.append(str(error))
        return {}
