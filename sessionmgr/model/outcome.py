"""Outcomes of a run: one table from the cause of its end to status, failure kind and exit code."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from sessionmgr.model.failure import FailureKind
from sessionmgr.model.status import RunStatus


class EndReason(StrEnum):
    """Why a run ended, if the provider did not end it."""

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


class EndCause(StrEnum):
    """The cause of a run's end."""

    PROVIDER = "the provider reports success"
    PROVIDER_ERROR = "the provider reports an error"
    RATE_LIMIT = "a rate limit that no retry waits for"
    CALLER = "the caller"
    SHUTDOWN = "shutdown of the program or its manager"
    NEWER_ATTEMPT = "a newer attempt took over"
    DEADLINE = "the deadline"
    SILENCE = "start, model or idle timeout"
    BUDGET = "the budget"
    PAUSE = "pause"
    CAPABILITY = "a required capability is missing"
    ADAPTER_CRASH = "adapter crash"
    MANAGER_CRASH = "manager crash"


class RunOutcome(NamedTuple):
    """The outcome for one cause.

    `kind` is None for an error of the provider, whose failure has a kind of its own.
    """

    status: RunStatus
    kind: FailureKind | None
    reason: EndReason | None
    exit_code: int


_EXIT_OK: Final = 0
_EXIT_FAILED: Final = 3
_EXIT_INTERRUPTED: Final = 130

OUTCOMES: Final[dict[EndCause, RunOutcome]] = {
    EndCause.PROVIDER: RunOutcome(RunStatus.COMPLETED, None, None, _EXIT_OK),
    EndCause.PROVIDER_ERROR: RunOutcome(RunStatus.FAILED, None, None, _EXIT_FAILED),
    EndCause.RATE_LIMIT: RunOutcome(
        RunStatus.RATE_LIMITED, FailureKind.RATE_LIMITED, None, _EXIT_FAILED
    ),
    EndCause.CALLER: RunOutcome(RunStatus.CANCELLED, None, EndReason.USER, _EXIT_FAILED),
    EndCause.SHUTDOWN: RunOutcome(RunStatus.CANCELLED, None, EndReason.SHUTDOWN, _EXIT_INTERRUPTED),
    EndCause.NEWER_ATTEMPT: RunOutcome(
        RunStatus.CANCELLED, None, EndReason.SUPERSEDED, _EXIT_FAILED
    ),
    EndCause.DEADLINE: RunOutcome(
        RunStatus.TIMED_OUT, FailureKind.TIMED_OUT, EndReason.DEADLINE, _EXIT_FAILED
    ),
    EndCause.SILENCE: RunOutcome(
        RunStatus.TIMED_OUT, FailureKind.STALLED, EndReason.IDLE, _EXIT_FAILED
    ),
    EndCause.BUDGET: RunOutcome(
        RunStatus.FAILED, FailureKind.BUDGET_EXCEEDED, EndReason.BUDGET, _EXIT_FAILED
    ),
    EndCause.PAUSE: RunOutcome(RunStatus.PAUSED, None, EndReason.PAUSE, _EXIT_OK),
    EndCause.CAPABILITY: RunOutcome(
        RunStatus.FAILED, FailureKind.CAPABILITY_MISSING, None, _EXIT_FAILED
    ),
    EndCause.ADAPTER_CRASH: RunOutcome(
        RunStatus.FAILED, FailureKind.ADAPTER_CRASHED, None, _EXIT_FAILED
    ),
    EndCause.MANAGER_CRASH: RunOutcome(
        RunStatus.FAILED, FailureKind.MANAGER_CRASHED, None, _EXIT_FAILED
    ),
}
