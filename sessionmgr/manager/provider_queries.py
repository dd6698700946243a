"""A manager's queries about its providers before a run starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from sessionmgr.adapter import (
    AdapterBroken,
    AgentsFileInvalid,
    Health,
    OptionInvalid,
    installed_adapters,
    resolve_options,
)
from sessionmgr.manager.argument_checks import (
    PROVIDERS,
    RUN_ARGUMENTS,
    require_arguments as require_kinds,
)
from sessionmgr.manager.errors import ManagerClosing, ProviderDown
from sessionmgr.manager.run_plan import RunGrant, RunRequest
from sessionmgr.manager.run_planner import absolute_path, run_grant, run_readiness
from sessionmgr.model import UNSUPPORTED, Negotiation, Session, negotiate
from sessionmgr.otp import CallTimeout, OtpError

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from sessionmgr.manager.manager_state import ManagerState
    from sessionmgr.manager.provider_branch import ProviderBranch
    from sessionmgr.manager.session_supervisor import SessionSupervisor


class ProviderQueries:
    """The part of a manager that reports the providers' capabilities and readiness."""

    _state: ManagerState
    _supervisor: SessionSupervisor

    def check(self, provider: str, wish: RunRequest, *, cwd: str | Path = ".") -> RunGrant:
        """Return the grant that a run would get, without starting it.

        Args:
            provider: The name of the provider.
            wish: The request of the run.
            cwd: The directory of the run; by default the current one.

        Raises:
            StartRefused: The run would be refused.
            EnvironmentVariableInvalid: A child may not get a variable.
        """
        return run_grant(self._state, self._hypothetical_session(provider, cwd), wish)

    def readiness(self, provider: str, wish: RunRequest, *, cwd: str | Path = ".") -> Health:
        """Check whether a run's program is installed and logged in, without starting it.

        Args:
            provider: The name of the provider.
            wish: The request of the run.
            cwd: The directory of the run; by default the current one.

        Raises:
            StartRefused: The run would be refused.
            EnvironmentVariableInvalid: A child may not get a variable.
        """
        return run_readiness(self._state, self._hypothetical_session(provider, cwd), wish)

    def _hypothetical_session(self, provider: str, cwd: str | Path) -> Session:
        """Return a session that only serves to check a run request."""
        self._state.require_own_trio_run()
        self._supervisor.require_provider(provider)
        return Session(id="", provider=provider, cwd=absolute_path(cwd))

    async def negotiate(
        self,
        provider: str,
        *,
        require: Collection[str] = (),
        prefer: Collection[str] = (),
        require_native: Collection[str] = (),
    ) -> Negotiation:
        """Return a run's grant; missing capabilities are part of the answer.

        Args:
            provider: The name of the provider.
            require: Capabilities that the run needs.
            prefer: Capabilities that the run uses if they are available.
            require_native: Capabilities that the provider itself must have, without emulation by
                the adapter.

        Raises:
            ProviderUnknown: The provider does not exist.
        """
        asked = {"require": require, "prefer": prefer, "require_native": require_native}
        require_kinds("negotiate", RUN_ARGUMENTS, asked)
        self._state.require_own_trio_run()
        await trio.lowlevel.checkpoint()
        offered = self._supervisor.require_provider(provider).capabilities
        return negotiate(offered, require=require, prefer=prefer, require_native=require_native)

    def supports(self, provider: str, capability: str) -> bool:
        """Return whether a provider has a capability, natively or by the adapter's emulation.

        Args:
            provider: The name of the provider.
            capability: The name of the capability, such as "resume".

        Raises:
            ProviderUnknown: The provider does not exist.
        """
        offered = self._supervisor.require_provider(provider).capabilities
        return offered.support(capability) is not UNSUPPORTED

    def runs_commands(self, provider: str) -> bool:
        """Return whether a provider's prompts are commands, which run without an agent's judgement.

        Args:
            provider: The name of the provider.

        Raises:
            ProviderUnknown: The provider does not exist.
        """
        return self._supervisor.require_provider(provider).adapter_class.runs_commands

    async def health(self, providers: Collection[str] | None = None) -> dict[str, Health]:
        """Check whether these providers, or all installed ones, are usable now.

        A provider that crashes or does not answer within the `start` clock fails; `detail` says so.

        Args:
            providers: The names of the providers; by default all.

        Raises:
            ProviderUnknown: A provider does not exist.
        """
        require_kinds("health", PROVIDERS, {"providers": providers})
        self._state.require_own_trio_run()
        return await check_providers(self._supervisor, self._state, providers)


async def check_providers(
    supervisor: SessionSupervisor, manager_state: ManagerState, providers: Collection[str] | None
) -> dict[str, Health]:
    """Check the `providers`, or all; one that does not answer in time fails.

    Raises:
        ProviderUnknown: A provider does not exist.
        ManagerClosing: The manager is closing.
    """
    names = sorted(
        {*manager_state.adapters, *installed_adapters()} if providers is None else set(providers)
    )
    found: dict[str, Health] = {}
    branches: list[ProviderBranch] = []
    for name in names:
        try:
            branches.append(supervisor.require_provider(name))
        except (AdapterBroken, AgentsFileInvalid) as error:
            found[name] = Health(state="fail", detail=str(error))

    if not manager_state.open:
        raise ManagerClosing

    async def ask(branch: ProviderBranch) -> None:
        try:
            await supervisor.start_branch(branch.name)
        except (ProviderDown, ManagerClosing) as error:
            found[branch.name] = Health(state="fail", detail=str(error))
        else:
            found[branch.name] = await _ask_health(branch, manager_state.clocks.of("start"))

    async with trio.open_nursery() as nursery:
        for branch in branches:
            nursery.start_soon(ask, branch)
    return {name: found[name] for name in names}


async def _ask_health(branch: ProviderBranch, limit: float) -> Health:
    try:
        ready = _readiness(branch)
    except Exception as error:  # an adapter may raise anything  # noqa: BLE001
        return Health(state="fail", detail=f"its check failed: {type(error).__name__}: {error}")
    if ready != Health():  # else the adapter reports nothing about a program or a login
        return ready
    try:
        return _validated_health(await branch.ask_health(limit or float("inf")))
    except (CallTimeout, trio.TooSlowError):
        return Health(state="fail", detail=f"it did not report its health within {limit:g} s")
    except OtpError as error:
        return Health(state="fail", detail=f"it stopped during the check: {error}")
    except Exception as error:  # an adapter may raise anything  # noqa: BLE001
        return Health(state="fail", detail=f"its check failed: {type(error).__name__}: {error}")


def _readiness(branch: ProviderBranch) -> Health:
    """Check the program of a run without options in this manager's environment."""
    adapter = branch.adapter_class
    try:
        options = resolve_options(adapter.name, adapter.options, {}, {})
    except OptionInvalid:
        return Health()  # this provider requires options
    return adapter.readiness(options, branch.environment({}, options).variables, "/")


def _validated_health(said: object) -> Health:
    """Return an adapter's health report if it has the right type."""
    if isinstance(said, Health):
        return said
    return Health(state="fail", detail=f"it returned {said!r}, which is not a Health")
