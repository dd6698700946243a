"""What waits for a word of Claude Code's: messages to be heard, requests to be answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from sessionmgr_adapters.claude.frames import Reply


class Offer:
    """A message of which it is not known yet whether it was heard."""

    def __init__(self) -> None:
        self.settled: Final = trio.Event()
        self.heard = False

    def settle(self, *, heard: bool) -> None:
        """Note what became of it."""
        if not self.settled.is_set():
            self.heard = heard
            self.settled.set()


class Asked:
    """A request of ours that waits for its answer."""

    def __init__(self) -> None:
        self._answered: Final = trio.Event()
        self._reply: Reply | None = None

    def settle(self, reply: Reply) -> None:
        """Note the answer."""
        self._reply = reply
        self._answered.set()

    async def reply(self) -> Reply:
        """Wait for the answer."""
        await self._answered.wait()
        assert self._reply is not None
        return self._reply
