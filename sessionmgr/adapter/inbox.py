"""Where a session's news comes in: in order, never blocking who brings it, taken all at once.

Who brings more than the store can take is asked to wait between two reads, in `room`.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import trio

T = TypeVar("T")

ROOM: Final = 8 * 1024 * 1024
"""Bytes that may be on their way to the store."""
IN_ONE_GO: Final = 8
"""How often room is asked for until others have their turn."""


class Intake(Generic[T]):
    """A queue with an account of bytes and one reader."""

    __slots__ = ("_all_stored", "_in_one_go", "_items", "_reader", "_stored", "pending")

    def __init__(self) -> None:
        self._items: list[T] = []
        self._reader: trio.lowlevel.Task | None = None
        self._stored: trio.Event | None = None
        self._all_stored: trio.Event | None = None
        self._in_one_go = 0
        self.pending = 0

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T, size: int = 0) -> None:
        """Add an item."""
        self._items.append(item)
        self.pending += size
        if self._reader is not None:
            reader, self._reader = self._reader, None
            trio.lowlevel.reschedule(reader)

    async def arrival(self) -> None:
        """Wait until there is something."""
        if self._items:
            await trio.lowlevel.checkpoint()
        while not self._items:  # to wait is a checkpoint
            assert self._reader is None
            self._reader = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._leave)

    def _leave(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._reader = None
        return trio.lowlevel.Abort.SUCCEEDED

    async def take(self) -> list[T]:
        """Wait until there is something, and take all there is."""
        await self.arrival()
        return self.drain()

    def drain(self) -> list[T]:
        """Take all there is."""
        items, self._items = self._items, []
        return items

    def stored(self, size: int) -> None:
        """Note that as many bytes have reached the store, or never will."""
        self.pending -= size
        if self._stored is not None and self.pending <= ROOM:
            self._stored.set()
            self._stored = None
        if self._all_stored is not None and not self.pending:
            self._all_stored.set()
            self._all_stored = None

    async def recorded(self) -> None:
        """Wait until nothing is on its way to the store."""
        await trio.lowlevel.checkpoint()
        while self.pending:
            if self._all_stored is None:
                self._all_stored = trio.Event()
            await self._all_stored.wait()

    async def room(self) -> None:
        """Wait until there is room for more.

        Where there is, others have their turn now and then only: what is told in one go is then
        also taken, and stored, in one go.
        """
        self._in_one_go += 1
        if self.pending <= ROOM and self._in_one_go < IN_ONE_GO:
            await trio.lowlevel.checkpoint_if_cancelled()
            return
        self._in_one_go = 0
        await trio.lowlevel.checkpoint()
        while self.pending > ROOM:
            if self._stored is None:
                self._stored = trio.Event()
            await self._stored.wait()
