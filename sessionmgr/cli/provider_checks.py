"""The checks of `doctor` about providers: whether their programs are installed and have a login."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter import (
    AdapterBroken,
    Health,
    StartRefused,
    find_adapter,
    installed_adapters,
    provider_variants,
    resolve_options,
)
from sessionmgr.cli.check_result import CheckResult
from sessionmgr.cli.config.paths import find_working_directory
from sessionmgr.process import build_environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import ProviderAdapter
    from sessionmgr.cli.config.configuration import Configuration

PATIENCE: Final = 20.0
"""Seconds in which a provider must report its health."""


async def check_all_providers(configuration: Configuration) -> list[CheckResult]:
    """Check all providers; the variants that are not installed are one result together."""
    checks: list[CheckResult] = []
    for name in installed_adapters():
        found = await check_providers([name], configuration)
        if not _variants(name, configuration):
            checks += found
            continue
        missing = [each.name for each in found if each.state == "skip"]
        checks += [each for each in found if each.state != "skip"]
        if missing:
            remedy = f"install one of them, then: sessionmgr doctor {missing[0]}"
            said = f"not installed: {', '.join(missing)}"
            checks.append(CheckResult(name=name, state="skip", detail=said, next=remedy))
    return checks


async def check_providers(names: Sequence[str], configuration: Configuration) -> list[CheckResult]:
    """Check providers, and for one that has variants, each of these."""
    checks: dict[str, CheckResult] = {}
    expanded = [each for name in names for each in _with_variants(name, configuration)]

    async def look(name: str) -> None:
        checks[name] = await _check_provider(name, configuration)

    async with trio.open_nursery() as nursery:
        for name in dict.fromkeys(expanded):
            nursery.start_soon(look, name)
    return [checks[name] for name in dict.fromkeys(expanded)]


def provider_readiness(adapter: type[ProviderAdapter], configuration: Configuration) -> Health:
    """Check whether a run with the configured options could start.

    Raises:
        OptionInvalid: A configured option is invalid.
    """
    options = resolve_options(
        adapter.name, adapter.options, configuration.options.get(adapter.name, {}), {}
    )
    given = options.variables()
    environ = {**os.environ, **given}
    env = build_environment(os.environ, adapter.declares(environ, options), given)
    return adapter.readiness(options, env, str(find_working_directory() or "/"))


def _variants(name: str, configuration: Configuration) -> list[str]:
    """Return the full names of a provider's variants; none if they cannot be listed."""
    if ":" in name:
        return []
    try:
        return provider_variants(name, configuration.agents)
    except StartRefused:  # the check of the provider itself reports it
        return []


def _with_variants(name: str, configuration: Configuration) -> list[str]:
    """Return what to check for a name: the variants, if there are any, and those in the settings.

    The provider itself is checked beside its variants only if the settings name it.
    """
    variants = _variants(name, configuration)
    if not variants:
        return [name]
    named = [each for each in _configured(configuration) if each.partition(":")[0] == name]
    return list(dict.fromkeys([*sorted(named), *variants]))


async def _check_provider(name: str, configuration: Configuration) -> CheckResult:
    try:
        adapter = find_adapter(name, agents=configuration.agents)
        provider_variants(name.partition(":")[0], configuration.agents)
    except StartRefused as error:
        await trio.lowlevel.checkpoint()
        remedy = "reinstall its package" if isinstance(error, AdapterBroken) else ""
        detail, _, said = (str(error), "", "") if remedy else str(error).partition("; ")
        return CheckResult(name=name, state="fail", detail=detail, next=remedy or said)
    try:
        health = provider_readiness(adapter, configuration)
        with trio.fail_after(PATIENCE):
            if health == Health():  # the adapter reports nothing about its program or login
                health = await adapter().health()
            else:
                await trio.lowlevel.checkpoint()
    except trio.TooSlowError:
        said = f"it did not report its health within {PATIENCE:g} s"
        return CheckResult(name=name, state="fail", detail=said, next="run its program by hand")
    except Exception as error:  # an adapter may raise any exception  # noqa: BLE001
        said = f"its check failed: {type(error).__name__}: {error}"
        return CheckResult(
            name=name,
            state="fail",
            detail=said,
            next="report this to the maintainer of the adapter",
        )
    return _health_result(name, adapter.display_name or name, health, configuration)


def _health_result(
    name: str, shown: str, health: Health, configuration: Configuration
) -> CheckResult:
    detail, _, remedy = health.detail.partition("; ")
    if health.state == "ok":
        return CheckResult(name=name, detail=health.detail or f"{shown} is ready")
    remedy = remedy or f"set it up, then check again: sessionmgr doctor {name}"
    state = health.state
    source = _configured(configuration).get(name)
    if state == "skip" and source is not None:
        state, detail = "fail", f"{detail}; {source} names it"
    return CheckResult(name=name, state=state, detail=detail, next=remedy)


def _configured(configuration: Configuration) -> dict[str, str]:
    """Return the providers that the settings name, each with the setting and its source."""
    named = {
        "per_provider": list(configuration.per_provider),
        "options": list(configuration.options),
        "provider": [configuration.provider] if configuration.provider else [],
    }
    return {
        provider: f"{setting} ({configuration.sources.get(setting, 'set')})"
        for setting, providers in named.items()
        for provider in providers
    }
