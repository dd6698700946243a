"""What it takes: tokens, money, context, patience with rate limits."""

from __future__ import annotations

from typing import ClassVar, Literal

from sessionmgr.model.event.envelope import Event
from sessionmgr.model.failure import Failure
from sessionmgr.model.usage import NOTHING_USED, Provenance, Usage


class TokenUsageUpdated(Event, frozen=True, kw_only=True):
    """More was used: `usage` and `cost` (in usd) are what is new, `total` what it comes to."""

    type: ClassVar[Literal["token_usage_updated"]]
    usage: Usage
    total: Usage = NOTHING_USED
    cost: float | None = None
    provenance: Provenance = Provenance.UNKNOWN


class SessionStatsUpdated(Event, frozen=True, kw_only=True):
    """How the provider's session stands."""

    type: ClassVar[Literal["session_stats_updated"]]
    model: str | None = None
    context_window: int | None = None
    context_used: int | None = None
    usage: Usage | None = None
    terminal_reason: str | None = None


class CompactionStarted(Event, frozen=True, kw_only=True):
    """The provider begins to shorten its context."""

    type: ClassVar[Literal["compaction_started"]]
    trigger: str | None = None


class CompactionCompleted(Event, frozen=True, kw_only=True):
    """The context is shorter."""

    type: ClassVar[Literal["compaction_completed"]]
    trigger: str | None = None


class CompactionFailed(Event, frozen=True, kw_only=True):
    """The context is as long as before."""

    type: ClassVar[Literal["compaction_failed"]]
    trigger: str | None = None


class RateLimitUpdated(Event, frozen=True, kw_only=True):
    """How near a limit of the provider is."""

    type: ClassVar[Literal["rate_limit_updated"]]
    bucket: str
    state: str
    resets_at: str | None = None
    utilisation: float | None = None


class RetryScheduled(Event, frozen=True, kw_only=True):
    """Something failed and will be tried again, by the provider or by us."""

    type: ClassVar[Literal["retry_scheduled"]]
    by: Literal["provider", "us"]
    attempt: int
    delay: float | None = None
    failure: Failure | None = None
