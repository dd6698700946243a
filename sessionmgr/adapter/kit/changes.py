"""A condition that tasks of one driver wait for: it is looked at again after each read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable


class Changes:
    """Notes that something may have changed, and wakes all who wait for a condition."""

    def __init__(self) -> None:
        self._noted = trio.Event()
        self._is_awaited = False

    def note(self) -> None:
        """Note a change. It costs next to nothing where no task waits."""
        if self._is_awaited:
            self._is_awaited = False
            self._noted.set()
            self._noted = trio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        await trio.lowlevel.checkpoint()
        while not holds():
            self._is_awaited = True
            await self._noted.wait()
