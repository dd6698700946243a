"""Errors that adapters and the negotiation with them raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.errors import SessionmgrError
from sessionmgr.process import ProcessError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.model import Negotiation


class SessionError(SessionmgrError):
    """Something about sessions with agents."""


class StartRefused(SessionError):
    """A run was refused: nothing was started, and nothing stored."""


class ProviderUnknown(StartRefused, LookupError):
    """There is no adapter of that name."""

    def __init__(self, name: str, known: Sequence[str], nearest: Sequence[str]) -> None:
        hint = f"did you mean {nearest[0]!r}? " if nearest else ""
        there = f"there are: {', '.join(known)}" if known else "none is installed"
        super().__init__(f"there is no provider {name!r}; {hint}{there}")
        self.name = name
        self.known = tuple(known)


class AdapterBroken(StartRefused):
    """An adapter is installed, and cannot be loaded."""

    def __init__(self, name: str, where: str, why: str) -> None:
        super().__init__(f"the adapter {name!r} ({where}) cannot be loaded: {why}")
        self.name = name
        self.where = where


class CapabilityMissing(StartRefused):
    """The provider cannot do what is required of it."""

    def __init__(self, provider: str, negotiation: Negotiation) -> None:
        from sessionmgr.model import CAPABILITIES, describe_capability

        missing = ", ".join(map(describe_capability, negotiation.missing))
        lost = set(negotiation.missing) <= set(CAPABILITIES)
        remedy = ": leave it out, or only prefer it (--prefer)" if lost else ""
        super().__init__(f"{provider} does not support {missing}{remedy}")
        self.provider = provider
        self.negotiation = negotiation


class PermissionRefused(StartRefused):
    """The provider has no mode that would be no wider than the one asked for."""

    def __init__(self, provider: str, mode: str, has: Sequence[str]) -> None:
        super().__init__(
            f"{provider} has no permission mode {mode}; it has: {', '.join(has) or 'none'}"
        )
        self.provider = provider
        self.mode = mode
        self.has = tuple(has)


class OptionInvalid(StartRefused, ValueError):
    """An option is not one of this provider's, or has a value of another type."""

    def __init__(self, provider: str, why: str) -> None:
        super().__init__(f"options of {provider}: {why}")
        self.provider = provider


class SecretFileRefused(ProcessError):
    """Secret settings cannot be passed to a program in a private file; the text says why."""
