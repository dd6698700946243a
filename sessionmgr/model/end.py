"""What can end a run, and what that makes of it: one row each."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from sessionmgr.model.failure import FailureKind
from sessionmgr.model.status import RunStatus


class Reason(StrEnum):
    """Why a run ended, where that was not the provider's doing."""

    USER = "user"
    """A user or program cancelled the run."""
    SHUTDOWN = "shutdown"
    """The program or its manager ended."""
    SUPERSEDED = "superseded"
    """A newer attempt took over."""
    DEADLINE = "deadline"
    """The run exceeded its deadline."""
    IDLE = "idle"
    """The run was silent for longer than a timeout."""
    BUDGET = "budget"
    """The run exceeded its budget."""
    PAUSE = "pause"
    """A user or program paused the run."""


class Cause(StrEnum):
    """Who or what ended a run."""

    PROVIDER = "the provider, well"
    PROVIDER_ERROR = "the provider, with an error"
    RATE_LIMIT = "a rate limit that was not waited for"
    CALLER = "the caller"
    SHUTDOWN = "manager or program going down"
    NEWER_ATTEMPT = "a newer attempt took over"
    DEADLINE = "the deadline"
    SILENCE = "start, model or idle clock"
    BUDGET = "the budget"
    PAUSE = "pause"
    CAPABILITY = "what it required is not there"
    ADAPTER_CRASH = "adapter crash"
    MANAGER_CRASH = "manager crash"


class End(NamedTuple):
    """What a cause makes of a run. No kind for an error of the provider: that brings its own."""

    status: RunStatus
    kind: FailureKind | None
    reason: Reason | None
    exit_code: int


_RAN: Final = 0
_NOT_ALL_WELL: Final = 3
_INTERRUPTED: Final = 130

ENDS: Final[dict[Cause, End]] = {
    Cause.PROVIDER: End(RunStatus.COMPLETED, None, None, _RAN),
    Cause.PROVIDER_ERROR: End(RunStatus.FAILED, None, None, _NOT_ALL_WELL),
    Cause.RATE_LIMIT: End(RunStatus.RATE_LIMITED, FailureKind.RATE_LIMITED, None, _NOT_ALL_WELL),
    Cause.CALLER: End(RunStatus.CANCELLED, None, Reason.USER, _NOT_ALL_WELL),
    Cause.SHUTDOWN: End(RunStatus.CANCELLED, None, Reason.SHUTDOWN, _INTERRUPTED),
    Cause.NEWER_ATTEMPT: End(RunStatus.CANCELLED, None, Reason.SUPERSEDED, _NOT_ALL_WELL),
    Cause.DEADLINE: End(RunStatus.TIMED_OUT, FailureKind.TIMED_OUT, Reason.DEADLINE, _NOT_ALL_WELL),
    Cause.SILENCE: End(RunStatus.TIMED_OUT, FailureKind.STALLED, Reason.IDLE, _NOT_ALL_WELL),
    Cause.BUDGET: End(RunStatus.FAILED, FailureKind.BUDGET_EXCEEDED, Reason.BUDGET, _NOT_ALL_WELL),
    Cause.PAUSE: End(RunStatus.PAUSED, None, Reason.PAUSE, _RAN),
    Cause.CAPABILITY: End(RunStatus.FAILED, FailureKind.CAPABILITY_MISSING, None, _NOT_ALL_WELL),
    Cause.ADAPTER_CRASH: End(RunStatus.FAILED, FailureKind.ADAPTER_CRASHED, None, _NOT_ALL_WELL),
    Cause.MANAGER_CRASH: End(RunStatus.FAILED, FailureKind.MANAGER_CRASHED, None, _NOT_ALL_WELL),
}
