"""Follower of a file of lines that another program appends to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

import trio

from sessionmgr.wire import LineDecoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from sessionmgr.wire import Line

T = TypeVar("T")

MEGABYTE: Final = 1024 * 1024


class GrowingFile(Generic[T]):
    """File of lines, read from its present end.

    `find` returns its path, and `parse` runs in a thread.
    """

    def __init__(
        self, find: Callable[[], Path], parse: Callable[[Sequence[Line]], Iterable[T]]
    ) -> None:
        self._find: Final = find
        self._parse: Final = parse
        self._decoder: Final = LineDecoder()
        self._offset = self._size()

    async def read_new(self) -> list[T]:
        """Return the result of `parse` for the lines that were added since the last call."""
        if self._size() <= self._offset:  # a stat needs no thread
            await trio.lowlevel.checkpoint()
            return []
        return await trio.to_thread.run_sync(self._read_from_position)

    def _size(self) -> int:
        try:
            return self._find().stat().st_size
        except OSError:
            return 0

    def _read_from_position(self) -> list[T]:
        found: list[T] = []
        try:
            with self._find().open("rb") as file:
                file.seek(self._offset)
                while data := file.read(MEGABYTE):
                    self._offset += len(data)
                    found += self._parse(self._decoder.feed(data))
        except OSError:  # it was deleted: return what was read
            return found
        return found
