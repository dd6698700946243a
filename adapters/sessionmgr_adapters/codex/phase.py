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


_UNASKED: Final = {Step.REFUSED: Phase.OVER, Step.INTERRUPT: Phase.OVER, Step.LOST: Phase.UNREACHED}
_ENDS: Final = {Step.REFUSED: Phase.OVER, Step.LOST: Phase.LOST}
TRANSITIONS: Final[dict[Phase, dict[Step, Phase]]] = {
    Phase.CONNECTING: {Step.HEARD: Phase.OPENING, Step.ASK: Phase.ASKED, **_UNASKED},
    Phase.OPENING: {Step.ASK: Phase.RUNNING, **_UNASKED},
    Phase.ASKED: {Step.HEARD: Phase.RUNNING, **_UNASKED, Step.INTERRUPT: Phase.STOPPING},
    Phase.RUNNING: {Step.TURN_ENDED: Phase.SETTLING, Step.INTERRUPT: Phase.STOPPING, **_ENDS},
    Phase.STOPPING: {Step.TURN_ENDED: Phase.CLEARING, Step.INTERRUPT: Phase.STOPPING, **_ENDS},
    Phase.SETTLING: {
        Step.ASK: Phase.RUNNING,
        Step.TURN_ENDED: Phase.SETTLING,
        Step.INTERRUPT: Phase.CLEARING,
        Step.DONE: Phase.OVER,
        **_ENDS,
    },
    Phase.CLEARING: {
        Step.TURN_ENDED: Phase.CLEARING,
        Step.INTERRUPT: Phase.CLEARING,
        Step.DONE: Phase.OVER,
        **_ENDS,
    },
    Phase.OVER: {},
    Phase.LOST: {},
    Phase.UNREACHED: {},
}
MINOR: Final = frozenset({Step.HEARD})
"""Steps that change nothing where the table does not name them."""
