"""`codex exec`'s frames to events, and what its thread has used to what the run has used.

Nothing is streamed here: a message comes whole. But for the thread that it is on and its last word,
the events are those of an app-server's frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.model import (
    ProviderSessionUpdated,
    TokenUsageUpdated,
    Usage,
    UsageLedger,
    UsageReport,
)
from sessionmgr_adapters.codex import frames
from sessionmgr_adapters.codex.bounded_dict import KEPT, BoundedDict
from sessionmgr_adapters.codex.failures import failure_of_end
from sessionmgr_adapters.codex.normalise import normalise as of_turn, start_events, token_usage
from sessionmgr_adapters.codex.state import CodexState

if TYPE_CHECKING:
    from sessionmgr.model import Event, Failure, Permission
    from sessionmgr_adapters.codex.frames import CodexFrame, CodexTokenCounts


class ExecState(CodexState):
    """What must be remembered of a run from one frame to the next."""

    def __init__(self, permission: Permission | None = None, model: str | None = None) -> None:
        super().__init__()
        self.permission = permission
        self.model = model  # it does not say which one it takes
        self.started = True  # its thread is what it tells first: nothing is held back until then
        self.last_turn: frames.TurnEndedNotice | None = None
        self.complaint: frames.TurnError | None = None
        """What went wrong last, whether a turn's end has come of it or not."""

    @property
    def failure(self) -> Failure | None:
        """What its turn has failed with, or what went wrong where no end of a turn came."""
        if self.last_turn is not None:
            return failure_of_end(self.last_turn.turn, self)
        if self.complaint is not None:
            return failure_of_end(
                frames.CodexTurn(id="", status="failed", error=self.complaint), self
            )
        return None


def normalise(frame: CodexFrame, state: ExecState) -> list[Event]:
    """Return the events that a frame is; none if it is not about what happens in the run."""
    match frame:
        case frames.ThreadStartedNotice(thread=thread):
            before, state.thread = state.thread, thread.id
            if not before:
                return start_events(state)
            is_new = before != thread.id
            return [ProviderSessionUpdated(provider_session_id=thread.id)] if is_new else []
        case frames.TurnEndedNotice():
            state.last_turn = frame
        case frames.ErrorNotice(will_retry=False, error=error):
            state.complaint = error
        case _:
            pass
    return of_turn(frame, state)


class ThreadMeters:
    """The last readings of the threads that were seen, for the next process that goes on in one."""

    def __init__(self, kept: int = KEPT) -> None:
        self._ledgers: Final = BoundedDict[str, UsageLedger](kept)

    def begin(self, thread: str) -> None:
        """Note that a thread is new: all that it shows from now on is ours."""
        if thread not in self._ledgers:
            self._ledgers[thread] = UsageLedger()

    def record_usage(self, thread: str, counts: CodexTokenCounts) -> TokenUsageUpdated | None:
        """Return what was used since the last reading; None if nothing, or nobody can know.

        The first reading of a thread that was not begun here shows what others have used, too.
        """
        ledger = self._ledgers.get(thread)
        report = UsageReport(kind="total", provider_session_id=thread, usage=token_usage(counts))
        read, booking = (ledger or UsageLedger()).book(report)
        # What is kept is the meter alone: the total counts from the beginning of a run.
        self._ledgers[thread] = UsageLedger(meters=read.meters)
        if ledger is None or booking.usage == Usage():
            return None
        return TokenUsageUpdated(usage=booking.usage, total=booking.total)
