"""The phases of a driver, and the steps between them: the life cycle of one run on Claude Code."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Phase(StrEnum):
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


class Step(StrEnum):
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


_LOST: Final = {Step.LOSE: Phase.LOST}
_UNANSWERED: Final = {Step.GIVE_UP: Phase.SILENT, **_LOST}
_SETTLED: Final = {Step.SETTLE: Phase.STOPPED, Step.QUIET: Phase.STOPPED}
TRANSITIONS: Final[dict[Phase, dict[Step, Phase]]] = {
    Phase.CONFIGURING: {
        Step.PROMPT: Phase.PROMPTED,
        Step.REFUSE: Phase.DONE,
        Step.INTERRUPT: Phase.STOPPED,
        **_UNANSWERED,
    },
    Phase.PROMPTED: {Step.HEAR: Phase.WORKING, Step.INTERRUPT: Phase.STOPPING, **_UNANSWERED},
    Phase.WORKING: {
        Step.TASKS: Phase.BACKGROUND,
        Step.SETTLE: Phase.DONE,
        Step.QUIET: Phase.DONE,
        Step.INTERRUPT: Phase.STOPPING,
        **_LOST,
    },
    Phase.BACKGROUND: {
        Step.WORK: Phase.WORKING,
        # An agent that is idle is not done: it may take up what a task has come to.
        Step.SETTLE: Phase.BACKGROUND,
        Step.QUIET: Phase.DONE,
        Step.INTERRUPT: Phase.STOPPING,
        **_LOST,
    },
    Phase.STOPPING: {
        Step.CONFIRM: Phase.ENDING,
        Step.INTERRUPT: Phase.STOPPING,
        **_SETTLED,
        **_UNANSWERED,
    },
    # Its turn ends with a result: `idle` comes a while later, and says no more than that.
    Phase.ENDING: {
        Step.WORK: Phase.STOPPING,
        Step.INTERRUPT: Phase.STOPPING,
        **_SETTLED,
        **_UNANSWERED,
    },
    Phase.DONE: {},
    Phase.STOPPED: {},
    Phase.LOST: {},
    Phase.SILENT: {},
}
MINOR: Final = frozenset({Step.HEAR, Step.WORK, Step.TASKS, Step.CONFIRM})
"""Steps that change nothing where the table does not name them."""
