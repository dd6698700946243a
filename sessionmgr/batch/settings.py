"""Settings of a batch as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.batch.denials import ON_DENIED, OnDenied
from sessionmgr.batch.job import Job
from sessionmgr.batch.restart import RetryFrom
from sessionmgr.model import FailureKind, Json

if TYPE_CHECKING:
    from collections.abc import Collection


AT_ONCE: Final = 4
"""Default number of concurrent jobs."""


class BatchSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Checked settings of a batch."""

    concurrency: int | None = None
    """None: the larger of 4 and the sum of the limits of all providers."""
    per_provider: Mapping[str, int]
    retries: int = 2
    retry_on: frozenset[FailureKind] | None = None
    retry_from: RetryFrom = RetryFrom.SESSION
    max_failures: int | None = None
    keep_failed: bool = False
    force: bool = False
    on_denied: OnDenied = "warn"
    """How a completed job with denials counts: completed, or failed."""
    ignore_pauses: bool = False
    limit: int | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    defaults: Job | None = None
    provider_defaults: Mapping[str, Job] = {}
    """The defaults of each provider, which override `defaults`."""
    sources: Mapping[str, str] = {}
    """The source of each default; that of a provider's has the key `provider.NAME.FIELD`."""
    options: Mapping[str, Mapping[str, Json]]
    """Default options for each provider."""

    def __post_init__(self) -> None:
        for name, least in {"concurrency": 1, "retries": 0, "max_failures": 1, "limit": 0}.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name}: expected at least {least}, got {value}")
        if self.on_denied not in ON_DENIED:
            raise ValueError(f"on_denied: expected 'warn' or 'fail', got {self.on_denied!r}")
        for provider, at_once in self.per_provider.items():
            if at_once < 1:
                raise ValueError(f"per_provider[{provider!r}]: expected at least 1, got {at_once}")

    @property
    def at_once(self) -> int:
        """Maximum number of concurrent jobs."""
        if self.concurrency is not None:
            return self.concurrency
        return max(AT_ONCE, sum(self.per_provider.values()))

    def provider_limit(self, provider: str) -> int:
        """Return the maximum number of concurrent jobs of a provider."""
        usual = AT_ONCE if self.concurrency is None else self.concurrency
        return self.per_provider.get(provider, usual)

    def source_of(self, field: str, provider: str) -> str:
        """Return the source of a default for a provider's jobs; empty if it is unknown."""
        of_provider = self.provider_defaults.get(provider)
        if of_provider is not None and getattr(of_provider, field, None) is not None:
            return self.sources.get(f"provider.{provider}.{field}", "")
        return self.sources.get(field, "")

    def selects(self, job: str) -> bool:
        """Return whether `only` and `skip` select a job."""
        if self.only and not any(fnmatchcase(job, glob) for glob in self.only):
            return False
        return not any(fnmatchcase(job, glob) for glob in self.skip)


def retry_from(name: str) -> RetryFrom:
    """Return the policy of this name.

    Raises:
        ValueError: The name is unknown.
    """
    try:
        return RetryFrom(name)
    except ValueError:
        known = ", ".join(RetryFrom)
        raise ValueError(f"retry_from: expected one of {known}; got {name!r}") from None


def failure_kinds(names: Collection[str]) -> frozenset[FailureKind]:
    """Return the failure kinds of these names.

    Raises:
        ValueError: A name is unknown.
    """
    known = [kind.value for kind in FailureKind]
    for name in names:
        if name not in known:
            nearest = get_close_matches(name, known, n=1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"known: {', '.join(known)}"
            raise ValueError(f"retry_on: unknown kind of failure {name!r}; {hint}")
    return frozenset(FailureKind(name) for name in names)
