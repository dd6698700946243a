"""Base class of an adapter that leaves each run to one of several adapters, by its options.

The delegates are never messaged or named in the registry. They have the name and the options of
the adapter that owns them, so that records and errors name the provider alone.

    class WrenAdapter(DelegatingAdapter):
        name = "wren"
        options = WrenOptions
        delegates = (WrenServerAdapter, WrenOneShotAdapter)
        capabilities = combined_capabilities(*delegates)

        @classmethod
        def delegate(cls, options: Options) -> type[ProviderAdapter]:
            return WrenOneShotAdapter if WrenOptions.of(options).once else WrenServerAdapter
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar, Final

import trio
from msgspec.structs import replace

from sessionmgr.adapter import ProviderAdapter
from sessionmgr.adapter.kit.run_end import config_failure
from sessionmgr.model import CAPABILITIES, EMULATED, NATIVE, UNSUPPORTED, Capabilities

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.adapter import Health, Options, PermissionMap, RunContext, RunSpec

_LESS: Final = (UNSUPPORTED, EMULATED, NATIVE)


def combined_capabilities(*adapters: type[ProviderAdapter]) -> Capabilities:
    """Return what at least one of the adapters can."""
    most = {
        name: max((each.capabilities.support(name) for each in adapters), key=_LESS.index)
        for name in CAPABILITIES
    }
    return replace(Capabilities(), **most)


class DelegatingAdapter(ProviderAdapter):
    """Base class of adapters that execute runs by other adapters.

    A subclass declares what at least one of them can, and implements `delegate`. A delegate must
    not narrow the capabilities of the provider, of which the others may have more.
    """

    delegates: ClassVar[tuple[type[ProviderAdapter], ...]] = ()

    def __init__(self) -> None:
        super().__init__()
        self._delegates: Final = {each: each() for each in self.delegates}

    @classmethod
    def delegate(cls, options: Options) -> type[ProviderAdapter]:
        """Return which of `delegates` executes a run with these options."""
        raise NotImplementedError

    def _for(self, run: RunContext) -> ProviderAdapter:
        return self._delegates[self.delegate(run.options)]

    # --- what a run can --------------------------------------------------------------------------

    @classmethod
    def offers(cls, options: Options) -> Capabilities:
        """Return the capabilities of a run with these options."""
        return cls.delegate(options).offers(options)

    @classmethod
    def permission_map(cls, options: Options) -> PermissionMap:
        """Return the permission modes of a run with these options."""
        return cls.delegate(options).permission_map(options)

    @classmethod
    def fault(cls, spec: RunSpec) -> str | None:
        """Return why a run can never succeed, as `field: reason`; None if no reason is known."""
        return cls._unserved(spec) or cls.delegate(spec.options).fault(spec)

    @classmethod
    def _unserved(cls, run: RunContext | RunSpec) -> str | None:
        delegate = cls.delegate(run.options)
        for field in sorted(cls.serves - delegate.serves):
            if getattr(run, field) or (field == "tools_allowed" and run.tools_allowed is not None):
                return f"{field}: {delegate.display_name or cls.name} does not support it"
        return None

    @classmethod
    def readiness(cls, options: Options, env: Mapping[str, str], cwd: str) -> Health:
        """Return whether a run with these options could start."""
        return cls.delegate(options).readiness(options, env, cwd)

    async def health(self) -> Health:
        """Return whether a run without options could start."""
        await trio.lowlevel.checkpoint()
        return self.readiness(self.options(), os.environ, os.getcwd())  # noqa: PTH109, ASYNC240

    # --- runs ------------------------------------------------------------------------------------

    async def run(self, run: RunContext) -> None:
        """Execute one run by its delegate; no other one keeps its session open meanwhile."""
        fault = self._unserved(run)
        if fault is not None:
            await run.fail(config_failure(fault))
            return
        session, chosen = run.provider_session_id, self._for(run)
        for each in self._delegates.values():
            if session is not None and each is not chosen:
                each.release(session)
        await chosen.run(run)

    async def interrupt(self, run: RunContext) -> None:
        """Ask the provider to end the turn."""
        await self._for(run).interrupt(run)

    async def append(self, run: RunContext, content: str, message_id: str) -> bool:
        """Offer another message to the turn, and return whether it was accepted."""
        delegate = self._for(run)
        return delegate.can_append() and await delegate.append(run, content, message_id)

    def release(self, provider_session_id: str) -> None:
        """Release what any delegate keeps for a session."""
        for each in self._delegates.values():
            each.release(provider_session_id)
