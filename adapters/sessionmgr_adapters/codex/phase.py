"""The phases of a run on an app-server, as one table of transitions."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class CodexPhase(StrEnum):
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


class CodexStep(StrEnum):
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


_UNASKED: Final = {
    CodexStep.REFUSED: CodexPhase.OVER,
    CodexStep.INTERRUPT: CodexPhase.OVER,
    CodexStep.LOST: CodexPhase.UNREACHED,
}
_ENDS: Final = {CodexStep.REFUSED: CodexPhase.OVER, CodexStep.LOST: CodexPhase.LOST}
TRANSITIONS: Final[dict[CodexPhase, dict[CodexStep, CodexPhase]]] = {
    CodexPhase.CONNECTING: {
        CodexStep.HEARD: CodexPhase.OPENING,
        CodexStep.ASK: CodexPhase.ASKED,
        **_UNASKED,
    },
    CodexPhase.OPENING: {CodexStep.ASK: CodexPhase.RUNNING, **_UNASKED},
    CodexPhase.ASKED: {
        CodexStep.HEARD: CodexPhase.RUNNING,
        **_UNASKED,
        CodexStep.INTERRUPT: CodexPhase.STOPPING,
    },
    CodexPhase.RUNNING: {
        CodexStep.TURN_ENDED: CodexPhase.SETTLING,
        CodexStep.INTERRUPT: CodexPhase.STOPPING,
        **_ENDS,
    },
    CodexPhase.STOPPING: {
        CodexStep.TURN_ENDED: CodexPhase.CLEARING,
        CodexStep.INTERRUPT: CodexPhase.STOPPING,
        **_ENDS,
    },
    CodexPhase.SETTLING: {
        CodexStep.ASK: CodexPhase.RUNNING,
        CodexStep.TURN_ENDED: CodexPhase.SETTLING,
        CodexStep.INTERRUPT: CodexPhase.CLEARING,
        CodexStep.DONE: CodexPhase.OVER,
        **_ENDS,
    },
    CodexPhase.CLEARING: {
        CodexStep.TURN_ENDED: CodexPhase.CLEARING,
        CodexStep.INTERRUPT: CodexPhase.CLEARING,
        CodexStep.DONE: CodexPhase.OVER,
        **_ENDS,
    },
    CodexPhase.OVER: {},
    CodexPhase.LOST: {},
    CodexPhase.UNREACHED: {},
}
MINOR: Final = frozenset({CodexStep.HEARD})
"""Steps that change nothing where the table does not name them."""
