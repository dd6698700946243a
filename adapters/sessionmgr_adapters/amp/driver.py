"""Driver of a run on Amp: prompt, follow-ups, the end of the input, and the result."""

from __future__ import annotations

import base64
from enum import StrEnum, auto
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter.kit import (
    FollowUps,
    ImageRefusedError,
    PhasedConversationRun,
    config_failure,
    process_exit_event,
    read_images,
)
from sessionmgr.model import Failure, FailureKind
from sessionmgr_adapters.amp.frames import (
    AmpAssistant,
    AmpInit,
    AmpOutgoing,
    AmpPrompt,
    AmpResult,
    AnyAmpFrame,
    EndOfInput,
)
from sessionmgr_adapters.amp.normalise import AmpState, normalise

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sessionmgr.adapter import Conversation, RunContext
    from sessionmgr.model import Json
    from sessionmgr_adapters.amp.sdk import AmpConnection

EXIT_WAIT_AFTER_CUT: Final = 2.0
"""Seconds to wait for the exit of a process that did not react, before its run ends."""


class AmpPhase(StrEnum):
    """Phase of a run."""

    OPENED = auto()
    ASKED = auto()
    """The agent works, and reads further messages."""
    DRAINING = auto()
    """The agent has answered, and its input is closed: its result is next."""
    ENDED = auto()
    LEFT = auto()
    """The process has exited without a result."""


class AmpStep(StrEnum):
    """Step from one phase to another."""

    ASK = auto()
    TURN_ENDED = auto()
    RESULT = auto()
    REFUSE = auto()
    """The run must not go on."""
    LEAVE = auto()


_ENDS: Final = {
    AmpStep.RESULT: AmpPhase.ENDED,
    AmpStep.REFUSE: AmpPhase.ENDED,
    AmpStep.LEAVE: AmpPhase.LEFT,
}
TRANSITIONS: Final[dict[AmpPhase, dict[AmpStep, AmpPhase]]] = {
    AmpPhase.OPENED: {AmpStep.ASK: AmpPhase.ASKED, **_ENDS},
    AmpPhase.ASKED: {AmpStep.TURN_ENDED: AmpPhase.DRAINING, **_ENDS},
    AmpPhase.DRAINING: _ENDS,
    AmpPhase.ENDED: {},
    AmpPhase.LEFT: {},
}


class AmpDriver(PhasedConversationRun[AmpOutgoing, AnyAmpFrame, AmpPhase, AmpStep]):
    """Driver of one run, and of its process, which serves no other."""

    def __init__(self, run: RunContext) -> None:
        super().__init__(run, TRANSITIONS, AmpPhase.OPENED, lost=AmpStep.LEAVE)
        self.state: Final = AmpState()
        self.process: AmpConnection | None = None
        """The connection, once it is open."""
        self._follow_ups: Final = FollowUps(run)

    async def run_conversation(self, conversation: Conversation[AmpOutgoing]) -> None:
        """Run the conversation, and wait until its process is gone.

        Amp refuses to continue a thread that another process has open, so the next run must not
        start before.
        """
        try:
            await super().run_conversation(conversation)
            await conversation.discard()
        except BaseException:
            assert self.process is not None
            self.process.hurried = True
            with trio.move_on_after(EXIT_WAIT_AFTER_CUT, shield=True):
                await conversation.discard()
            raise
        facts = None if self.process is None else self.process.facts
        if facts is not None and not self.is_broken:  # otherwise the adapter reports it
            self.emit(process_exit_event(facts))

    async def begin(self) -> None:
        """Send the prompt with its images."""
        try:
            content = await _content(self.run)
        except ImageRefusedError as error:
            self._refuse(config_failure(f"images: {error}"))
            return
        self.take_step(AmpStep.ASK)
        self.state.unheard[self.run.run_id] = self.run.prompt
        await self.conversation.send(AmpPrompt(content=content, request_id=self.run.run_id))

    def handle_frames(self, frames: Sequence[AnyAmpFrame]) -> None:
        """Emit events, and act on frames about the conversation itself."""
        for frame in frames:
            if self.is_over:  # a refusal is not to be replaced by a result
                return
            self.emit(*normalise(frame, self.state))
            for message_id in self.state.heard:
                self._follow_ups.mark_heard(message_id)
            self.state.heard.clear()
            match frame:
                case AmpInit(tools=tools):
                    self._check_tools(tools)
                case AmpAssistant() if frame.ends_turn and self.phase is AmpPhase.ASKED:
                    # It still answers the messages that it has; later ones are refused.
                    self.take_step(AmpStep.TURN_ENDED)
                    self.start(self.conversation.send, EndOfInput())
                case AmpResult():
                    self.take_step(AmpStep.RESULT)
                case _:
                    pass

    def on_leave(self) -> None:
        """Report the follow-ups that the agent has not read."""
        self._follow_ups.end()

    async def add(self, content: str, message_id: str) -> bool:
        """Send another message, which the agent reads at its next step."""
        if self.phase is not AmpPhase.ASKED:
            return False
        return await self._follow_ups.offer(
            message_id, content, partial(self._send, content, message_id)
        )

    async def _send(self, content: str, message_id: str) -> None:
        self.state.unheard[message_id] = content
        message = AmpPrompt(content=[_text_block(content)], request_id=message_id, steer=True)
        await self.conversation.send(message)
        self._follow_ups.accept(message_id)  # Amp reads all messages until its input ends

    def _check_tools(self, tools: Json) -> None:
        """Refuse to go on with tools that the run must not have: its settings were not applied."""
        given = [each for each in tools if isinstance(each, str)] if isinstance(tools, list) else []
        allowed, denied = self.run.tools_allowed, self.run.tools_denied
        wrong = {
            "tools_denied": [each for each in given if _matches(each, denied)],
            "tools_allowed": [
                each for each in given if allowed is not None and not _matches(each, allowed)
            ],
        }
        for field, names in wrong.items():
            if names:
                message = f"{field}: Amp offers {', '.join(names)} to the model in spite of it"
                kind = FailureKind.PERMISSION_REFUSED
                self._refuse(Failure(kind=kind, message=message, phase="start"))

    def _refuse(self, failure: Failure) -> None:
        if self.process is not None:
            self.process.hurried = True  # it would work on after the end of its input
        self.state.failure = failure
        self.take_step(AmpStep.REFUSE)


async def _content(run: RunContext) -> list[Json]:
    """Return the blocks of the prompt: its text, and its images.

    Raises:
        ImageRefusedError: An image cannot be sent, or there are too many.
    """
    blocks = [_text_block(run.prompt)]
    for image in await read_images(run.images, run.cwd):
        data = base64.b64encode(image.data).decode()
        source: Json = {"type": "base64", "media_type": image.media_type, "data": data}
        blocks.append({"type": "image", "source": source})
    return blocks


def _matches(tool: str, names: Iterable[str]) -> bool:
    return any(fnmatchcase(tool, name) for name in names)


def _text_block(text: str) -> Json:
    return {"type": "text", "text": text}
