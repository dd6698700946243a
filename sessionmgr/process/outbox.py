"""What is still to be written to a child."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.process.errors import InputFull

if TYPE_CHECKING:
    from trio.abc import SendStream

LIMIT: Final = 8 * 1024 * 1024


class Outbox:
    """Takes messages without waiting and writes them, in their order, from one task.

    It holds at most `limit` bytes, or one message of any size. That a child has gone, or has closed
    its ears, is no error: `send` says so, and `unsent` tells how much it never got.
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
        """How many bytes were accepted and are not yet written, as far as we know."""
        return self._accepted - self._written

    @property
    def unsent(self) -> int:
        """How many bytes were handed in and not written, those that came too late included."""
        return self.waiting + self._refused

    def send(self, data: bytes | bytearray) -> bool:
        """Have `data` written; False if nothing can be written to this child any more.

        Raises:
            InputFull: the child does not read what it has been sent; nothing was accepted.
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
        """Close the child's stdin once all that was sent is written."""
        self._closing = True
        self._work.set()

    async def flush(self) -> bool:
        """Wait until all that was sent is written; False if it never will be."""
        goal = self._accepted
        await trio.lowlevel.checkpoint()
        while self._written < goal and not self._over:
            await self._progress.wait()
        return self._written >= goal

    async def run(self, stream: SendStream) -> None:
        """Write to `stream` what is sent, until it is closed from here or there."""
        try:
            async with stream:
                await self._write(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # it does not listen any more: `unsent` tells
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
