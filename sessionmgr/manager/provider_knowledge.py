"""What a manager can say of its providers before anything is started."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import trio

from sessionmgr.manager.checkup import check_up
from sessionmgr.manager.plan import Grant, RunWish, grant_of, readiness
from sessionmgr.model import UNSUPPORTED, Negotiation, Session, negotiate

if TYPE_CHECKING:
    from collections.abc import Collection

    from sessionmgr.manager.keeping import Keeping
    from sessionmgr.manager.tables import Tables
    from sessionmgr.provider.health import Health


class ProviderKnowledge:
    """The part of a manager that says what providers can do, and whether they are ready."""

    _tables: Tables
    _keeping: Keeping

    def check(self, provider: str, wish: RunWish, *, cwd: str | Path = ".") -> Grant:
        """Say what a run would be granted if it were started; nothing is.

        Raises:
            StartRefused: Nothing: it would be refused, and so.
            VariableRefused: A variable may not be given to a child.
        """
        return grant_of(self._tables, self._thought_of(provider, cwd), wish)

    def readiness(self, provider: str, wish: RunWish, *, cwd: str | Path = ".") -> Health:
        """Say whether the program that a run needs is installed and logged in; nothing is started.

        Raises:
            StartRefused: The run would be refused.
            VariableRefused: A variable may not be given to a child.
        """
        return readiness(self._tables, self._thought_of(provider, cwd), wish)

    def _thought_of(self, provider: str, cwd: str | Path) -> Session:
        """Return a session that is only used to check a wish."""
        self._tables.require_here()
        self._keeping.know(provider)
        return Session(id="", provider=provider, cwd=str(Path(cwd).absolute()))

    async def negotiate(
        self,
        provider: str,
        *,
        require: Collection[str] = (),
        prefer: Collection[str] = (),
        require_native: Collection[str] = (),
    ) -> Negotiation:
        """Ask what would be granted; what is missing is in the answer.

        Raises:
            ProviderUnknown: There is no such provider.
        """
        self._tables.require_here()
        await trio.lowlevel.checkpoint()
        offered = self._keeping.know(provider).capabilities
        return negotiate(offered, require=require, prefer=prefer, require_native=require_native)

    def supports(self, provider: str, capability: str) -> bool:
        """Say whether a provider has a capability, be it by the adapter's help.

        Raises:
            ProviderUnknown: There is no such provider.
        """
        offered = self._keeping.know(provider).capabilities
        return offered.support(capability) is not UNSUPPORTED

    def runs_commands(self, provider: str) -> bool:
        """Say whether a provider's prompts are commands, which no agent weighs.

        Raises:
            ProviderUnknown: There is no such provider.
        """
        return self._keeping.know(provider).adapter_class.runs_commands

    async def health(self, providers: Collection[str] | None = None) -> dict[str, Health]:
        """Ask providers whether they could be used now: these, or all there are.

        Who crashes or does not answer within the `start` clock fails, and `detail` says so.

        Raises:
            ProviderUnknown: There is none of such a name.
        """
        self._tables.require_here()
        return await check_up(self._keeping, self._tables, providers)
