"""What a run has used, where Codex says only what its thread has used since it began."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from sessionmgr.model import Provenance, TokenUsageUpdated, Usage
from sessionmgr.model.ledger import UsageLedger, UsageReport

if TYPE_CHECKING:
    from sessionmgr_adapters.codex.exec.frames import Counts

KEPT: Final = 4096
"""Threads whose meter is remembered."""


class Meters:
    """The last readings of the threads that were seen, for the next process that goes on in one."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept: Final = kept
        self._ledgers: Final = OrderedDict[str, UsageLedger]()

    def begin(self, thread: str) -> None:
        """Note that a thread is new: all that it shows from now on is ours."""
        self._ledgers.setdefault(thread, UsageLedger())

    def book(self, thread: str, counts: Counts) -> TokenUsageUpdated | None:
        """Return what was used since the last reading; None if nothing, or nobody can know.

        The first reading of a thread that was not begun here shows what others have used, too.
        """
        ledger = self._ledgers.pop(thread, None)
        report = UsageReport(
            kind="total",
            provider_session_id=thread,
            usage=used(counts),
            provenance=Provenance.UNKNOWN,
        )
        read, booking = (ledger or UsageLedger()).book(report)
        # What is kept is the meter alone: the total counts from the beginning of a run.
        self._ledgers[thread] = UsageLedger(meters=read.meters)
        while len(self._ledgers) > self._kept:
            self._ledgers.popitem(last=False)
        if ledger is None or booking.usage == Usage():
            return None
        return TokenUsageUpdated(usage=booking.usage, total=booking.total)


def used(counts: Counts) -> Usage:
    """Return counts as ours: what has to do with the cache is no part of the input here."""
    cached = counts.cached_input_tokens + counts.cache_write_input_tokens
    return Usage(
        input=max(0, counts.input_tokens - cached),
        cached_input=counts.cached_input_tokens,
        cache_write=counts.cache_write_input_tokens,
        output=counts.output_tokens,
        reasoning=counts.reasoning_output_tokens,
    )
