"""Follow-ups: messages that are sent to a running turn, and the state of each.

A message is offered to the provider, which accepts or refuses it. An accepted message is heard when
it has reached the model. At the end of the conversation, messages that were only offered count as
refused, and become runs of their own; accepted messages that were not heard are reported as
dropped. An accepted message counts as refused as well, if `offer` has not returned yet.

In the record, a message is `queued` until `offer` returns, `sent` once it was accepted or heard,
and `dropped` when it is refused, or was accepted and not heard. So an adapter that queues a message
calls `accept` when it queues it, and `mark_heard` when it sends it.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.model import MessageSent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessionmgr.adapter import RunContext


class FollowUpState(Enum):
    """State of a follow-up."""

    OFFERED = auto()
    ACCEPTED = auto()
    HEARD = auto()
    REFUSED = auto()
    DROPPED = auto()


class FollowUpStep(Enum):
    """Step of a follow-up's life cycle."""

    ACCEPT = auto()
    HEAR = auto()
    REFUSE = auto()
    END = auto()


TRANSITIONS: Final[dict[FollowUpState, dict[FollowUpStep, FollowUpState]]] = {
    FollowUpState.OFFERED: {
        FollowUpStep.ACCEPT: FollowUpState.ACCEPTED,
        FollowUpStep.HEAR: FollowUpState.HEARD,
        FollowUpStep.REFUSE: FollowUpState.REFUSED,
        FollowUpStep.END: FollowUpState.REFUSED,
    },
    FollowUpState.ACCEPTED: {
        FollowUpStep.HEAR: FollowUpState.HEARD,
        FollowUpStep.END: FollowUpState.DROPPED,
    },
    FollowUpState.HEARD: {},
    FollowUpState.REFUSED: {},
    FollowUpState.DROPPED: {},
}
"""Steps that are not in the table change nothing, because providers repeat themselves."""


class _FollowUp:
    def __init__(self, content: str) -> None:
        self.content: Final = content
        self.state = FollowUpState.OFFERED
        self.is_settled: Final = trio.Event()
        self.is_returned = False
        """Whether `offer` has returned that the provider accepted the message."""

    def step(self, step: FollowUpStep) -> None:
        self.state = TRANSITIONS[self.state].get(step, self.state)
        if self.state is not FollowUpState.OFFERED:
            self.is_settled.set()


class FollowUps:
    """Follow-ups of one run, by our message ids."""

    def __init__(self, run: RunContext) -> None:
        self._run: Final = run
        self._messages: Final[dict[str, _FollowUp]] = {}
        self._has_ended = False

    async def offer(
        self, message_id: str, content: str, send: Callable[[], Awaitable[object]]
    ) -> bool:
        """Offer a message with `send`, and return whether this run has accepted it."""
        if self._has_ended:
            return False
        message = self._messages[message_id] = _FollowUp(content)
        await send()
        await message.is_settled.wait()
        message.is_returned = message.state in {FollowUpState.ACCEPTED, FollowUpState.HEARD}
        return message.is_returned

    @property
    def offered(self) -> list[str]:
        """The ids of the messages that are neither accepted nor refused yet."""
        return [
            name for name, each in self._messages.items() if each.state is FollowUpState.OFFERED
        ]

    @property
    def undelivered(self) -> dict[str, str]:
        """The contents of the messages that were accepted and not heard, by their ids."""
        taken = (item for item in self._messages.items() if item[1].state is FollowUpState.ACCEPTED)
        return {name: each.content for name, each in taken}

    def accept(self, message_id: str) -> None:
        """Note that the provider has accepted a message."""
        self._take_step(message_id, FollowUpStep.ACCEPT)

    def mark_heard(self, message_id: str) -> None:
        """Note that a message has reached the model."""
        self._take_step(message_id, FollowUpStep.HEAR)

    def refuse(self, message_id: str) -> None:
        """Note that the provider has refused a message."""
        self._take_step(message_id, FollowUpStep.REFUSE)

    def end(self) -> None:
        """Refuse messages that were only offered; report unheard accepted ones as dropped."""
        self._has_ended = True
        dropped = self.undelivered
        for each in self._messages.values():
            each.step(FollowUpStep.END)
        for name, content in dropped.items():
            if self._messages[name].is_returned:
                self._run.emit_nowait(
                    MessageSent(message_id=name, content=content, follow_up=True, state="dropped")
                )

    def _take_step(self, message_id: str, step: FollowUpStep) -> None:
        message = self._messages.get(message_id)
        if message is not None:
            message.step(step)
