"""A one-shot event that allocates its `trio.Event` on the first wait.

Each run has several, and most are never waited for.
"""

from __future__ import annotations

import trio


class LazyEvent:
    """A one-shot event."""

    __slots__ = ("_event", "_is_set")

    def __init__(self) -> None:
        self._is_set = False
        self._event: trio.Event | None = None

    def is_set(self) -> bool:
        """Return whether it is set."""
        return self._is_set

    def set(self) -> None:
        """Set it, and wake all tasks that wait."""
        self._is_set = True
        if self._event is not None:
            self._event.set()
            self._event = None

    async def wait(self) -> None:
        """Wait until it is set."""
        if self._is_set:
            await trio.lowlevel.checkpoint()
            return
        if self._event is None:
            self._event = trio.Event()
        await self._event.wait()
