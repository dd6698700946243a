"""What a run has used, where Codex says only what its thread has used since it began."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.model import TokenUsageUpdated, Usage
from sessionmgr.model.ledger import UsageLedger, UsageReport
from sessionmgr_adapters.codex.normalise import usage_of
from sessionmgr_adapters.codex.recent import KEPT, Recent

if TYPE_CHECKING:
    from sessionmgr_adapters.codex.frames import TokenCounts


class Meters:
    """The last readings of the threads that were seen, for the next process that goes on in one."""

    def __init__(self, kept: int = KEPT) -> None:
        self._ledgers: Final = Recent[str, UsageLedger](kept)

    def begin(self, thread: str) -> None:
        """Note that a thread is new: all that it shows from now on is ours."""
        if thread not in self._ledgers:
            self._ledgers[thread] = UsageLedger()

    def book(self, thread: str, counts: TokenCounts) -> TokenUsageUpdated | None:
        """Return what was used since the last reading; None if nothing, or nobody can know.

        The first reading of a thread that was not begun here shows what others have used, too.
        """
        ledger = self._ledgers.get(thread)
        report = UsageReport(kind="total", provider_session_id=thread, usage=usage_of(counts))
        read, booking = (ledger or UsageLedger()).book(report)
        # What is kept is the meter alone: the total counts from the beginning of a run.
        self._ledgers[thread] = UsageLedger(meters=read.meters)
        if ledger is None or booking.usage == Usage():
            return None
        return TokenUsageUpdated(usage=booking.usage, total=booking.total)
