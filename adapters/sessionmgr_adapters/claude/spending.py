"""What a child of Claude Code has used, as deltas: from what it says is new, else from its meters.

Its totals count over the whole of a session, however many processes have served it, and a resumed
session shows what it has used before. Newer ones say beside that what is new since the last result.
Older ones do not: of the first result of a session that was resumed, only the turn's own count is
known then, and no money.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.model import Provenance, TokenUsageUpdated, Usage
from sessionmgr.model.ledger import UsageLedger, UsageReport
from sessionmgr_adapters.claude.frames import ModelUsage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr_adapters.claude.frames import Result, TokenCounts


class Spending:
    """Books the results of one child, in their order."""

    def __init__(self, *, resumed: bool = False) -> None:
        self._ledger = UsageLedger()
        self._is_behind = resumed
        """Whether the meters already show something that nobody has read."""

    @property
    def total(self) -> Usage:
        """All that was booked."""
        return self._ledger.total

    def book(self, result: Result) -> TokenUsageUpdated | None:
        """Return what a result adds; None if nothing."""
        report = self._report(result)
        self._ledger, booking = self._ledger.book(report)
        self._is_behind = False
        if booking.usage == Usage() and not booking.usd:
            return None
        return TokenUsageUpdated(
            usage=booking.usage,
            total=booking.total,
            cost=booking.usd,
            provenance=booking.provenance,
        )

    def _report(self, result: Result) -> UsageReport:
        if result.since_last is not None:
            return UsageReport(
                kind="delta",
                provider_session_id=result.session_id,
                usage=_sum(result.since_last),
                usd=sum(each.cost_usd for each in result.since_last.values()),
                provenance=Provenance.REPORTED,
            )
        meters = UsageReport(
            kind="total",
            provider_session_id=result.session_id,
            usage=_sum(result.model_usage),
            usd=result.total_cost_usd,
            provenance=Provenance.REPORTED,
        )
        if not self._is_behind:
            return meters
        total = self._ledger
        read, _ = self._ledger.book(meters)
        self._ledger = UsageLedger(total=total.total, cost=total.cost, meters=read.meters)
        turn = usage_of(result.usage) if result.usage else Usage()
        return UsageReport(kind="delta", provider_session_id=result.session_id, usage=turn)


def usage_of(counts: ModelUsage | TokenCounts) -> Usage:
    """Return what a model was used for."""
    return Usage(
        input=int(counts.input_tokens or 0),
        cached_input=int(counts.cache_read_input_tokens or 0),
        cache_write=int(counts.cache_creation_input_tokens or 0),
        output=int(counts.output_tokens or 0),
        reasoning=int(counts.thinking_tokens) if isinstance(counts, ModelUsage) else 0,
    )


def _sum(models: Mapping[str, ModelUsage]) -> Usage:
    return sum(map(usage_of, models.values()), Usage())
