"""Outbox: data that waits to be written to a child."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.process.errors import InputFull

if TYPE_CHECKING:
    from trio.abc import SendStream

LIMIT: Final = 8 * 1024 * 1024


class Outbox:
    """Queue of messages for a child's stdin, which one task writes in order.

    It holds at most `limit` bytes, or one message of any size. A child that has ended or closed its
    stdin is no error: `send` returns False, and `unsent` counts the bytes that were not written.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._pieces: deque[bytes] = deque()
        self._accepted = 0
        self._written = 0
        self._refused = 0
        self._closing = False
        self._over = False
        self._work = trio.Event()
        self._progress = trio.Event()

    @property
    def waiting(self) -> int:
        """Number of accepted bytes that are not yet written."""
        return self._accepted - self._written

    @property
    def unsent(self) -> int:
        """Number of bytes that were not written, including those sent too late."""
        return self.waiting + self._refused

    def send(self, data: bytes | bytearray) -> bool:
        """Queue `data`; return False if nothing can be written to this child any more.

        Raises:
            InputFull: The child does not read its input; the data was not accepted.
        """
        if self._closing or self._over:
            self._refused += len(data)
            return False
        if self.waiting and self.waiting + len(data) > self._limit:
            raise InputFull(self.waiting, self._limit)
        self._pieces.append(bytes(data))
        self._accepted += len(data)
        self._work.set()
        return True

    def close(self) -> None:
        """Close the child's stdin once the queue is written."""
        self._closing = True
        self._work.set()

    async def flush(self) -> bool:
        """Wait until the queue is written; return False if it never will be."""
        goal = self._accepted
        await trio.lowlevel.checkpoint()
        while self._written < goal and not self._over:
            await self._progress.wait()
        return self._written >= goal

    async def run(self, stream: SendStream) -> None:
        """Write the queue to `stream`, until either side closes it."""
        try:
            async with stream:
                await self._write(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the child closed its stdin: `unsent` reports it
        finally:
            self._over = True
            self._notify_progress()

    async def _write(self, stream: SendStream) -> None:
        while True:
            while self._pieces:
                data = b"".join(self._pieces)
                self._pieces.clear()
                await stream.send_all(data)
                self._written += len(data)
                self._notify_progress()
            if self._closing:
                return
            self._work = trio.Event()
            await self._work.wait()

    def _notify_progress(self) -> None:
        self._progress.set()
        self._progress = trio.Event()
