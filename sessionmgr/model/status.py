"""The status of a run: its states and transitions, as one table."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from sessionmgr.model.errors import IllegalTransition


class RunStatus(StrEnum):
    """Status of a run."""

    PENDING = "pending"
    """The run waits for its start."""
    RUNNING = "running"
    """The provider works on it."""
    COMPLETED = "completed"
    """The provider has finished it successfully."""
    FAILED = "failed"
    """The run failed; `failure` has the kind and the message."""
    CANCELLED = "cancelled"
    """The run was stopped; `reason` has the cause."""
    TIMED_OUT = "timed_out"
    """The run exceeded its deadline or a silence timeout."""
    RATE_LIMITED = "rate_limited"
    """A limit of the provider ended the run."""
    PAUSED = "paused"
    """The run was paused and can be resumed."""


class StatusEvent(StrEnum):
    """An event that changes the status of a run, by its type."""

    START = "run_started"
    COMPLETE = "run_completed"
    FAIL = "run_failed"
    CANCEL = "run_cancelled"
    TIME_OUT = "run_timed_out"
    LIMIT = "run_rate_limited"
    PAUSE = "run_paused"


_ENDS: Final = {
    StatusEvent.COMPLETE: RunStatus.COMPLETED,
    StatusEvent.FAIL: RunStatus.FAILED,
    StatusEvent.CANCEL: RunStatus.CANCELLED,
    StatusEvent.TIME_OUT: RunStatus.TIMED_OUT,
    StatusEvent.LIMIT: RunStatus.RATE_LIMITED,
    StatusEvent.PAUSE: RunStatus.PAUSED,
}

# A run that has not started may end, but can neither complete nor be paused for a resume.
_UNSTARTED: Final = {StatusEvent.COMPLETE, StatusEvent.PAUSE}

TRANSITIONS: Final[dict[RunStatus, dict[StatusEvent, RunStatus]]] = {
    RunStatus.PENDING: {
        StatusEvent.START: RunStatus.RUNNING,
        **{step: end for step, end in _ENDS.items() if step not in _UNSTARTED},
    },
    RunStatus.RUNNING: dict(_ENDS),
    RunStatus.COMPLETED: {},
    RunStatus.FAILED: {},
    RunStatus.CANCELLED: {},
    RunStatus.TIMED_OUT: {},
    RunStatus.RATE_LIMITED: {},
    RunStatus.PAUSED: {},
}

TERMINAL: Final = frozenset(status for status, steps in TRANSITIONS.items() if not steps)
TERMINAL_TYPES: Final = frozenset(step.value for step in _ENDS)
STATUS_EVENTS: Final = {step.value: step for step in StatusEvent}


def next_status(status: RunStatus, event_type: str) -> RunStatus:
    """Return the status after an event that is about to be stored.

    Raises:
        IllegalTransition: The event may not follow.
    """
    step = STATUS_EVENTS.get(event_type)
    if step is None:
        return status
    try:
        return TRANSITIONS[status][step]
    except KeyError:
        raise IllegalTransition(status, event_type) from None
