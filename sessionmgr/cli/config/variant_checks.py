"""Check of the variants of providers, such as `acp:goose`, that tables of settings name.

A file of settings may be read before the one that names the registry of agents. So the parts after
the colon are checked when all settings are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from sessionmgr.cli.config.provider_defaults import source_key
from sessionmgr.cli.errors import CommandLineInvalid, ConfigurationInvalid

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def check_variants(
    values: Mapping[str, object],
    defaults: Mapping[str, Mapping[str, object]],
    sources: Mapping[str, str],
) -> None:
    """Check the variants in the settings `values` and in the `defaults` of providers.

    Raises:
        ConfigurationInvalid: A file or a variable names a variant that does not exist.
        CommandLineInvalid: A flag does.
    """
    named = {
        name: sources[setting]
        for setting in ("per_provider", "options")
        for name in cast("Mapping[str, object]", values.get(setting, {}))
    }
    for name, table in defaults.items():
        for key in table:
            named[name] = sources[source_key(name, key)]
    for name, where in named.items():
        if ":" in name:
            _require_variant(name, where, cast("Path | None", values.get("agents")))


def _require_variant(name: str, where: str, agents: Path | None) -> None:
    from sessionmgr.adapter import ProviderUnknown, StartRefused, find_adapter

    try:
        find_adapter(name, agents=agents)
    except ProviderUnknown as error:
        if where.startswith("-"):
            raise CommandLineInvalid(f"{where}: {error}") from None
        raise ConfigurationInvalid(where, str(error)) from None
    except StartRefused:
        return  # the file or the adapter is broken: a command that needs it reports that
