"""The phases of a run on an agent over ACP, as one table of transitions."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class AcpPhase(StrEnum):
    """The phase of a run."""

    OPENING = "opening"
    """The agent is greeted, and the session is opened and set up."""
    RUNNING = "running"
    """The prompt was sent, and the turn has not ended."""
    STOPPING = "stopping"
    """The agent was asked to cancel the turn, which has not ended yet."""
    OVER = "over"
    """The turn has ended, or the run was refused."""
    LOST = "lost"
    """The connection to the agent ended before the turn did."""


class AcpStep(StrEnum):
    """The steps between phases."""

    PROMPT = "prompt"
    INTERRUPT = "interrupt"
    TURN_ENDED = "turn ended"
    REFUSED = "refused"
    """The agent refused something that the run needs, or the run was cancelled."""
    LOST = "lost"
    """The connection has ended."""


_ENDS: Final = {AcpStep.REFUSED: AcpPhase.OVER, AcpStep.LOST: AcpPhase.LOST}
TRANSITIONS: Final[dict[AcpPhase, dict[AcpStep, AcpPhase]]] = {
    AcpPhase.OPENING: {
        AcpStep.PROMPT: AcpPhase.RUNNING,
        AcpStep.INTERRUPT: AcpPhase.OVER,
        **_ENDS,
    },
    AcpPhase.RUNNING: {
        AcpStep.INTERRUPT: AcpPhase.STOPPING,
        AcpStep.TURN_ENDED: AcpPhase.OVER,
        **_ENDS,
    },
    AcpPhase.STOPPING: {
        AcpStep.INTERRUPT: AcpPhase.STOPPING,
        AcpStep.TURN_ENDED: AcpPhase.OVER,
        **_ENDS,
    },
    AcpPhase.OVER: {},
    AcpPhase.LOST: {},
}
