"""Messages that are added to a run while its turn is on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.model import MessageSent
from sessionmgr_adapters.codex.launch import text_input

if TYPE_CHECKING:
    from sessionmgr.model import Event, Json
    from sessionmgr_adapters.codex.calling import Caller
    from sessionmgr_adapters.codex.state import State


class FollowUps:
    """The messages that Codex was offered, and those that it has taken."""

    def __init__(self, caller: Caller, state: State) -> None:
        self._caller: Final = caller
        self._state: Final = state
        self._offered: Final[dict[str, trio.Event]] = {}
        self._taken: Final[dict[str, str]] = {}

    @property
    def are_settled(self) -> bool:
        """Whether the model has answered all of them, and none is offered just now."""
        return not (self._offered or self._taken)

    async def offer(self, content: str, message_id: str, *, over: trio.Event) -> bool:
        """Offer a message to the turn, and say whether Codex has taken it before that is over."""
        offer = self._offered[message_id] = trio.Event()
        params: dict[str, Json] = {
            "threadId": self._state.thread,
            "expectedTurnId": self._state.turn,
            "clientUserMessageId": message_id,
            "input": [text_input(content)],
        }
        is_taken = False
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_when, over, nursery.cancel_scope)
                answer = await self._caller.call("turn/steer", params)
                is_taken = answer.refusal is None
                nursery.cancel_scope.cancel()
            if is_taken:
                self._taken[message_id] = content
            return is_taken
        finally:
            offer.set()
            del self._offered[message_id]

    async def are_answered(self) -> None:
        """Wait until Codex has answered all offers: it may take one in the last moment."""
        await trio.lowlevel.checkpoint()
        for offer in list(self._offered.values()):
            await offer.wait()

    def left(self) -> list[Json] | None:
        """Return what is asked next, as nothing is taken any more; None if nothing is.

        What Codex took in the last moment is in the thread already, and is not said again.
        """
        unheard = self._unheard()
        if not unheard and self._state.unanswered.isdisjoint(self._taken):
            return None
        return [text_input(each) for each in unheard.values()]

    def forget(self) -> None:
        """Note that what is left is asked in a turn of its own."""
        self._taken.clear()

    def dropped(self) -> list[Event]:
        """Return what was taken, and never heard by the model."""
        return [
            MessageSent(message_id=name, content=text, follow_up=True, state="dropped")
            for name, text in self._unheard().items()
        ]

    def _unheard(self) -> dict[str, str]:
        heard = self._state.heard
        return {name: text for name, text in self._taken.items() if name not in heard}


async def _cancel_when(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
