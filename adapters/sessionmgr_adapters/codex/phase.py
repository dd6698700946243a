"""The phases of a run on an app-server, as one table of transitions."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Phase(StrEnum):
    """What a run is doing."""

    CONNECTING = "connecting"
    """Codex has not said anything to this run yet."""
    OPENING = "opening"
    """The thread is opened, and brought to what the run wants."""
    ASKED = "asked"
    """The prompt was sent to a thread that was kept; Codex has not said anything yet."""
    RUNNING = "running"
    """The turn is on."""
    STOPPING = "stopping"
    """The run was interrupted, and the turn is still on."""
    SETTLING = "settling"
    """The turn is over: more is asked, or what it has left is waited for and ended."""
    CLEARING = "clearing"
    """The run was interrupted, and the turn is over: what it has left is ended."""
    OVER = "over"
    """All is done, or it was refused."""
    LOST = "lost"
    """The app-server was lost in the middle of it."""
    UNREACHED = "unreached"
    """The app-server was lost before it took the prompt."""


class Step(StrEnum):
    """What happens to a run."""

    HEARD = "heard"
    """Codex says something, be it to refuse."""
    ASK = "ask"
    """A turn is begun."""
    TURN_ENDED = "turn ended"
    REFUSED = "refused"
    """Codex refuses what the run cannot go on without, or the run is not wanted any more."""
    INTERRUPT = "interrupt"
    DONE = "done"
    """Nothing is left of the turn."""
    LOST = "lost"
    """The connection has ended."""


TRANSITIONS: Final[dict[Phase, dict[Step, Phase]]] = {
    Phase.CONNECTING: {
        Step.HEARD: Phase.OPENING,
        Step.ASK: Phase.ASKED,
        Step.REFUSED: Phase.OVER,
        Step.INTERRUPT: Phase.OVER,
        Step.LOST: Phase.UNREACHED,
    },
    Phase.OPENING: {
        Step.ASK: Phase.RUNNING,
        Step.REFUSED: Phase.OVER,
        Step.INTERRUPT: Phase.OVER,
        Step.LOST: Phase.UNREACHED,
    },
    Phase.ASKED: {
        Step.HEARD: Phase.RUNNING,
        Step.REFUSED: Phase.OVER,
        Step.INTERRUPT: Phase.STOPPING,
        Step.LOST: Phase.UNREACHED,
    },
    Phase.RUNNING: {
        Step.TURN_ENDED: Phase.SETTLING,
        Step.REFUSED: Phase.OVER,
        Step.INTERRUPT: Phase.STOPPING,
        Step.LOST: Phase.LOST,
    },
    Phase.STOPPING: {
        Step.TURN_ENDED: Phase.CLEARING,
        Step.REFUSED: Phase.OVER,
        Step.INTERRUPT: Phase.STOPPING,
        Step.LOST: Phase.LOST,
    },
    Phase.SETTLING: {
        Step.ASK: Phase.RUNNING,
        Step.TURN_ENDED: Phase.SETTLING,
        Step.REFUSED: Phase.OVER,
        Step.INTERRUPT: Phase.CLEARING,
        Step.DONE: Phase.OVER,
        Step.LOST: Phase.LOST,
    },
    Phase.CLEARING: {
        Step.TURN_ENDED: Phase.CLEARING,
        Step.REFUSED: Phase.OVER,
        Step.INTERRUPT: Phase.CLEARING,
        Step.DONE: Phase.OVER,
        Step.LOST: Phase.LOST,
    },
    Phase.OVER: {},
    Phase.LOST: {},
    Phase.UNREACHED: {},
}
MINOR: Final = frozenset({Step.HEARD})
"""Steps that change nothing where the table does not name them."""
