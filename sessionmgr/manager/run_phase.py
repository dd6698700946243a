"""The phases of a run, and the steps between them, as a table."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Phase(StrEnum):
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


class Step(StrEnum):
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


TRANSITIONS: Final[dict[Phase, dict[Step, Phase]]] = {
    Phase.WAITING: {Step.DISPATCH: Phase.DISPATCHED, Step.STOP: Phase.OVER},
    Phase.DISPATCHED: {
        Step.START: Phase.RUNNING,
        Step.STOP: Phase.OVER,
        Step.TASK_OVER: Phase.OVER,
    },
    Phase.RUNNING: {Step.STOP: Phase.STOPPING, Step.TASK_OVER: Phase.OVER},
    Phase.STOPPING: {
        Step.CUT: Phase.CUT,
        Step.GRACE_OVER: Phase.LATE,
        Step.TASK_OVER: Phase.OVER,
    },
    Phase.CUT: {Step.GRACE_OVER: Phase.OVER, Step.TASK_OVER: Phase.OVER},
    Phase.LATE: {Step.GRACE_OVER: Phase.OVER, Step.TASK_OVER: Phase.OVER},
    Phase.OVER: {},
}
