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


class VariantUnknown(ProviderUnknown):
    """The provider has no such variant, or the part of its name after the colon is wrong."""

    def __init__(self, provider: str, variant: str, why: str, *, known: Sequence[str] = ()) -> None:
        StartRefused.__init__(self, f"unknown provider {f'{provider}:{variant}'!r}; {why}")
        self.name = f"{provider}:{variant}"
        self.known = tuple(f"{provider}:{each}" for each in known)


class AgentsFileInvalid(StartRefused, ValueError):
    """The registry file of agents is missing, unreadable or has an invalid entry."""

    def __init__(self, file: str, why: str) -> None:
        super().__init__(f"agents file {file}: {why}")
        self.file = file


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

        unknown = [name for name in negotiation.missing if name not in CAPABILITIES]
        if unknown:
            said = ", ".join(map(describe_capability, unknown))
            why = f"unknown capability {said}; sessionmgr adapters {provider} lists the known ones"
        else:
            names = negotiation.missing
            remedy = f"remove it, or make it optional (--prefer {','.join(names)})"
            why = f"{provider} does not support {', '.join(names)}; {remedy}"
        super().__init__(why)
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
