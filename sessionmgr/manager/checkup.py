"""Asking providers how they are: each by a task of its own, none of which can do any harm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from sessionmgr.adapter.discovery import installed
from sessionmgr.adapter.health import Health
from sessionmgr.adapter.options import settle
from sessionmgr.errors import (
    AdapterBroken,
    CallTimeout,
    ManagerClosing,
    OptionInvalid,
    OtpError,
    ProviderDown,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from sessionmgr.manager.manager_state import ManagerState
    from sessionmgr.manager.provider_branch import ProviderBranch
    from sessionmgr.manager.session_supervisor import SessionSupervisor


async def check_up(
    keeping: SessionSupervisor, tables: ManagerState, providers: Collection[str] | None
) -> dict[str, Health]:
    """Ask the `providers`, or all there are; who does not answer in time fails.

    Raises:
        ProviderUnknown: There is none of such a name.
        ManagerClosing: The manager is going down.
    """
    names = sorted({*tables.adapters, *installed()} if providers is None else set(providers))
    found: dict[str, Health] = {}
    branches: list[ProviderBranch] = []
    for name in names:
        try:
            branches.append(keeping.know(name))
        except AdapterBroken as error:
            found[name] = Health(state="fail", detail=str(error))

    if not tables.open:
        raise ManagerClosing

    async def ask(branch: ProviderBranch) -> None:
        try:
            await keeping.bring_up(branch.name)
        except (ProviderDown, ManagerClosing) as error:
            found[branch.name] = Health(state="fail", detail=str(error))
        else:
            found[branch.name] = await _ask(branch, tables.clocks.of("start"))

    async with trio.open_nursery() as nursery:
        for branch in branches:
            nursery.start_soon(ask, branch)
    return {name: found[name] for name in names}


async def _ask(branch: ProviderBranch, patience: float) -> Health:
    try:
        ready = _readiness(branch)
    except Exception as error:  # an adapter may raise anything  # noqa: BLE001
        return Health(state="fail", detail=f"its check failed: {type(error).__name__}: {error}")
    if ready != Health():  # else the adapter reports nothing about a program or a login
        return ready
    try:
        return _checked(await branch.ask_health(patience or float("inf")))
    except (CallTimeout, trio.TooSlowError):
        return Health(state="fail", detail=f"it did not say how it is within {patience:g} s")
    except OtpError as error:
        return Health(state="fail", detail=f"it went down meanwhile: {error}")
    except Exception as error:  # an adapter may raise anything  # noqa: BLE001
        return Health(state="fail", detail=f"its check failed: {type(error).__name__}: {error}")


def _readiness(branch: ProviderBranch) -> Health:
    """Check the program of a run without options in this manager's environment."""
    adapter = branch.adapter_class
    try:
        options = settle(adapter.name, adapter.options, {}, {})
    except OptionInvalid:
        return Health()  # this provider requires options
    return adapter.readiness(options, branch.environment({}).variables, "/")


def _checked(said: object) -> Health:
    """Return what an adapter said, if that is what it should say."""
    if isinstance(said, Health):
        return said
    return Health(state="fail", detail=f"it said {said!r}, which is no Health")
