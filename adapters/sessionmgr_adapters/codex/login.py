"""Detect from Codex's environment and files whether it has a login, without starting it.

Measured with 0.169.0: an app-server uses auth.json or a configured model provider, and neither
OPENAI_API_KEY nor CODEX_API_KEY; `codex exec` uses CODEX_API_KEY as well. An answer never contains
the value of a key or token.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import Health
from sessionmgr.adapter.kit import (
    FileRefusedError,
    missing_program_reason,
    read_json_object,
    read_optional_file,
)
from sessionmgr.model import Json
from sessionmgr_adapters.codex.config import (
    CONFIG_FILE,
    PROJECT,
    SYSTEM_CONFIG_DIR,
    merge_overrides,
    value_at_path,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr_adapters.codex.options import CodexOptions

PROGRAM: Final = "codex"
INSTALL: Final = "install Codex (npm install -g @openai/codex), or set command in [options.codex]"
LOG_IN: Final = (
    "run `codex login` (with a key: printenv OPENAI_API_KEY | codex login --with-api-key), or "
    "configure a model_provider with an env_key"
)
OPENAI: Final = "openai"


def codex_health(options: CodexOptions, env: Mapping[str, str], cwd: str) -> Health:
    """Report whether Codex is installed and logged in, judging by files and variables."""
    missing = missing_program_reason(options.command, env, cwd, INSTALL)
    if missing is not None:
        return missing
    if Path(options.command[0]).name != PROGRAM:
        return Health(detail=f"{options.command[0]} is installed; its login is unknown")
    named = options.home or env.get("CODEX_HOME")
    if not named and not env.get("HOME"):
        return _unknown("HOME is not set")
    home = Path(cwd, named) if named else Path(env["HOME"], ".codex")
    try:
        return _health(options, env, Path(cwd), home)
    except FileRefusedError as error:
        return _unknown(str(error))


def _health(options: CodexOptions, env: Mapping[str, str], cwd: Path, home: Path) -> Health:
    config = merge_overrides(
        _toml(SYSTEM_CONFIG_DIR / CONFIG_FILE),
        _toml(home / CONFIG_FILE),
        {} if options.model_provider is None else {"model_provider": options.model_provider},
        options.config,
    )
    profile = config.get("profile")
    if options.model_provider is None and isinstance(profile, str):
        inner = value_at_path(config, "profiles", profile)
        config = merge_overrides(config, inner if isinstance(inner, dict) else {})
    for directory in (cwd, *cwd.parents):
        own = directory / PROJECT
        if own != home and _toml(own / CONFIG_FILE).keys() & {"model_provider", "model_providers"}:
            return _unknown(f"{own / CONFIG_FILE} may name another model provider")
    name = config.get("model_provider", OPENAI)
    if name != OPENAI:
        provider = value_at_path(config, "model_providers", str(name))
        if not isinstance(provider, dict):
            return _unknown(
                f"the model provider {name!r} is not configured in {home / CONFIG_FILE}"
            )
        if provider.get("requires_openai_auth") is not True:
            return _provider_login(str(name), provider, env)
    elif config.get("openai_base_url") or env.get("OPENAI_BASE_URL"):
        return _unknown("requests go to another address than OpenAI's")
    return _openai_login(options, env, config, home)


def _provider_login(name: str, provider: dict[str, Json], env: Mapping[str, str]) -> Health:
    key = provider.get("env_key")
    if not isinstance(key, str):
        return Health(detail=f"Codex is installed; the model provider {name!r} needs no login")
    if env.get(key, "").strip():
        return Health(detail=f"Codex is installed and has a login: {key} is set (for {name!r})")
    why = f"{key} is not set, and the model provider {name!r} takes its key from it"
    return Health(state="fail", detail=f"{why}; set {key}")


def _openai_login(
    options: CodexOptions, env: Mapping[str, str], config: dict[str, Json], home: Path
) -> Health:
    if options.exec and env.get("CODEX_API_KEY", "").strip():
        return Health(detail="Codex is installed and has a login: CODEX_API_KEY is set")
    if env.get("CODEX_ACCESS_TOKEN"):
        return _unknown("CODEX_ACCESS_TOKEN is set")
    store = config.get("cli_auth_credentials_store", "file")
    if store != "file":
        return _unknown(f"a login may be in the keyring (cli_auth_credentials_store = {store!r})")
    auth = home / "auth.json"
    found = read_json_object(auth)
    if found.get("OPENAI_API_KEY") or _has_token(found.get("tokens")):
        return Health(detail=f"Codex is installed and has a login: {auth}")
    if any(found.values()):
        return _unknown(f"{auth} contains neither a key nor tokens")
    note = " (Codex does not use OPENAI_API_KEY)" if env.get("OPENAI_API_KEY") else ""
    return Health(state="fail", detail=f"Codex is not logged in{note}; {LOG_IN}")


def _has_token(tokens: Json) -> bool:
    return isinstance(tokens, dict) and any(tokens.values())


def _unknown(why: str) -> Health:
    return Health(detail=f"Codex is installed; its login is unknown: {why}")


def _toml(path: Path) -> dict[str, Json]:
    data = read_optional_file(path)
    try:
        return {} if data is None else tomllib.loads(data.decode())
    except (ValueError, RecursionError):
        raise FileRefusedError(f"{path} is not TOML") from None
