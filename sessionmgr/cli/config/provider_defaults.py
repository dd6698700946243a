"""Defaults for the jobs of one provider: `[provider.claude]` in a file, `--set claude.model=haiku`.

The value of a job itself takes precedence over the default of its provider, and that over the
general default. A later source overrides an earlier one (files, then environment variables, then
flags): the flag `--model` overrides `provider.claude.model` of a file, and
`--set claude.model=…` overrides both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from sessionmgr.cli.config.setting_types import (
    OPTIONS,
    SettingValueError,
    format_value,
    providers,
    require_provider,
)
from sessionmgr.cli.config.settings import SETTINGS, Setting
from sessionmgr.cli.parser import did_you_mean

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

KEY: Final = "provider"
DEFAULT: Final = "default"
"""The key in the table `provider` that names the provider to use, as `provider = "claude"` does."""
PREFIX: Final = "SESSIONMGR_PROVIDER_"
FIELDS: Final = (
    *("model", "effort", "permission_mode", "tools_allowed", "tools_denied"),
    *("max_turns", "deadline", "budget_usd"),
)
"""The settings that can have a default for one provider, beside its options."""
_OPTIONS: Final = "options"
_NAMES: Final = (*FIELDS, _OPTIONS)
FLAG: Final = "--set"
_PATH: Final = re.compile(rf"(?P<provider>[^.@]+(@.+?)?)\.(?P<rest>({'|'.join(_NAMES)})(\..*)?)")
"""A provider, perhaps with a version, and a key; only a version contains dots."""
_BARE: Final = re.compile(r"[\w-]+", re.ASCII)


class ProviderDefault(NamedTuple):
    """A default of one provider."""

    provider: str
    setting: Setting
    value: object
    """For `options`: a table of some options."""

    @property
    def key(self) -> tuple[str, ...]:
        """The key that sets it in a file."""
        return (KEY, self.provider, self.setting.name)


def source_key(provider: str, name: str) -> str:
    """Return the key of a default among the sources of settings."""
    return f"{KEY}.{provider}.{name}"


def toml_key(*parts: str) -> str:
    """Return a dotted key as TOML has it."""
    from sessionmgr.model import encode_json

    bare = (each if _BARE.fullmatch(each) else encode_json(each).decode() for each in parts)
    return ".".join(bare)


def add_set_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--set claude.model=haiku`."""
    parser.add_argument(
        FLAG,
        action="append",
        dest="set_defaults",
        metavar="PROVIDER.KEY=VALUE",
        help="default for the jobs of one provider, such as claude.model=haiku; KEY: "
        f"{', '.join(FIELDS)} or options.NAME; may be repeated (default: none)",
    )


def of_table(table: Mapping[str, object]) -> Iterator[ProviderDefault]:
    """Yield the defaults in the table `provider` of a file.

    Raises:
        SettingValueError: A provider or a key is unknown, or a value is invalid.
    """
    for provider, defaults in table.items():
        if provider == DEFAULT:
            continue
        require_provider(provider)
        if not isinstance(defaults, Mapping):
            expected = f"expected a table ([{KEY}.{provider}]), got {format_value(defaults)}"
            raise SettingValueError(expected, (provider,))
        for name, value in cast("Mapping[str, object]", defaults).items():
            setting = _setting(provider, name)
            try:
                yield ProviderDefault(provider, setting, _parse_settings(setting, provider, value))
            except SettingValueError as error:
                within = (provider, name, *error.within)
                raise SettingValueError(f"{provider}.{name}: {error}", within) from None


def of_text(text: str) -> ProviderDefault:
    """Read `PROVIDER.KEY=VALUE`, the value of `--set`.

    Raises:
        SettingValueError: The text has another form, or names something unknown.
    """
    path, equals, value = text.partition("=")
    provider, dot, name = path.partition(".")
    if found := _PATH.fullmatch(path):
        provider, name = found["provider"], found["rest"]
    elif "@" in path:
        provider, dot, name = path.rpartition(".")
    if not equals or not dot:
        raise SettingValueError(
            f"expected PROVIDER.KEY=VALUE, such as claude.model=haiku, got {text!r}"
        )
    require_provider(provider)
    name, _, option = name.partition(".")
    return _of_words(provider, _setting(provider, name), option, value, path)


def of_variable(variable: str, value: str, agents: Path | None = None) -> ProviderDefault:
    """Read an environment variable such as `SESSIONMGR_PROVIDER_CLAUDE_MODEL`.

    Args:
        variable: The name of the variable.
        value: Its value.
        agents: The registry file of agents, whose ids the name may contain.

    Raises:
        SettingValueError: The variable names something unknown, or its value is invalid.
    """
    rest = variable.removeprefix(PREFIX)
    for name in sorted(FIELDS, key=len, reverse=True):
        if rest.endswith(f"_{name.upper()}"):
            written = rest.removesuffix(f"_{name.upper()}")
            known = {_upper(each): each for each in _with_variants(written, agents)}
            if written not in known:
                require_provider(written.lower())
            return _of_words(known[written], SETTINGS[name], "", value, variable)
    variables = [
        f"{PREFIX}{_upper(each)}_{name.upper()}" for each in providers() for name in FIELDS
    ]
    hint = (
        did_you_mean(variable, variables)
        or f"; expected {PREFIX}NAME_KEY, KEY: {', '.join(FIELDS)}"
    )
    raise SettingValueError(f"unknown setting{hint}")


def _with_variants(written: str, agents: Path | None) -> Iterator[str]:
    """Yield the providers, and the variants of those whose names a variable begins with."""
    from sessionmgr.adapter import StartRefused, provider_variants

    for name in providers():
        yield name
        if written.startswith(f"{_upper(name)}_"):
            try:
                yield from provider_variants(name, agents)
            except StartRefused as error:
                raise SettingValueError(str(error)) from None


def _upper(provider: str) -> str:
    return provider.replace("-", "_").replace(":", "_").upper()


def _of_words(
    provider: str, setting: Setting, option: str, text: str, path: str
) -> ProviderDefault:
    if setting.name == _OPTIONS:
        if not option:
            raise SettingValueError(f"expected {provider}.options.NAME=VALUE, got {path}={text}")
        from sessionmgr.cli.inputs import read_options

        value: object = read_options(FLAG, [f"{option}={text}"])
    elif option:
        raise SettingValueError(f"{provider}.{setting.name} has no parts, got {path!r}")
    else:
        value = setting.kind.read(text)
    try:
        return ProviderDefault(provider, setting, _parse_settings(setting, provider, value))
    except SettingValueError as error:
        raise SettingValueError(f"{provider}.{setting.name}: {error}") from None


def _setting(provider: str, name: str) -> Setting:
    if name not in _NAMES:
        hint = did_you_mean(name, _NAMES) or f"; known: {', '.join(_NAMES)}"
        raise SettingValueError(f"unknown default {name!r} of {provider}{hint}", (provider, name))
    return SETTINGS[name]


def _parse_settings(setting: Setting, provider: str, value: object) -> object:
    if setting.name != _OPTIONS:
        return setting.kind.check(value)
    try:
        tables = cast("Mapping[str, object]", OPTIONS.check({provider: value}))
    except SettingValueError as error:
        raise SettingValueError(str(error).removeprefix(f"{provider}: ")) from None
    return tables[provider]
