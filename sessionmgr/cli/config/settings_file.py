"""A file of settings: its text, and the settings in it with their parsed values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from sessionmgr.cli.config import provider_defaults
from sessionmgr.cli.config.setting_types import SettingValueError
from sessionmgr.cli.config.settings import SETTINGS, Setting
from sessionmgr.cli.config.toml_file import line_of, read_toml
from sessionmgr.cli.errors import ConfigurationInvalid
from sessionmgr.cli.parser import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessionmgr.model import Json


class SettingsFile(NamedTuple):
    """A file of settings, read once, so that the hashed bytes are the bytes in use."""

    path: Path
    data: bytes
    text: str
    settings: dict[str, object]


class FoundSetting(NamedTuple):
    """A setting in a file, with its parsed value."""

    setting: Setting
    value: object
    key: tuple[str, ...]
    """The key in the file."""
    provider: str | None = None
    """The provider whose default it is; None for a general setting."""


def read_settings(path: Path) -> SettingsFile:
    """Read a file of settings.

    Raises:
        ConfigurationInvalid: It is not TOML; the error names the line.
    """
    data = path.read_bytes()
    return SettingsFile(path, data, *read_toml(path, data))


def checked_settings(file: SettingsFile) -> Iterator[FoundSetting]:
    """Yield the settings of a file with their parsed values; defaults of providers come last."""
    tables = file.settings.get(provider_defaults.KEY)
    for name, value in file.settings.items():
        key: tuple[str, ...] = (name,)
        if name == provider_defaults.KEY and isinstance(value, Mapping):
            key = (name, provider_defaults.DEFAULT)
            if provider_defaults.DEFAULT not in value:
                continue
            value = cast("Mapping[str, object]", value)[provider_defaults.DEFAULT]
        setting = SETTINGS.get(name)
        if setting is None:
            known = did_you_mean(name, SETTINGS) or f"; known: {', '.join(SETTINGS)}"
            where = f"{file.path}:{line_of(file.text, (name,))}"
            raise ConfigurationInvalid(where, f"unknown setting {name!r}{known}")
        try:
            checked = setting.kind.check(value)
        except SettingValueError as error:
            where = f"{file.path}:{line_of(file.text, (*key, *error.within))}"
            raise ConfigurationInvalid(where, f"{name}: {error}") from None
        if setting is SETTINGS["options"]:
            _check_options(cast("dict[str, dict[str, Json]]", checked), file.path, file.text)
        yield FoundSetting(setting, checked, key)
    if isinstance(tables, Mapping):
        yield from _checked_defaults(file, cast("Mapping[str, object]", tables))


def _checked_defaults(file: SettingsFile, tables: Mapping[str, object]) -> Iterator[FoundSetting]:
    try:
        defaults = list(provider_defaults.of_table(tables))
    except SettingValueError as error:
        key = (provider_defaults.KEY, *error.within)
        where = f"{file.path}:{line_of(file.text, key)}"
        raise ConfigurationInvalid(where, f"{provider_defaults.KEY}: {error}") from None
    for each in defaults:
        if each.setting.name == "options":
            options = {each.provider: cast("dict[str, Json]", each.value)}
            _check_options(options, file.path, file.text, each.key)
            yield FoundSetting(each.setting, options, each.key)
        else:
            yield FoundSetting(each.setting, each.value, each.key, each.provider)


def _check_options(
    tables: Mapping[str, Mapping[str, Json]],
    path: Path,
    text: str,
    key: tuple[str, ...] | None = None,
) -> None:
    """Check that each provider accepts the options that a file sets for it."""
    from sessionmgr.adapter import OptionInvalid, ProviderUnknown, find_adapter, resolve_options

    for provider, options in tables.items():
        try:
            adapter = find_adapter(provider.partition(":")[0])  # variants have the same options
            resolve_options(provider, adapter.options, options, {})
        except (OptionInvalid, ProviderUnknown) as error:
            where = f"{path}:{line_of(text, key or ('options', provider))}"
            raise ConfigurationInvalid(where, str(error)) from None
