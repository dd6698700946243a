"""Sections about the providers that come with sessionmgr."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.adapter import find_adapter, installed_adapters, provider_variants
from sessionmgr.field_docs import field_docs
from sessionmgr.model import Capabilities, PermissionMode
from sessionmgr.reference.fields import field_table
from sessionmgr.reference.markdown import code, section, table

if TYPE_CHECKING:
    from sessionmgr.adapter import ProviderAdapter

PACKAGE = "sessionmgr_adapters"


def adapters() -> dict[str, type[ProviderAdapter]]:
    """Return the adapters of this distribution by name; those of other packages are left out."""
    found = {name: find_adapter(name) for name in installed_adapters()}
    return {
        name: each for name, each in found.items() if each.__module__.partition(".")[0] == PACKAGE
    }


def capabilities() -> str:
    """Return the section on what each provider can do."""
    found, texts = adapters(), field_docs(Capabilities)
    rows = [
        (
            code(name),
            *(str(each.capabilities.support(name)) for each in found.values()),
            texts.get(name, ""),
        )
        for name in Capabilities.__struct_fields__
    ]
    return section(
        "## Capabilities",
        "`require` and `prefer` take these names. Some options of a provider reduce them; "
        "`sessionmgr adapters` lists those of all installed providers.",
        table(("capability", *found, "meaning"), rows),
    )


def permission_modes() -> str:
    """Return the section on what each provider makes of the permission modes."""
    found, texts = adapters(), field_docs(PermissionMode)
    rows = [
        (code(mode), *(_mode(each, mode) for each in found.values()), texts.get(mode.name, ""))
        for mode in PermissionMode
    ]
    return section(
        "## Permission modes",
        "Each cell names the fidelity and the provider's own mode.",
        table(("mode", *found, "meaning"), rows),
    )


def agents() -> str:
    """Return the section on the agents that providers run by name; none if there are none."""
    rows = [
        (code(name), adapter.display_name or "", *(_mode(adapter, mode) for mode in PermissionMode))
        for provider in adapters()
        for name in provider_variants(provider)
        for adapter in (find_adapter(name),)
    ]
    if not rows:
        return ""
    return section(
        "## Agents",
        "Providers that run one agent each, by its name. "
        "[A registry file](cli/README.md#agents-by-name) adds others.",
        table(("provider", "agent", *map(code, PermissionMode)), rows),
    )


def _mode(adapter: type[ProviderAdapter], mode: PermissionMode) -> str:
    mapped = adapter.permission_map(adapter.options()).modes.get(mode)
    if mapped is None:
        return "refused"
    confined = {True: ", confined", False: ", not confined", None: ""}[mapped.confined]
    return f"{mapped.fidelity}: {mapped.effective}{confined}"


def options() -> str:
    """Return the section on the options of each provider."""
    places = "`--option`, `[options.PROVIDER]` in settings, `options` of a job or `session.start`."
    parts = ["## Options of providers", places]
    for name, each in adapters().items():
        parts += [f"### Options of {name}", field_table(each.options)]
    return section(*parts)
