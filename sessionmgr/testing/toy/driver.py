"""One run on the toy agent: its prompt, its questions, its follow-ups, and the end of its turn."""

from __future__ import annotations

from enum import StrEnum, auto
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter import ApprovalRequest, RunContext
from sessionmgr.adapter.kit.conversation_run import ConversationRun
from sessionmgr.testing.toy.frames import (
    AnyFrame,
    More,
    Question,
    Say,
    Told,
    Took,
    TurnEnded,
    Withdrawn,
)
from sessionmgr.testing.toy.normalise import State, normalise

if TYPE_CHECKING:
    from collections.abc import Sequence


class Phase(StrEnum):
    """How far a run's turn is."""

    OPENED = auto()
    ASKED = auto()
    INTERRUPTED = auto()
    ENDED = auto()
    LEFT = auto()
    """Over, and the agent has not said that its turn has ended."""


class Step(StrEnum):
    """What happens to it."""

    ASK = auto()
    INTERRUPT = auto()
    TURN_ENDED = auto()
    FRAMES_ENDED = auto()


TRANSITIONS: Final[dict[Phase, dict[Step, Phase]]] = {
    Phase.OPENED: {
        Step.ASK: Phase.ASKED,
        Step.INTERRUPT: Phase.LEFT,
        Step.TURN_ENDED: Phase.ENDED,
        Step.FRAMES_ENDED: Phase.LEFT,
    },
    Phase.ASKED: {
        Step.INTERRUPT: Phase.INTERRUPTED,
        Step.TURN_ENDED: Phase.ENDED,
        Step.FRAMES_ENDED: Phase.LEFT,
    },
    Phase.INTERRUPTED: {
        Step.INTERRUPT: Phase.INTERRUPTED,
        Step.TURN_ENDED: Phase.ENDED,
        Step.FRAMES_ENDED: Phase.LEFT,
    },
    Phase.ENDED: {},
    Phase.LEFT: {},
}


class ToyDriver(ConversationRun[Told, AnyFrame]):
    """One run's turn."""

    def __init__(self, run: RunContext) -> None:
        super().__init__(run)
        self.phase = Phase.OPENED
        self.ended: TurnEnded | None = None
        """How the turn ended, if it has."""
        self._state: Final = State()
        self._questions: Final[dict[str, trio.CancelScope]] = {}
        self._offers: Final[dict[str, Offer]] = {}

    def _step(self, step: Step) -> None:
        self.phase = TRANSITIONS[self.phase][step]
        if not TRANSITIONS[self.phase]:
            self.over()

    async def begin(self) -> None:
        """Send the prompt, unless the run is to end already."""
        if self.run.cancelling is not None:
            self._step(Step.INTERRUPT)
            return
        self._step(Step.ASK)
        await self.conversation.send(Say(self.run.prompt))

    def take(self, frames: Sequence[AnyFrame]) -> None:
        """Emit what the frames say, and act on those that are about the conversation itself."""
        for frame in frames:
            self.emit(*normalise(frame, self._state))
            match frame:
                case Question():
                    self.start(self._ask, frame)
                case Withdrawn(id=id_) if id_ in self._questions:
                    self._questions[id_].cancel()
                case Took(id=id_, taken=taken) if id_ in self._offers:
                    self._offers[id_].settle(taken=taken)
                case TurnEnded() if not self.is_over:
                    self.ended = frame
                    self._step(Step.TURN_ENDED)
                case _:
                    pass

    def lost(self) -> None:
        """Note that the agent is gone, and its turn with it."""
        self._step(Step.FRAMES_ENDED)

    def leave(self) -> None:
        """Let nobody wait any more to hear what became of a message."""
        for offer in self._offers.values():
            offer.settle(taken=False)

    async def interrupt(self) -> None:
        """Ask the agent to end its turn; frames are taken until it has."""
        await trio.lowlevel.checkpoint()
        if self.is_over:
            return
        self._step(Step.INTERRUPT)
        if not self.is_over:
            await self.conversation.interrupt()

    async def _ask(self, question: Question) -> None:
        """Ask about a question, beside the reading: it may be withdrawn, and others may come."""
        with trio.CancelScope() as scope:
            self._questions[question.id] = scope
            decision = await self.run.ask(
                ApprovalRequest(
                    tool_name=question.name,
                    tool_input=question.input,
                    tool_call_id=question.id,
                    effect=question.effect,
                )
            )
            await self.conversation.answer(question.id, decision)
        del self._questions[question.id]

    async def add(self, content: str, message_id: str) -> bool:
        """Offer another message, and say whether it was taken."""
        if self.phase is not Phase.ASKED:
            return False
        offer = self._offers[message_id] = Offer()
        await self.conversation.send(More(message_id, content))
        await offer.settled.wait()
        return offer.taken


class Offer:
    """A message of which it is not known yet whether the turn takes it."""

    def __init__(self) -> None:
        self.settled: Final = trio.Event()
        self.taken = False

    def settle(self, *, taken: bool) -> None:
        """Note what became of it."""
        if not self.settled.is_set():
            self.taken = taken
            self.settled.set()
