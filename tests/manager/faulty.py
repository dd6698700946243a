"""A store that fails, waits and counts where a test says so."""

from collections.abc import Callable
from typing import Final

import trio

from sessionmgr.errors import StoreClosed
from sessionmgr.store import Append, Appended, MemoryStore
from sessionmgr.store.row import Lease, Owner

ANY: Final = "*"
"""Matches every append."""


class FaultyStore(MemoryStore):
    """A memory store with faults; `raises` are used up one by one, by appends that match."""

    def __init__(self) -> None:
        super().__init__()
        self.raises: list[tuple[str, Exception]] = []
        self.after: list[tuple[str, Exception]] = []
        """The same, but raised when the batch is stored already."""
        self.delay: Callable[[Append], float] = lambda _: 0.0
        self.closed = False
        self.thawed = trio.Event()
        self.thawed.set()
        self.largest = 0

    async def append(self, append: Append) -> Appended:
        await self._get_there()
        await trio.sleep(self.delay(append))
        _raise_one(self.raises, append)
        self.largest = max(self.largest, len(append.rows))
        appended = await super().append(append)
        _raise_one(self.after, append)
        return appended

    async def acquire(
        self,
        name: str,
        owner: Owner,
        *,
        now: int,
        ttl: int,
        gone: Callable[[Owner], bool] = lambda _: False,
    ) -> Lease:
        await self._get_there()
        return await super().acquire(name, owner, now=now, ttl=ttl, gone=gone)

    async def _get_there(self) -> None:
        await self.thawed.wait()
        if self.closed:
            raise StoreClosed("the store")


def _raise_one(faults: list[tuple[str, Exception]], append: Append) -> None:
    for place, (type_, error) in enumerate(faults):
        if type_ == ANY or any(row.type == type_ for row in append.rows):
            del faults[place]
            raise error
