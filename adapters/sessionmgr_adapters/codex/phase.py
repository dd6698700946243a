"""The phases of a run on an app-server, as one table of transitions."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class CodexPhase(StrEnum):
    """The phase of a run."""

    CONNECTING = "connecting"
    """Codex has not sent anything to this run yet."""
    OPENING = "opening"
    """The thread is being opened and prepared."""
    ASKED = "asked"
    """The prompt was sent to a cached thread; Codex has not sent anything yet."""
    RUNNING = "running"
    """The turn is running."""
    STOPPING = "stopping"
    """The run was interrupted, and the turn has not ended yet."""
    SETTLING = "settling"
    """The turn has ended; further messages are sent, or the remaining work is awaited and ended."""
    CLEARING = "clearing"
    """The run was interrupted and the turn has ended; the remaining work is being ended."""
    OVER = "over"
    """The run has ended, or was refused."""
    LOST = "lost"
    """The connection to the app-server ended during the turn."""
    UNREACHED = "unreached"
    """The connection to the app-server ended before Codex accepted the prompt."""


class CodexStep(StrEnum):
    """The steps between phases."""

    HEARD = "heard"
    """Codex has sent something, even a refusal."""
    ASK = "ask"
    """A turn is being started."""
    TURN_ENDED = "turn ended"
    REFUSED = "refused"
    """Codex refused something that the run needs, or the run was cancelled."""
    INTERRUPT = "interrupt"
    DONE = "done"
    """No work of the turn remains."""
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
"""Steps that the table may omit: they then change nothing."""
