"""The effective settings, from files, environment variables and flags; later ones take precedence.

The user's own file comes first, then the nearest `sessionmgr.toml` in the working directory or
above it, then `SESSIONMGR_*`, then flags. Tables (`clocks`, `options`, …) are merged key by key.
Defaults of one provider (`sessionmgr.cli.config.provider_defaults`) override the general value of
the same source and of earlier ones.
Of a project's file that the user has not trusted, only settings that narrow are used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import msgspec

from sessionmgr.cli.config import provider_defaults
from sessionmgr.cli.config.paths import (
    default_store,
    find_working_directory,
    settings_above,
    user_settings,
)
from sessionmgr.cli.config.project_settings import (
    CONCURRENCY,
    RETRIES,
    narrow_setting,
    narrowed_default,
    narrowed_for_all,
)
from sessionmgr.cli.config.provider_defaults import ProviderDefault, source_key
from sessionmgr.cli.config.setting_types import KINDS, WORDS, SettingValueError
from sessionmgr.cli.config.settings import SETTINGS, Setting
from sessionmgr.cli.config.settings_file import (
    FoundSetting,
    SettingsFile,
    checked_settings,
    read_settings,
)
from sessionmgr.cli.config.toml_file import line_of
from sessionmgr.cli.config.trusted_files import (
    find_trust_record,
    make_trust_record,
    record_path_key,
    resolve_option_paths,
)
from sessionmgr.cli.config.variant_checks import check_variants
from sessionmgr.cli.errors import CommandLineInvalid, ConfigurationInvalid
from sessionmgr.model import FailureKind, Json, PermissionMode

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from sessionmgr.cli.config.project_settings import NarrowingRefusal

DEFAULT: Final = "default"
PREFIX: Final = "SESSIONMGR_"
_SUFFIXES: Final = [
    each.variable.removeprefix(PREFIX) for each in SETTINGS.values() if each.name != "options"
]


class RefusedSetting(msgspec.Struct, frozen=True, kw_only=True):
    """Refused setting of a project's file: it does more than narrow the user's settings."""

    path: Path
    line: int
    key: tuple[str, ...]
    value: object
    why: str
    changed: str | None = None
    """The file that has changed since the user trusted the settings, if they were trusted."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """All settings; `sources` names the source of each one that is set."""

    store: Path
    log_file: Path | None = None
    capture: Path | None = None
    agents: Path | None = None
    provider: str | None = None
    model: str | None = None
    effort: str | None = None
    permission_mode: PermissionMode | None = None
    tools_allowed: tuple[str, ...] | None = None
    tools_denied: tuple[str, ...] | None = None
    max_turns: int | None = None
    deadline: float | None = None
    budget_usd: float | None = None
    concurrency: int = CONCURRENCY
    per_provider: dict[str, int] = {}
    retries: int = RETRIES
    retry_on: tuple[FailureKind, ...] | None = None
    retry_from: str = "session"
    max_failures: int | None = None
    keep_failed: bool = False
    approve: Path | None = None
    on_denied: Literal["warn", "fail"] = "warn"
    clocks: dict[str, float] = {}
    options: dict[str, dict[str, Json]] = msgspec.field(
        default_factory=dict[str, "dict[str, Json]"]
    )
    defaults: dict[str, dict[str, object]] = {}
    """Defaults of each provider, without its options, which are in `options`."""
    sources: dict[str, str] = {}
    refused: tuple[RefusedSetting, ...] = ()
    """The refused settings of a project's file."""
    trusted: dict[str, str] = {}
    """The files that a trusted project's file names, with their hashes."""

    def is_set(self, name: str) -> bool:
        """Return whether a source has set it."""
        return name in self.sources

    def of_provider(self, provider: str | None) -> Configuration:
        """Return these settings with the defaults of one provider in place of the general ones."""
        defaults = self.defaults.get(provider or "", {})
        sources = {name: self.sources[source_key(provider or "", name)] for name in defaults}
        # The type of each setting has validated its value.
        values = cast("dict[str, Any]", {**defaults, "sources": {**self.sources, **sources}})
        return msgspec.structs.replace(self, **values)


def load_configuration(args: argparse.Namespace) -> Configuration:
    """Load the settings from the files, the environment and these flags.

    Raises:
        ConfigurationInvalid: A setting is unknown or has an invalid value.
    """
    gathered = _load_user_file()
    start = find_working_directory()
    for path in () if start is None else reversed(_find_project_files(start)):
        gathered.add_project_file(read_settings(path))
    gathered.add_environment(os.environ, getattr(args, "agents", None))
    gathered.add_flags(args)
    check_variants(gathered.values, gathered.defaults, gathered.sources)
    values = gathered.values
    values.setdefault("store", default_store())
    return Configuration(
        **values,  # type: ignore[arg-type]
        defaults={name: table for name, table in gathered.defaults.items() if table},
        sources=gathered.sources,
        refused=tuple(gathered.refused),
        trusted=gathered.trusted,
    )


def _find_project_files(start: Path) -> list[Path]:
    """Return the nearest file of settings and, if it is untrusted, the next trusted one.

    A trusted file above a project stays in force even if the project has a file of its own.
    """
    files: list[Path] = []
    for path in settings_above(start):
        if record_path_key(path) == record_path_key(user_settings()):
            continue
        trusted = find_trust_record(path) is not None
        if trusted or not files:
            files.append(path)
        if trusted:
            break
    return files


def refusals_of(project: SettingsFile) -> tuple[RefusedSetting, ...]:
    """Return the settings of a project's file that need the user's trust.

    Raises:
        ConfigurationInvalid: A setting is unknown or has an invalid value.
    """
    _load_user_file().add_file(project)  # the file must also be valid as a whole
    gathered = _load_user_file()
    gathered.add_narrowed_file(project)
    return tuple(gathered.refused)


def _load_user_file() -> _ConfigurationBuilder:
    gathered = _ConfigurationBuilder()
    path = user_settings()
    if path.is_file():
        gathered.add_file(read_settings(path))
    return gathered


class _ConfigurationBuilder:
    """Builder of the settings: the values so far, and their sources."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self.defaults: dict[str, dict[str, object]] = {}
        self.sources: dict[str, str] = {}
        self.refused: list[RefusedSetting] = []
        self.trusted: dict[str, str] = {}

    def add_file(self, file: SettingsFile) -> None:
        """Add all settings of the user's own file, or of a file that the user trusts."""
        for found in checked_settings(file):
            self._set_from_file(file, found, found.value)

    def add_project_file(self, file: SettingsFile) -> None:
        """Add a project's file: all of it if trusted, else only the settings that narrow."""
        trusted = find_trust_record(file.path)
        if trusted is None:
            self.add_narrowed_file(file)
            return
        changed = trusted.differs_from(make_trust_record(file.path, file.data, file.settings))
        if changed is None:
            self.add_trusted_file(file)
            self.trusted |= trusted.files
        else:
            self.add_narrowed_file(file, changed)

    def add_trusted_file(self, file: SettingsFile) -> None:
        """Add all settings of a project's file; its options name the files that were hashed."""
        for found in checked_settings(file):
            value = found.value
            if found.setting.name == "options":
                value = resolve_option_paths(cast("dict[str, object]", value), file.path.parent)
            self._set_from_file(file, found, value)

    def add_narrowed_file(self, file: SettingsFile, changed: str | None = None) -> None:
        """Add the settings that narrow those so far, and record the others as refused."""
        own = dict(self.values)
        own_defaults = {name: dict(table) for name, table in self.defaults.items()}
        for found in checked_settings(file):
            name, value = found.setting.name, found.value
            if found.provider is not None:
                known = own | own_defaults.get(found.provider, {})
                taken, refusals = narrowed_default(found.provider, name, value, known)
            else:
                taken, refusals = narrow_setting(name, value, own)
                if taken is not None:
                    taken, refusals = narrowed_for_all(name, taken, refusals, own_defaults)
            for refusal in refusals:
                self.refused.append(_refused(file, found, refusal, changed))
            if taken is None:
                continue
            self._set_from_file(file, found, taken)
            if name == "tools_denied" and found.provider is None:
                self._keep_denied(file, found, own_defaults)

    def _keep_denied(
        self, file: SettingsFile, found: FoundSetting, own: Mapping[str, Mapping[str, object]]
    ) -> None:
        """Deny a project's denied tools in addition to those that the user denies one provider."""
        for provider, table in own.items():
            if "tools_denied" in table:
                taken, _ = narrow_setting("tools_denied", found.value, table)
                self._set_from_file(file, found._replace(provider=provider), taken)

    def _set_from_file(self, file: SettingsFile, found: FoundSetting, value: object) -> None:
        if isinstance(value, Path):
            value = file.path.parent / value  # relative to the file that names it
        where = f"{file.path}:{line_of(file.text, found.key)}"
        if found.provider is None:
            self._set(found.setting.name, value, where)
        else:
            self._put_default(found.provider, found.setting.name, value, where)

    def add_environment(self, environ: Mapping[str, str], agents: str | None) -> None:
        """Add the variables; `agents` is the registry file that a flag names."""
        by_variable = {setting.variable: setting for setting in SETTINGS.values()}
        of_providers = [name for name in environ if name.startswith(provider_defaults.PREFIX)]
        for variable, text in environ.items():
            if not variable.startswith(PREFIX) or variable in of_providers:
                continue
            setting = by_variable.get(variable)
            if setting is None or setting.name == "options":
                # Other programs may use the prefix too; only a similar name is an error.
                rest = variable.removeprefix(PREFIX)
                if near := get_close_matches(rest, _SUFFIXES, n=1, cutoff=0.75):
                    hint = f"did you mean {PREFIX}{near[0]}?"
                    raise ConfigurationInvalid(variable, f"unknown setting; {hint}")
            elif text:
                self._add_texts(setting, [text], variable)
        file = cast("Path | None", self.values.get("agents") if agents is None else Path(agents))
        for variable in of_providers:
            if environ[variable]:
                try:
                    default = provider_defaults.of_variable(variable, environ[variable], file)
                except SettingValueError as error:
                    raise ConfigurationInvalid(variable, str(error)) from None
                self._take_default(default, variable)

    def add_flags(self, args: argparse.Namespace) -> None:
        for name, setting in SETTINGS.items():
            given: str | list[str] | None = getattr(args, name, None)
            if given is None:
                continue
            flag = setting.flags[-1] if setting.flags else f"--{name.replace('_', '-')}"
            texts = given if isinstance(given, list) else [given]
            if name == "concurrency":
                limits = [text for text in texts if "=" in text]
                self._add_texts(SETTINGS["per_provider"], limits, flag)
                texts = [text for text in texts if "=" not in text]
            self._add_texts(setting, texts, flag)
        for text in getattr(args, "set_defaults", None) or ():
            try:
                default = provider_defaults.of_text(text)
            except SettingValueError as error:
                raise CommandLineInvalid(f"{provider_defaults.FLAG}: {error}") from None
            self._take_default(default, provider_defaults.FLAG)

    def _take_default(self, default: ProviderDefault, where: str) -> None:
        if default.setting.name == "options":
            self._set("options", {default.provider: default.value}, where)
        else:
            self._put_default(default.provider, default.setting.name, default.value, where)

    def _add_texts(self, setting: Setting, texts: Sequence[str], where: str) -> None:
        if setting.kind in {WORDS, KINDS} and texts:
            texts = [",".join(texts)]
        for text in texts:
            try:
                value = setting.kind.check(setting.kind.read(text))
            except SettingValueError as error:
                if where.startswith("-"):
                    raise CommandLineInvalid(f"{where}: {error}") from None
                raise ConfigurationInvalid(where, str(error)) from None
            self._set(setting.name, value, where)

    def _set(self, name: str, value: object, where: str) -> None:
        before = self.values.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            value = _merge_values(
                cast("dict[str, object]", before), cast("dict[str, object]", value)
            )
            where = f"{self.sources[name]}, {where}"
        self.values[name] = value
        self.sources[name] = where
        for provider, table in self.defaults.items():  # the values are from earlier sources
            if table.pop(name, None) is not None:
                del self.sources[source_key(provider, name)]

    def _put_default(self, provider: str, name: str, value: object, where: str) -> None:
        self.defaults.setdefault(provider, {})[name] = value
        self.sources[source_key(provider, name)] = where


def _refused(
    file: SettingsFile, found: FoundSetting, refusal: NarrowingRefusal, changed: str | None
) -> RefusedSetting:
    # Options have two keys: `options.NAME` and `provider.NAME.options`.
    key = refusal.key if found.key[0] == refusal.key[0] else (*found.key, *refusal.key[2:])
    return RefusedSetting(
        path=file.path,
        line=line_of(file.text, key),
        key=key,
        value=refusal.value,
        why=refusal.why,
        changed=changed,
    )


def _merge_values(before: dict[str, object], after: dict[str, object]) -> dict[str, object]:
    joined = before | after
    for name in before.keys() & after.keys():
        one, other = before[name], after[name]
        if isinstance(one, dict) and isinstance(other, dict):
            joined[name] = {**cast("dict[str, object]", one), **cast("dict[str, object]", other)}
    return joined
