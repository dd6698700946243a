"""What happens once, and who waits for it: a `trio.Event` that weighs nothing until somebody does.

Each run has some, and nobody waits for most of them.
"""

from __future__ import annotations

import trio


class LazyEvent:
    """Set once, for good."""

    __slots__ = ("_event", "_is_set")

    def __init__(self) -> None:
        self._is_set = False
        self._event: trio.Event | None = None

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._is_set

    def set(self) -> None:
        """Say that it has happened, and wake all who wait."""
        self._is_set = True
        if self._event is not None:
            self._event.set()
            self._event = None

    async def wait(self) -> None:
        """Wait until it has happened."""
        if self._is_set:
            await trio.lowlevel.checkpoint()
            return
        if self._event is None:
            self._event = trio.Event()
        await self._event.wait()
