"""Driver of a run on the toy agent: prompt, questions, follow-ups, and the end of the turn."""

from __future__ import annotations

from enum import StrEnum, auto
from functools import partial
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import ApprovalRequest
from sessionmgr.adapter.kit import FollowUps, PhasedConversationRun, RequestHandler
from sessionmgr.testing.toy import frames as toy
from sessionmgr.testing.toy.normalise import ToyState, normalise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import RunContext


class ToyPhase(StrEnum):
    """Phase of a run's turn."""

    OPENED = auto()
    ASKED = auto()
    ENDED = auto()
    LEFT = auto()
    """The agent has exited before its turn ended."""


class ToyStep(StrEnum):
    """Step from one phase to another."""

    ASK = auto()
    TURN_ENDED = auto()
    LEAVE = auto()


TRANSITIONS: Final[dict[ToyPhase, dict[ToyStep, ToyPhase]]] = {
    ToyPhase.OPENED: {
        ToyStep.ASK: ToyPhase.ASKED,
        ToyStep.TURN_ENDED: ToyPhase.ENDED,
        ToyStep.LEAVE: ToyPhase.LEFT,
    },
    ToyPhase.ASKED: {ToyStep.TURN_ENDED: ToyPhase.ENDED, ToyStep.LEAVE: ToyPhase.LEFT},
    ToyPhase.ENDED: {},
    ToyPhase.LEFT: {},
}


class ToyDriver(PhasedConversationRun[toy.Outgoing, toy.AnyFrame, ToyPhase, ToyStep]):
    """Driver of one run."""

    def __init__(self, run: RunContext) -> None:
        super().__init__(run, TRANSITIONS, ToyPhase.OPENED, lost=ToyStep.LEAVE)
        self.ended: toy.ToyTurnEnded | None = None
        """The end of the turn, once it has come."""
        self._state: Final = ToyState()
        self._questions: Final = RequestHandler(self)
        self._follow_ups: Final = FollowUps(run)

    async def begin(self) -> None:
        """Send the prompt."""
        self.take_step(ToyStep.ASK)
        await self.conversation.send(toy.ToySay(self.run.prompt))

    def handle_frames(self, frames: Sequence[toy.AnyFrame]) -> None:
        """Emit events, and act on frames about the conversation itself."""
        for frame in frames:
            self.emit(*normalise(frame, self._state))
            match frame:
                case toy.ToyQuestion(id=id_):
                    self._questions.ask(id_, _request(frame))
                case toy.ToyWithdrawn(id=id_):
                    self._questions.withdraw(id_)
                case toy.ToyTook(id=id_, taken=True):
                    self._follow_ups.mark_heard(id_)
                case toy.ToyTook(id=id_):
                    self._follow_ups.refuse(id_)
                case toy.ToyTurnEnded() if not self.is_over:
                    self.ended = frame
                    self.take_step(ToyStep.TURN_ENDED)
                case _:
                    pass

    def on_leave(self) -> None:
        """Release the follow-ups that wait for an answer."""
        self._follow_ups.end()

    async def add(self, content: str, message_id: str) -> bool:
        """Offer another message, and return whether the agent accepted it."""
        if self.phase is not ToyPhase.ASKED:
            return False
        send = partial(self.conversation.send, toy.ToyMore(message_id, content))
        return await self._follow_ups.offer(message_id, content, send)


def _request(question: toy.ToyQuestion) -> ApprovalRequest:
    return ApprovalRequest(
        tool_name=question.name,
        tool_input=question.input,
        tool_call_id=question.id,
        effect=question.effect,
    )
