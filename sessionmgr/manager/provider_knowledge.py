"""A manager's information about its providers before anything starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from sessionmgr.manager.checkup import check_up
from sessionmgr.manager.directory import absolute
from sessionmgr.manager.plan import Grant, RunWish, grant_of, readiness
from sessionmgr.model import UNSUPPORTED, Negotiation, Session, negotiate

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from sessionmgr.adapter.health import Health
    from sessionmgr.manager.manager_state import ManagerState
    from sessionmgr.manager.session_supervisor import SessionSupervisor


class ProviderKnowledge:
    """The part of a manager that reports the providers' capabilities and readiness."""

    _tables: ManagerState
    _keeping: SessionSupervisor

    def check(self, provider: str, wish: RunWish, *, cwd: str | Path = ".") -> Grant:
        """Return the grant that a run would get, without starting it.

        Raises:
            StartRefused: The run would be refused.
            VariableRefused: A child may not get a variable.
        """
        return grant_of(self._tables, self._thought_of(provider, cwd), wish)

    def readiness(self, provider: str, wish: RunWish, *, cwd: str | Path = ".") -> Health:
        """Check whether a run's program is installed and logged in, without starting it.

        Raises:
            StartRefused: The run would be refused.
            VariableRefused: A child may not get a variable.
        """
        return readiness(self._tables, self._thought_of(provider, cwd), wish)

    def _thought_of(self, provider: str, cwd: str | Path) -> Session:
        """Return a session that only serves to check a wish."""
        self._tables.require_here()
        self._keeping.know(provider)
        return Session(id="", provider=provider, cwd=absolute(cwd))

    async def negotiate(
        self,
        provider: str,
        *,
        require: Collection[str] = (),
        prefer: Collection[str] = (),
        require_native: Collection[str] = (),
    ) -> Negotiation:
        """Return a run's grant; missing capabilities are part of the answer.

        Raises:
            ProviderUnknown: The provider does not exist.
        """
        self._tables.require_here()
        await trio.lowlevel.checkpoint()
        offered = self._keeping.know(provider).capabilities
        return negotiate(offered, require=require, prefer=prefer, require_native=require_native)

    def supports(self, provider: str, capability: str) -> bool:
        """Return whether a provider has a capability, natively or by the adapter's emulation.

        Raises:
            ProviderUnknown: The provider does not exist.
        """
        offered = self._keeping.know(provider).capabilities
        return offered.support(capability) is not UNSUPPORTED

    def runs_commands(self, provider: str) -> bool:
        """Return whether a provider's prompts are commands, which run without an agent's judgement.

        Raises:
            ProviderUnknown: The provider does not exist.
        """
        return self._keeping.know(provider).adapter_class.runs_commands

    async def health(self, providers: Collection[str] | None = None) -> dict[str, Health]:
        """Check whether these providers, or all installed ones, are usable now.

        A provider that crashes or does not answer within the `start` clock fails; `detail` says so.

        Raises:
            ProviderUnknown: A provider does not exist.
        """
        self._tables.require_here()
        return await check_up(self._keeping, self._tables, providers)
