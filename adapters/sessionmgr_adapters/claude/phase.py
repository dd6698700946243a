"""Phases of a run on Claude Code, and the steps between them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ClaudePhase(StrEnum):
    """Phase of a run on its process."""

    CONFIGURING = "configuring"
    """The process is initialized and configured; the prompt is not sent."""
    PROMPTED = "prompted"
    """The prompt is sent; no frame has come since."""
    WORKING = "working"
    BACKGROUND = "background"
    """The turn is over, and background tasks run or have ended: the agent may react to their
    end.
    """
    STOPPING = "stopping"
    """The agent was asked to end its turn."""
    ENDING = "ending"
    """The agent has confirmed the interrupt with no message queued: this turn is the last."""
    DONE = "done"
    STOPPED = "stopped"
    LOST = "lost"
    """The frames ended before the run did."""
    SILENT = "silent"
    """The run gave up, because the agent was silent."""


class ClaudeStep(StrEnum):
    """Step from one phase to another."""

    REFUSE = "refuse"
    """The prompt must not be sent."""
    PROMPT = "prompt"
    HEAR = "hear"
    """The first frame after the prompt has come."""
    WORK = "work"
    """The agent reports that it works."""
    TASKS = "tasks"
    """All messages are answered, and background tasks run."""
    SETTLE = "settle"
    """All messages are answered, and the agent reports that it is idle."""
    QUIET = "quiet"
    """All messages are answered, and the agent has been silent for a while."""
    INTERRUPT = "interrupt"
    CONFIRM = "confirm"
    """The agent confirms an interrupt with no message queued."""
    LOSE = "lose"
    GIVE_UP = "give_up"


_LOST: Final = {ClaudeStep.LOSE: ClaudePhase.LOST}
_UNANSWERED: Final = {ClaudeStep.GIVE_UP: ClaudePhase.SILENT, **_LOST}
_SETTLED: Final = {ClaudeStep.SETTLE: ClaudePhase.STOPPED, ClaudeStep.QUIET: ClaudePhase.STOPPED}
TRANSITIONS: Final[dict[ClaudePhase, dict[ClaudeStep, ClaudePhase]]] = {
    ClaudePhase.CONFIGURING: {
        ClaudeStep.PROMPT: ClaudePhase.PROMPTED,
        ClaudeStep.REFUSE: ClaudePhase.DONE,
        ClaudeStep.INTERRUPT: ClaudePhase.STOPPED,
        **_UNANSWERED,
    },
    ClaudePhase.PROMPTED: {
        ClaudeStep.HEAR: ClaudePhase.WORKING,
        ClaudeStep.INTERRUPT: ClaudePhase.STOPPING,
        **_UNANSWERED,
    },
    ClaudePhase.WORKING: {
        ClaudeStep.TASKS: ClaudePhase.BACKGROUND,
        ClaudeStep.SETTLE: ClaudePhase.DONE,
        ClaudeStep.QUIET: ClaudePhase.DONE,
        ClaudeStep.INTERRUPT: ClaudePhase.STOPPING,
        **_LOST,
    },
    ClaudePhase.BACKGROUND: {
        ClaudeStep.WORK: ClaudePhase.WORKING,
        # An idle agent may not be done: it may react to the end of a task.
        ClaudeStep.SETTLE: ClaudePhase.BACKGROUND,
        ClaudeStep.QUIET: ClaudePhase.DONE,
        ClaudeStep.INTERRUPT: ClaudePhase.STOPPING,
        **_LOST,
    },
    ClaudePhase.STOPPING: {
        ClaudeStep.CONFIRM: ClaudePhase.ENDING,
        ClaudeStep.INTERRUPT: ClaudePhase.STOPPING,
        **_SETTLED,
        **_UNANSWERED,
    },
    # The turn ends with a result; the `idle` that follows later adds no information.
    ClaudePhase.ENDING: {
        ClaudeStep.WORK: ClaudePhase.STOPPING,
        ClaudeStep.INTERRUPT: ClaudePhase.STOPPING,
        **_SETTLED,
        **_UNANSWERED,
    },
    ClaudePhase.DONE: {},
    ClaudePhase.STOPPED: {},
    ClaudePhase.LOST: {},
    ClaudePhase.SILENT: {},
}
MINOR: Final = frozenset({ClaudeStep.HEAR, ClaudeStep.WORK, ClaudeStep.TASKS, ClaudeStep.CONFIRM})
"""Steps that change nothing in a phase for which the table does not name them."""
