"""The frames of `codex exec` as events, and a run's share of its thread's usage.

Nothing streams here: messages arrive complete. Except for the thread and the final error, the
events are those of an app-server's frames.
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
from sessionmgr_adapters.codex.bounded_dict import MAX_ENTRIES, BoundedDict
from sessionmgr_adapters.codex.failures import failure_of_end
from sessionmgr_adapters.codex.normalise import normalise as of_turn, start_events, token_usage
from sessionmgr_adapters.codex.state import CodexState

if TYPE_CHECKING:
    from sessionmgr.model import Event, Failure, Permission
    from sessionmgr_adapters.codex.frames import CodexFrame, CodexTokenCounts


class ExecState(CodexState):
    """The state of a run between frames."""

    def __init__(self, permission: Permission | None = None, model: str | None = None) -> None:
        super().__init__()
        self.permission = permission
        self.model = model  # `codex exec` does not report its model
        self.started = True  # it reports its thread first, so no event is held back
        self.last_turn: frames.TurnEndedNotice | None = None
        self.last_error: frames.TurnError | None = None
        """The last error, whether or not the turn has ended with it."""

    @property
    def failure(self) -> Failure | None:
        """The error with which the turn failed, or the last error if no turn has ended."""
        if self.last_turn is not None:
            return failure_of_end(self.last_turn.turn, self)
        if self.last_error is not None:
            return failure_of_end(
                frames.CodexTurn(id="", status="failed", error=self.last_error), self
            )
        return None


def normalise(frame: CodexFrame, state: ExecState) -> list[Event]:
    """Return the events for a frame; empty if it is not about the run."""
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
            state.last_error = error
        case _:
            pass
    return of_turn(frame, state)


class ThreadMeters:
    """The last usage readings of known threads, for the next process that resumes one."""

    def __init__(self, limit: int = MAX_ENTRIES) -> None:
        self._ledgers: Final = BoundedDict[str, UsageLedger](limit)

    def begin(self, thread: str) -> None:
        """Record that a thread is new: all its usage is ours."""
        if thread not in self._ledgers:
            self._ledgers[thread] = UsageLedger()

    def record_usage(self, thread: str, counts: CodexTokenCounts) -> TokenUsageUpdated | None:
        """Return the usage since the last reading; None if there is none, or it cannot be known.

        The first reading of a thread that was not started here includes the usage of others.
        """
        ledger = self._ledgers.get(thread)
        report = UsageReport(kind="total", provider_session_id=thread, usage=token_usage(counts))
        read, booking = (ledger or UsageLedger()).book(report)
        # Only the reading is stored; the total counts from the start of a run.
        self._ledgers[thread] = UsageLedger(meters=read.meters)
        if ledger is None or booking.usage == Usage():
            return None
        return TokenUsageUpdated(usage=booking.usage, total=booking.total)
