"""Signal that tasks of one driver wait for; each rechecks its condition after every read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable


class ChangeSignal:
    """Signal that wakes the tasks waiting for a condition when something may have changed."""

    def __init__(self) -> None:
        self._noted = trio.Event()
        self._is_awaited = False

    def notify(self) -> None:
        """Note a change. It costs next to nothing if no task waits."""
        if self._is_awaited:
            self._is_awaited = False
            self._noted.set()
            self._noted = trio.Event()

    async def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        await trio.lowlevel.checkpoint()
        while not holds():
            self._is_awaited = True
            await self._noted.wait()
