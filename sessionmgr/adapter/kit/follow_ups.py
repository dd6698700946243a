"""The messages that are sent to a running turn, and the state of each.

A message is offered to the provider, which takes or refuses it. One that was taken is heard when it
has reached the model. At the end of the conversation, messages that were only offered count as
refused, and become runs of their own; those taken and not heard are reported as dropped.

In the record, a message is `queued` until this answers, `sent` once it was taken or heard, and
`dropped` when it is refused, or was taken and not heard. So take a message that only waits in a
queue of the adapter's, and hear it when it is sent.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.model import MessageSent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessionmgr.adapter.run_context import RunContext


class Fate(Enum):
    """The state of a message."""

    OFFERED = auto()
    TAKEN = auto()
    HEARD = auto()
    REFUSED = auto()
    DROPPED = auto()


class Step(Enum):
    """A step of its life cycle."""

    TAKE = auto()
    HEAR = auto()
    REFUSE = auto()
    END = auto()


TRANSITIONS: Final[dict[Fate, dict[Step, Fate]]] = {
    Fate.OFFERED: {
        Step.TAKE: Fate.TAKEN,
        Step.HEAR: Fate.HEARD,
        Step.REFUSE: Fate.REFUSED,
        Step.END: Fate.REFUSED,
    },
    Fate.TAKEN: {Step.HEAR: Fate.HEARD, Step.END: Fate.DROPPED},
    Fate.HEARD: {},
    Fate.REFUSED: {},
    Fate.DROPPED: {},
}
"""A step that is not in the table changes nothing: providers repeat themselves."""


class _FollowUp:
    def __init__(self, content: str) -> None:
        self.content: Final = content
        self.fate = Fate.OFFERED
        self.is_settled: Final = trio.Event()

    def step(self, step: Step) -> None:
        self.fate = TRANSITIONS[self.fate].get(step, self.fate)
        if self.fate is not Fate.OFFERED:
            self.is_settled.set()


class FollowUps:
    """The follow-ups of one run, by our message ids."""

    def __init__(self, run: RunContext) -> None:
        self._run: Final = run
        self._messages: Final[dict[str, _FollowUp]] = {}
        self._has_ended = False

    async def offer(
        self, message_id: str, content: str, send: Callable[[], Awaitable[object]]
    ) -> bool:
        """Offer a message with `send`, and return whether this run has it now."""
        if self._has_ended:
            return False
        message = self._messages[message_id] = _FollowUp(content)
        await send()
        await message.is_settled.wait()
        return message.fate is not Fate.REFUSED

    @property
    def offered(self) -> list[str]:
        """The messages that are neither taken nor refused yet."""
        return [name for name, each in self._messages.items() if each.fate is Fate.OFFERED]

    @property
    def unheard(self) -> dict[str, str]:
        """The contents of the messages that were taken and not heard, by their ids."""
        taken = (item for item in self._messages.items() if item[1].fate is Fate.TAKEN)
        return {name: each.content for name, each in taken}

    def take(self, message_id: str) -> None:
        """Note that the provider has taken a message."""
        self._step(message_id, Step.TAKE)

    def hear(self, message_id: str) -> None:
        """Note that a message has reached the model."""
        self._step(message_id, Step.HEAR)

    def refuse(self, message_id: str) -> None:
        """Note that the provider has refused a message."""
        self._step(message_id, Step.REFUSE)

    def end(self) -> None:
        """Refuse messages that were only offered; report those taken and not heard as dropped."""
        self._has_ended = True
        dropped = self.unheard
        for each in self._messages.values():
            each.step(Step.END)
        for name, content in dropped.items():
            self._run.emit_nowait(
                MessageSent(message_id=name, content=content, follow_up=True, state="dropped")
            )

    def _step(self, message_id: str, step: Step) -> None:
        message = self._messages.get(message_id)
        if message is not None:
            message.step(step)
