"""The phases of a run, and the steps between them, as a table."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class RunPhase(StrEnum):
    """The phase of a run between its admission and the end of its task."""

    WAITING = "waiting"
    """It is admitted; an earlier run of the session has not ended."""
    DISPATCHED = "dispatched"
    """It is the active run: its prompt is stored, then its task is started."""
    RUNNING = "running"
    """Its task runs."""
    STOPPING = "stopping"
    """The provider or the manager has ended it; its task has the grace to return."""
    CUT = "cut"
    """Its task was cancelled within the grace; it has the grace and a moment to return."""
    LATE = "late"
    """The grace is over: its task was cancelled, and has a moment to return."""
    OVER = "over"
    """Its task has ended, will never begin, or was abandoned."""


class RunStep(StrEnum):
    """A step that moves a run from one phase to the next."""

    DISPATCH = "dispatch"
    """It becomes the active run."""
    START = "start"
    """Its task was started."""
    STOP = "stop"
    """The first reason for its end is set."""
    CUT = "cut"
    """Its task is cancelled, because its provider cannot be interrupted."""
    GRACE_OVER = "grace_over"
    """The time for this phase of its end is over."""
    TASK_OVER = "task_over"
    """Its task has ended, or will never begin."""


TRANSITIONS: Final[dict[RunPhase, dict[RunStep, RunPhase]]] = {
    RunPhase.WAITING: {RunStep.DISPATCH: RunPhase.DISPATCHED, RunStep.STOP: RunPhase.OVER},
    RunPhase.DISPATCHED: {
        RunStep.START: RunPhase.RUNNING,
        RunStep.STOP: RunPhase.OVER,
        RunStep.TASK_OVER: RunPhase.OVER,
    },
    RunPhase.RUNNING: {RunStep.STOP: RunPhase.STOPPING, RunStep.TASK_OVER: RunPhase.OVER},
    RunPhase.STOPPING: {
        RunStep.CUT: RunPhase.CUT,
        RunStep.GRACE_OVER: RunPhase.LATE,
        RunStep.TASK_OVER: RunPhase.OVER,
    },
    RunPhase.CUT: {RunStep.GRACE_OVER: RunPhase.OVER, RunStep.TASK_OVER: RunPhase.OVER},
    RunPhase.LATE: {RunStep.GRACE_OVER: RunPhase.OVER, RunStep.TASK_OVER: RunPhase.OVER},
    RunPhase.OVER: {},
}
