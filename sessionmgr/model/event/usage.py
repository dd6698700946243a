"""Events of usage: tokens, cost, context and rate limits."""

from __future__ import annotations

from typing import ClassVar, Literal

from sessionmgr.model.event.envelope import Event
from sessionmgr.model.failure import Failure
from sessionmgr.model.usage import NOTHING_USED, Provenance, Usage


class TokenUsageUpdated(Event, frozen=True, kw_only=True):
    """Further usage: `usage` and `cost` (US dollars) are the increase, `total` is the sum."""

    type: ClassVar[Literal["token_usage_updated"]]
    usage: Usage
    """Tokens since the last such event."""
    total: Usage = NOTHING_USED
    """Tokens of the run so far, if the provider reports them."""
    cost: float | None = None
    """US dollars since the last such event."""
    provenance: Provenance = Provenance.UNKNOWN
    """Source of the cost."""


class SessionStatsUpdated(Event, frozen=True, kw_only=True):
    """Statistics of the provider's session."""

    type: ClassVar[Literal["session_stats_updated"]]
    model: str | None = None
    """The model in use."""
    context_window: int | None = None
    """Size of the model's context in tokens."""
    context_used: int | None = None
    """Tokens in the context."""
    usage: Usage | None = None
    """Tokens of the session so far."""
    terminal_reason: str | None = None
    """The provider's reason for the end of the session."""


class CompactionStarted(Event, frozen=True, kw_only=True):
    """The provider begins to compact its context."""

    type: ClassVar[Literal["compaction_started"]]
    trigger: str | None = None
    """The cause, such as `auto` or `manual`."""


class CompactionCompleted(Event, frozen=True, kw_only=True):
    """The context is compacted."""

    type: ClassVar[Literal["compaction_completed"]]
    trigger: str | None = None
    """The cause, such as `auto` or `manual`."""


class CompactionFailed(Event, frozen=True, kw_only=True):
    """The compaction failed; the context is unchanged."""

    type: ClassVar[Literal["compaction_failed"]]
    trigger: str | None = None
    """The cause, such as `auto` or `manual`."""


class RateLimitUpdated(Event, frozen=True, kw_only=True):
    """The present state of a rate limit of the provider."""

    type: ClassVar[Literal["rate_limit_updated"]]
    bucket: str
    """The provider's name of the limit."""
    state: str
    """The provider's state of the limit, such as `allowed` or `rejected`."""
    resets_at: str | None = None
    """Time at which the limit resets (RFC 3339)."""
    utilisation: float | None = None
    """Used fraction of the limit, from 0 to 1."""


class RetryScheduled(Event, frozen=True, kw_only=True):
    """A failed step will be retried, by the provider or by sessionmgr."""

    type: ClassVar[Literal["retry_scheduled"]]
    by: Literal["provider", "us"]
    """Who retries: the provider itself, or sessionmgr."""
    attempt: int
    """Number of the next attempt."""
    delay: float | None = None
    """Seconds until the next attempt."""
    failure: Failure | None = None
    """The failure of the last attempt."""
