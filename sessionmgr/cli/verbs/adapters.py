"""The verb `adapters`: list the installed providers and their capabilities."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from sessionmgr.adapter import (
    GROUP,
    AdapterBroken,
    OptionInvalid,
    find_adapter,
    provider_variants,
    resolve_options,
)
from sessionmgr.cli.provider_checks import provider_readiness
from sessionmgr.cli.terminal.stdout import print_json, print_line, print_note
from sessionmgr.cli.terminal.table import format_labelled, terminal_width
from sessionmgr.model import Capabilities, Fidelity, PermissionMode, Support

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from sessionmgr.adapter import MappedMode, ProviderAdapter
    from sessionmgr.cli.config.configuration import Configuration

HELP: Final = """\
List the installed providers: the package and version of each, its capabilities (native
or emulated), how it applies each permission mode (exact, emulated, narrower,
unverified, refused), its own options, and the agents that it can run by name (as
provider:agent), installed or not.

  sessionmgr adapters shell
  sessionmgr adapters acp:goose"""

HealthState: TypeAlias = Literal["ok", "skip", "fail"]
INDENT: Final = 15
WIDTH: Final = 100


class PermissionModeLine(msgspec.Struct, frozen=True, kw_only=True):
    """A permission mode of an adapter; `effective` is the provider's own mode."""

    fidelity: Fidelity
    effective: str | None = None
    confined: bool | None = None


class AdapterLine(msgspec.Struct, frozen=True, kw_only=True):
    """An adapter in the list; with an `error`, it cannot be loaded."""

    name: str
    display_name: str | None = None
    package: str | None = None
    version: str | None = None
    capabilities: Capabilities | None = None
    permissions: dict[PermissionMode, PermissionModeLine] = {}
    options: tuple[str, ...] = ()
    agents: dict[str, HealthState] = {}
    """The providers of the agents that it runs by name: ok, skip (not installed) or fail."""
    error: str | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the names."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="providers to list (default: all)")


def run(args: argparse.Namespace) -> int:
    """List them and return the exit code."""
    found = {each.name: each for each in sorted(entry_points(group=GROUP), key=lambda e: e.name)}
    for name in args.names:
        if name not in found:
            # This raises for an unknown name, with the known ones.
            find_adapter(name, agents=args.configuration.agents)
    lines = [
        _line(name, found[name.partition(":")[0]], args.configuration)
        for name in args.names or found
    ]
    if args.json:
        print_json(*lines)
    else:
        for line in lines:
            for text in _adapter_text(line):
                print_line(text, flush=False)
    if not lines:
        print_note("no provider is installed")
    return 0


def _line(name: str, entry: EntryPoint, configuration: Configuration) -> AdapterLine:
    package = entry.dist.name if entry.dist else None
    version = entry.dist.version if entry.dist else None
    try:
        adapter = find_adapter(name, agents=configuration.agents)
    except AdapterBroken as error:
        return AdapterLine(name=name, package=package, version=version, error=str(error))
    modes = _modes(adapter, configuration)
    return AdapterLine(
        name=name,
        display_name=adapter.display_name,
        package=package,
        version=version,
        capabilities=adapter.capabilities,
        permissions={mode: _mode(modes.get(mode)) for mode in PermissionMode},
        options=adapter.options.__struct_fields__,
        agents=_agents(name, configuration),
    )


def _modes(
    adapter: type[ProviderAdapter], configuration: Configuration
) -> Mapping[PermissionMode, MappedMode]:
    """Return the permission modes of a run with the configured options."""
    try:
        options = resolve_options(
            adapter.name, adapter.options, configuration.options.get(adapter.name, {}), {}
        )
    except OptionInvalid:  # it requires an option
        return adapter.permissions.modes
    return adapter.permission_map(options).modes


def _agents(name: str, configuration: Configuration) -> dict[str, HealthState]:
    """Return the state of each variant of an adapter."""
    states: dict[str, HealthState] = {}
    for each in () if ":" in name else provider_variants(name, configuration.agents):
        try:
            adapter = find_adapter(each, agents=configuration.agents)
            states[each] = provider_readiness(adapter, configuration).state
        except Exception:  # an adapter may raise anything; `doctor` says what  # noqa: BLE001
            states[each] = "fail"
    return states


def _mode(mapped: MappedMode | None) -> PermissionModeLine:
    if mapped is None:
        return PermissionModeLine(fidelity=Fidelity.REFUSED)
    return PermissionModeLine(
        fidelity=mapped.fidelity, effective=mapped.effective, confined=mapped.confined
    )


def _adapter_text(line: AdapterLine) -> list[str]:
    brought = " ".join(filter(None, (line.package, line.version)))
    title = f"{line.name}  {line.display_name or ''}{f'  ({brought})' if brought else ''}"
    if line.error is not None or line.capabilities is None:
        return [title, *_wrapped("broken", line.error or "")]
    lines = [title]
    for support in Support:
        names = [
            name
            for name in Capabilities.__struct_fields__
            if line.capabilities.support(name) is support
        ]
        lines += _wrapped(support, ", ".join(names))
    for mode, mapped in line.permissions.items():
        if mapped.fidelity is not Fidelity.REFUSED:
            confined = {True: ", confined", False: ", not confined", None: ""}[mapped.confined]
            lines += _wrapped(
                "permission", f"{mode}: {mapped.fidelity} ({mapped.effective}{confined})"
            )
    refused = [
        mode for mode, mapped in line.permissions.items() if mapped.fidelity is Fidelity.REFUSED
    ]
    lines += _wrapped("refused", ", ".join(refused))
    lines += _wrapped("options", ", ".join(line.options))
    lines += _wrapped("agents", "; ".join(_agent_texts(line.agents)))
    return [*lines, ""]


def _agent_texts(agents: Mapping[str, HealthState]) -> Iterator[str]:
    said: dict[HealthState, str] = {"ok": "", "fail": "not ready: ", "skip": "not installed: "}
    for state, text in said.items():
        if names := [name for name, each in agents.items() if each == state]:
            yield text + ", ".join(names)


def _wrapped(label: str, text: str) -> list[str]:
    """Return the lines of a label and its text; none if the text is empty."""
    if not text:
        return []
    return format_labelled(f"  {label}", text, indent=INDENT, width=terminal_width() or WIDTH)
