"""Errors of adapters and of the negotiation of capabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.errors import SessionmgrError
from sessionmgr.process import ProcessError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.model import Negotiation


class SessionError(SessionmgrError):
    """Base class of errors about sessions with agents."""


class StartRefused(SessionError):
    """A run was refused: nothing was started or stored."""


class ProviderUnknown(StartRefused, LookupError):
    """No adapter has that name."""

    def __init__(self, name: str, known: Sequence[str], nearest: Sequence[str]) -> None:
        hint = f"did you mean {nearest[0]!r}? " if nearest else ""
        there = f"known: {', '.join(known)}" if known else "none is installed"
        super().__init__(f"unknown provider {name!r}; {hint}{there}")
        self.name = name
        self.known = tuple(known)


class AdapterBroken(StartRefused):
    """An adapter is installed, but cannot be loaded."""

    def __init__(self, name: str, where: str, why: str) -> None:
        super().__init__(f"adapter {name!r} ({where}) cannot be loaded: {why}")
        self.name = name
        self.where = where


class CapabilityMissing(StartRefused):
    """The provider lacks a required capability."""

    def __init__(self, provider: str, negotiation: Negotiation) -> None:
        from sessionmgr.model import CAPABILITIES, describe_capability

        missing = ", ".join(map(describe_capability, negotiation.missing))
        lost = set(negotiation.missing) <= set(CAPABILITIES)
        remedy = ": leave it out, or only prefer it (--prefer)" if lost else ""
        super().__init__(f"{provider} does not support {missing}{remedy}")
        self.provider = provider
        self.negotiation = negotiation


class PermissionRefused(StartRefused):
    """The provider has no mode that is at most as wide as the requested one."""

    def __init__(self, provider: str, mode: str, has: Sequence[str]) -> None:
        super().__init__(
            f"{provider} does not support permission_mode {mode}; "
            f"it supports: {', '.join(has) or 'none'}"
        )
        self.provider = provider
        self.mode = mode
        self.has = tuple(has)


class OptionInvalid(StartRefused, ValueError):
    """An option is unknown to this provider, or has a value of the wrong type."""

    def __init__(self, provider: str, why: str) -> None:
        super().__init__(f"options.{provider}: {why}")
        self.provider = provider


class SecretFileRefused(ProcessError):
    """Secret settings cannot be passed to a program in a private file; the text says why."""
