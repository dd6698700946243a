"""The phases of a driver, and the steps between them: the life cycle of one run on Claude Code."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ClaudePhase(StrEnum):
    """How far the run has come on its process."""

    CONFIGURING = "configuring"
    """The process is greeted and configured; the prompt is not sent."""
    PROMPTED = "prompted"
    """The prompt is sent; nothing has come since."""
    WORKING = "working"
    BACKGROUND = "background"
    """The turn is over and tasks go on, or have ended: the agent may take their outcome up."""
    STOPPING = "stopping"
    """The agent was asked to end its turn."""
    ENDING = "ending"
    """The agent has confirmed that, and that no message is queued: this turn is the last."""
    DONE = "done"
    STOPPED = "stopped"
    LOST = "lost"
    """The frames ended before the run did."""
    SILENT = "silent"
    """The run gave up on an agent that said nothing."""


class ClaudeStep(StrEnum):
    """What moves a run from phase to phase."""

    REFUSE = "refuse"
    """The prompt must not be sent."""
    PROMPT = "prompt"
    HEAR = "hear"
    """The first frame after the prompt has come."""
    WORK = "work"
    """The agent says that it works."""
    TASKS = "tasks"
    """All messages are answered, and tasks go on in the background."""
    SETTLE = "settle"
    """All messages are answered, and the agent says that it is idle."""
    QUIET = "quiet"
    """All messages are answered, and the agent has said nothing for a while."""
    INTERRUPT = "interrupt"
    CONFIRM = "confirm"
    """The agent confirms an interrupt, and that no message is queued."""
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
        # An agent that is idle is not done: it may take up what a task has come to.
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
    # Its turn ends with a result: `idle` comes a while later, and says no more than that.
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
"""Steps that change nothing where the table does not name them."""
