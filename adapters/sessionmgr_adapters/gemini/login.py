"""Detect from Gemini's environment and files whether it has a login, without starting it.

An answer never contains the value of a key or token.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import Health
from sessionmgr.adapter.kit import FileRefusedError, missing_program_reason, read_json_object
from sessionmgr_adapters.gemini.headless.launch import gemini_environment, gemini_home

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.model import Json
    from sessionmgr_adapters.gemini.options import GeminiOptions

PROGRAM: Final = "gemini"
INSTALL: Final = (
    "install Gemini CLI (npm install -g @google/gemini-cli), or set command in [options.gemini]"
)
LOG_IN: Final = "start `gemini` once and choose a login, or set GEMINI_API_KEY"
API_KEY: Final = "gemini-api-key"
VERTEX: Final = "vertex-ai"
GOOGLE: Final = "oauth-personal"
_VERTEX_KEYS: Final = ("GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT")
_SWITCHES: Final = (
    ("GOOGLE_GENAI_USE_GCA", GOOGLE),
    ("GOOGLE_GENAI_USE_VERTEXAI", VERTEX),
)


def gemini_health(options: GeminiOptions, env: Mapping[str, str], cwd: str) -> Health:
    """Report whether Gemini is installed and logged in, judging by files and variables."""
    missing = missing_program_reason(options.command, env, cwd, INSTALL)
    if missing is not None:
        return missing
    if Path(options.command[0]).name != PROGRAM:
        return Health(detail=f"{options.command[0]} is installed; its login is unknown")
    env = gemini_environment(env, options, cwd)
    home = gemini_home(env)
    if home is None:
        return _unknown("HOME is not set")
    try:
        return _login(env, home, Path(cwd))
    except FileRefusedError as error:
        return _unknown(str(error))


def _login(env: Mapping[str, str], home: Path, cwd: Path) -> Health:
    chosen = _chosen_method(read_json_object(home / "settings.json")) or _method_of(env)
    files = [each / ".env" for each in (cwd, *cwd.parents, home)]
    dotted = next((each for each in files if each.is_file()), None)
    if chosen == GOOGLE:
        tokens = home / "oauth_creds.json"
        if read_json_object(tokens):
            return Health(detail=f"Gemini CLI is installed and has a login: {tokens}")
        return _unknown("a login with Google may be in the keyring")
    names = _VERTEX_KEYS if chosen == VERTEX else ("GEMINI_API_KEY",)
    found = next((each for each in names if env.get(each, "").strip()), None)
    if chosen in (API_KEY, VERTEX) and found is not None:
        return Health(detail=f"Gemini CLI is installed and has a login: {found} is set")
    if dotted is not None:
        return _unknown(f"{dotted} may contain a key")
    if chosen == API_KEY:
        return _unknown("GEMINI_API_KEY is not set; a key may be in the keyring")
    if chosen is None:
        return Health(state="fail", detail=f"Gemini CLI is not logged in; {LOG_IN}")
    return _unknown(f"its login method is {chosen!r}")


def _chosen_method(settings: Mapping[str, Json]) -> str | None:
    match settings:
        case {"security": {"auth": {"selectedType": str(chosen)}}}:
            return chosen
        case _:
            return None


def _method_of(env: Mapping[str, str]) -> str | None:
    for switch, method in _SWITCHES:
        if env.get(switch) == "true":
            return method
    return API_KEY if env.get("GEMINI_API_KEY", "").strip() else None


def _unknown(why: str) -> Health:
    return Health(detail=f"Gemini CLI is installed; its login is unknown: {why}")
