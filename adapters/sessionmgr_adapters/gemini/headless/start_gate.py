"""A gate through which the processes of a directory start one after the other."""

from __future__ import annotations

from typing import Final

import trio

HOLD: Final = 8.0
"""Seconds after which the next process may start, even if the one before is not ready."""
WAIT: Final = 20.0
"""Seconds that a process waits at most."""


class StartGate:
    """Gate of one directory."""

    def __init__(self) -> None:
        self._holder: object | None = None
        self._until = 0.0
        self._waiting: Final = trio.lowlevel.ParkingLot()

    async def enter(self, holder: object) -> None:
        """Wait until no other start is in progress, or for as long as a process waits."""
        await trio.lowlevel.checkpoint()
        latest = trio.current_time() + WAIT
        while self._holder is not None and trio.current_time() < min(self._until, latest):
            with trio.move_on_at(min(self._until, latest)):
                await self._waiting.park()
        self._holder, self._until = holder, trio.current_time() + HOLD

    def leave(self, holder: object) -> None:
        """Let the next process start, unless it was let in already."""
        if self._holder is holder:
            self._holder = None
            self._waiting.unpark()
