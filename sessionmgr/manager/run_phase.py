"""The phases of a run, and the steps between them, as a table."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class RunPhase(StrEnum):
    """How far a run is, from its admission until nothing of it counts any more."""

    WAITING = "waiting"
    """It was admitted; the session's run before it has not ended."""
    DISPATCHED = "dispatched"
    """It has its turn: its prompt is stored, then its task is started."""
    RUNNING = "running"
    """Its task runs."""
    STOPPING = "stopping"
    """It was ended, by its provider or another; its task has the grace to return."""
    CUT = "cut"
    """Its task was cancelled before the grace was over, and has until a moment after that."""
    LATE = "late"
    """The grace is over: its task was cancelled, and has a moment to leave."""
    OVER = "over"
    """Its task has ended, will never begin, or was abandoned."""


class RunStep(StrEnum):
    """What moves a run from one phase to the next."""

    DISPATCH = "dispatch"
    """It has its turn."""
    START = "start"
    """Its task was started."""
    STOP = "stop"
    """The first reason for its end was given."""
    CUT = "cut"
    """Its task was cancelled, because its provider cannot be interrupted."""
    GRACE_OVER = "grace_over"
    """The time that it had for this phase of its end is over."""
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
