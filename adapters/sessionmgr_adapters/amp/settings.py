"""Settings of Amp for a run: the user's, with those of the run, and what a project may change.

Amp reads the user's file (`--settings-file` names another) and the project's `.amp/settings.json`.
A project's value replaces the user's, and its permission rules come before all others.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from sessionmgr.adapter.kit import FileRefusedError, read_optional_file
from sessionmgr.model import Json, UnreadableJson, encode_json, parse_json
from sessionmgr_adapters.amp.options import AmpOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.adapter import RunContext, RunSpec

BYPASS: Final = "dangerously-allow-all"
BY_SETTINGS: Final = "settings"
_NAMES: Final = ("settings.json", "settings.jsonc")
_RULES: Final = "amp.permissions"
_ALLOW_ALL: Final = "amp.dangerouslyAllowAll"
_GUARDED: Final = "amp.guardedFiles.allowlist"
_ENABLED: Final = "amp.tools.enable"
_DISABLED: Final = "amp.tools.disable"
_STRING: Final = r'"(?:\\.|[^"\\])*"'
_COMMENT: Final = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMA: Final = re.compile(rf"({_STRING})|,(?=\s*[}}\]])")


class _PermissionRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tool: Annotated[str, msgspec.Meta(min_length=1)]
    action: Literal["allow", "reject", "ask", "delegate"]
    matches: dict[str, Json] | None = None
    context: Literal["thread", "subagent"] | None = None
    to: Annotated[str, msgspec.Meta(min_length=1)] | None = None


def read_settings(path: Path) -> dict[str, Json] | None:
    """Return the settings in a file, which may have comments; None if there is no such file.

    Raises:
        FileRefusedError: The file is unreadable or does not contain a JSON object.
    """
    data = read_optional_file(path)
    if data is None:
        return None
    text = data.decode(errors="replace")
    for pattern in (_COMMENT, _COMMA):
        text = pattern.sub(lambda found: found[1] or "", text)
    found = parse_json(text.encode()) if text.strip() else {}
    if isinstance(found, UnreadableJson) or not isinstance(found, dict):
        raise FileRefusedError(f"{path} is not a JSON object")
    return found


def user_settings(run: RunContext | RunSpec) -> dict[str, Json]:
    """Return the settings of the user, or those of the file that the options name.

    Raises:
        FileRefusedError: The file is unreadable, or the one of the options does not exist.
    """
    options = AmpOptions.of(run.options)
    if options.settings_file is not None:
        path = Path(run.cwd, options.settings_file)
        found = read_settings(path)
        if found is None:
            raise FileRefusedError(f"{path} does not exist")
        return found
    for path in _user_files(run.cwd, run.env):
        found = read_settings(path)
        if found is not None:
            return found
    return {}


def _user_files(cwd: str, env: Mapping[str, str]) -> list[Path]:
    if env.get("AMP_SETTINGS_FILE"):
        return [Path(cwd, env["AMP_SETTINGS_FILE"])]
    home = env.get("XDG_CONFIG_HOME") or Path(env.get("HOME", "/"), ".config")
    return [Path(home, "amp", name) for name in _NAMES]


def run_settings(run: RunContext) -> str | None:
    """Return the settings file of a run as text: the user's, with the run's rules and tools.

    Without rules and tools it returns None, and the user's own file serves.

    Raises:
        FileRefusedError: The user's file cannot be read.
    """
    options = AmpOptions.of(run.options)
    if not (options.permissions or run.tools_denied or run.tools_allowed is not None):
        return None
    settings = user_settings(run)
    if options.permissions:
        settings[_RULES] = [*options.permissions, *_listed(settings.get(_RULES))]
        settings[_ALLOW_ALL] = False  # otherwise Amp would not apply them
    if run.tools_denied:
        settings[_DISABLED] = [*_listed(settings.get(_DISABLED)), *run.tools_denied]
    if run.tools_allowed is not None:
        settings[_ENABLED] = list(run.tools_allowed)
    return encode_json(settings).decode()


def settings_fault(run: RunContext | RunSpec) -> str | None:
    """Return why a run cannot have these settings, as `field: reason`."""
    options = AmpOptions.of(run.options)
    is_bypassed = run.permission.effective == BYPASS
    if is_bypassed and options.permissions:
        mode = run.permission.asked
        return f"options.permissions: Amp applies no rules in mode {mode}; use the mode default"
    for rule in options.permissions:
        fault = _rule_fault(rule)
        if fault is not None:
            return f"options.permissions: {encode_json(rule).decode()}: {fault}"
    if run.tools_allowed == ():
        return "tools_allowed: the list is empty; Amp would then allow all tools: name at least one"
    try:
        settings = user_settings(run)
        if options.trust_project:
            return None
        return _project_fault(run, settings, is_bypassed=is_bypassed)
    except FileRefusedError as error:
        field = "settings" if options.settings_file is None else "options.settings_file"
        return f"{field}: {error}; correct it, or name another file in the option settings_file"


def _project_fault(
    run: RunContext | RunSpec, settings: dict[str, Json], *, is_bypassed: bool
) -> str | None:
    """Return why the settings of a project would widen those of the user or the run."""
    path, project = _project_settings(Path(run.cwd))
    has_rules = settings.get(_RULES) is not None or AmpOptions.of(run.options).permissions
    is_restricted = has_rules or settings.get(_ALLOW_ALL) is False or _GUARDED in settings
    widening: list[str] = []
    if is_restricted and not is_bypassed:
        rules = _listed(project.get(_RULES))
        widening += [_ALLOW_ALL] if project.get(_ALLOW_ALL, False) is not False else []
        widening += [_GUARDED] if project.get(_GUARDED) else []
        widening += [] if all(map(_is_restriction, rules)) else [_RULES]
    if run.tools_allowed is not None and _ENABLED in project:
        widening.append(_ENABLED)
    if not widening:
        return None
    return (
        f"cwd: {path} sets {', '.join(widening)}, which would allow more than your own settings; "
        "set the option trust_project to accept this"
    )


def _project_settings(cwd: Path) -> tuple[Path, dict[str, Json]]:
    """Return the nearest settings of a project, from the directory up to its repository's root."""
    places = [cwd.resolve(), *cwd.resolve().parents]
    root = next((n for n, place in enumerate(places) if (place / ".git").exists()), 0)
    for path in (place / ".amp" / name for place in places[: root + 1] for name in _NAMES):
        found = read_settings(path)
        if found is not None:
            return path, found
    return cwd, {}


def _rule_fault(given: dict[str, Json]) -> str | None:
    """Return why a permission rule is invalid; Amp would not report it."""
    try:
        rule = msgspec.convert(given, _PermissionRule)
    except msgspec.ValidationError as error:
        return str(error)
    if (rule.action == "delegate") != (rule.to is not None):
        return 'the action "delegate", and no other, needs the field "to"'
    return None


def _is_restriction(rule: Json) -> bool:
    return isinstance(rule, dict) and rule.get("action") in ("ask", "reject")


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [] if value is None else [value]
