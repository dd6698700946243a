"""The terminal events of runs: the event for each reason of an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.adapter import StopReason
from sessionmgr.model import (
    OUTCOMES,
    TERMINAL_TYPES,
    Cost,
    EndCause,
    ErrorOccurred,
    Failure,
    FailureKind,
    RunCancelled,
    RunFailed,
    RunPaused,
    RunRateLimited,
    RunStatus,
    RunTimedOut,
    TurnCompleted,
)

if TYPE_CHECKING:
    from sessionmgr.model import Event, Run, RunEnded

_TERMINAL_EVENTS: Final[dict[RunStatus, type[RunEnded]]] = {
    RunStatus.FAILED: RunFailed,
    RunStatus.CANCELLED: RunCancelled,
    RunStatus.TIMED_OUT: RunTimedOut,
    RunStatus.RATE_LIMITED: RunRateLimited,
    RunStatus.PAUSED: RunPaused,
}
PROVIDER_CAUSES: Final = {EndCause.PROVIDER, EndCause.PROVIDER_ERROR, EndCause.RATE_LIMIT}
"""The causes of ends that providers report."""


def terminal_event(stop: StopReason, run: Run) -> RunEnded:
    """Return the terminal event for `stop`."""
    if stop.cause is EndCause.PROVIDER:  # the provider's own event could not be stored
        stop = StopReason(cause=EndCause.ADAPTER_CRASH, failure=crash_failure(None))
    end = OUTCOMES[stop.cause]
    failure = stop.failure
    if failure is None and end.kind is not None:
        failure = Failure(
            kind=end.kind,
            message=stop.detail or stop.cause.value,
            # Its provider session is unchanged, regardless of what ended the run.
            resumable=run.provider_session_id is not None,
        )
    elif failure is not None and stop.cause is EndCause.ADAPTER_CRASH:
        failure = replace(failure, resumable=run.provider_session_id is not None)
    return _TERMINAL_EVENTS[end.status](
        failure=failure, reason=end.reason, detail=stop.detail, usage=run.usage, cost=run.cost
    )


def crash_failure(error: BaseException | None) -> Failure:
    """Return the failure of a run whose adapter returned or raised without a terminal event."""
    if error is None:
        message = "the adapter's run returned without telling how it ended"
    elif not isinstance(error, Exception):
        message = "its provider went down"
    else:
        message = f"the adapter crashed: {type(error).__name__}: {error}"
    return Failure(kind=FailureKind.ADAPTER_CRASHED, message=message)


def late_end_event(event: RunEnded) -> tuple[Event, ...]:
    """Convert a terminal event that came too late into events that can still be stored."""
    assert event.type in TERMINAL_TYPES
    turn = TurnCompleted(stop_reason=event.stop_reason)
    if event.failure is None:
        return (turn,)
    return (ErrorOccurred(failure=event.failure, severity="warning"), turn)


def interrupted_event(run: Run, why: str) -> RunFailed:
    """Return the terminal event of a run that its recorder has left open."""
    failure = Failure(
        kind=FailureKind.MANAGER_CRASHED,
        message=why,
        retryable=True,
        resumable=run.provider_session_id is not None,
    )
    # Its usage after its last report is unknown.
    cost = run.cost + Cost()
    return RunFailed(failure=failure, usage=run.usage, cost=cost, synthetic=True)
