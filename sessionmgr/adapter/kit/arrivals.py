"""What has come from a connection and has not been taken: in order, bounded, with an end.

Who reads from the child puts a read's frames here without waiting, and waits for `room` between
two reads. Whoever follows the conversation takes them, a read at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import trio

if TYPE_CHECKING:
    from typing import Self

T = TypeVar("T")

ROOM: Final = 1024 * 1024
"""Bytes that may wait to be taken."""


class Arrivals(AsyncIterator[Sequence[T]], Generic[T]):
    """A queue of reads, with one who takes them."""

    def __init__(self, room: int = ROOM) -> None:
        self._room: Final = room
        self._reads: deque[tuple[Sequence[T], int]] = deque()
        self._waiting = 0
        self._closed = False
        self._news = trio.Event()
        self._taken = trio.Event()

    def put(self, read: Sequence[T], size: int) -> None:
        """Add what one read of `size` bytes has brought."""
        self._reads.append((read, size))
        self._waiting += size
        self._news.set()

    def close(self) -> None:
        """Say that nothing more will come. What has come can still be taken."""
        self._closed = True
        self._news.set()
        self._taken.set()

    async def room(self) -> None:
        """Wait until there is room for more."""
        await trio.lowlevel.checkpoint()
        while self._waiting > self._room and not self._closed:
            self._taken = trio.Event()
            await self._taken.wait()

    def __aiter__(self) -> Self:
        """Take what comes, until nothing more will."""
        return self

    async def __anext__(self) -> Sequence[T]:
        """Take the next read; wait for it."""
        await trio.lowlevel.checkpoint()
        while not self._reads:
            if self._closed:
                raise StopAsyncIteration
            self._news = trio.Event()
            await self._news.wait()
        read, size = self._reads.popleft()
        self._waiting -= size
        self._taken.set()
        return read
