"""A connection to a child that speaks in lines: it decodes them to frames, and pushes those.

The child has one conversation after the other. What it says before the first is opened is pushed
into that one's driver; what it says between two is pushed nowhere, and a subclass may look at it.

    class EchoConnection(StdioConnection[Outgoing, Frame]):
        def __init__(self) -> None:
            super().__init__(read)

        async def open(self, spec: Open, driver: Driver[Frame]) -> EchoConversation:
            await trio.lowlevel.checkpoint()
            self.attach(driver)
            self.write_message(spec)
            return EchoConversation(self, driver)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

import trio

from sessionmgr.adapter.kit.stdio_child import StdioChild
from sessionmgr.model import encode_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sessionmgr.adapter.connections import Driver
    from sessionmgr.process.ladder import Ladder
    from sessionmgr.wire import Line

Outgoing = TypeVar("Outgoing")
Frame = TypeVar("Frame")

EARLY: Final = 1024 * 1024
"""Bytes that the child may write before its first conversation is opened."""


def encode_line(message: Any) -> bytes:
    """Return a message as a line of JSON."""
    return encode_json(message) + b"\n"


class StdioConnection(StdioChild, Generic[Outgoing, Frame]):
    """One child. A subclass opens conversations on it."""

    def __init__(
        self,
        read: Callable[[Sequence[Line]], Sequence[Frame]],
        encode: Callable[[Outgoing], bytes] = encode_line,
        *,
        ladder: Ladder | None = None,
    ) -> None:
        super().__init__(self._push, room=self._wait_for_room, over=self._end, ladder=ladder)
        self._read: Final = read
        self._encode: Final = encode
        self._driver: Driver[Frame] | None = None
        self._early: Final[list[Frame]] = []
        self._early_size = 0
        self._is_opened: Final = trio.Event()

    def attach(self, driver: Driver[Frame]) -> None:
        """Push frames into a driver from now on; what came before the first one, at once."""
        self._driver = driver
        self._is_opened.set()
        if self._early:
            driver.feed(tuple(self._early), self._early_size)
            self._early.clear()
        if self.has_ended:
            driver.end()

    def detach(self, driver: Driver[Frame]) -> None:
        """Push no more frames into a driver."""
        if self._driver is driver:
            self._driver = None

    def write_message(self, message: Outgoing) -> bool:
        """Have a message written; False if there is no room. See `StdioChild.write`."""
        return self.write(self._encode(message))

    def unheard(self, frames: Sequence[Frame]) -> None:
        """Look at frames that came between two conversations."""
        return

    def _push(self, lines: Sequence[Line]) -> None:
        frames = self._read(lines)
        if self._driver is not None:
            self._driver.feed(frames, size_of(lines))
        elif self._is_opened.is_set():
            self.unheard(frames)
        else:
            self._early.extend(frames)
            self._early_size += size_of(lines)

    async def _wait_for_room(self) -> None:
        if self._driver is not None:
            await self._driver.room()
        elif self._early_size > EARLY:
            await self._is_opened.wait()
        else:
            await trio.lowlevel.checkpoint()

    def _end(self) -> None:
        if self._driver is not None:
            self._driver.end()


class StdioConversation(Generic[Outgoing, Frame]):
    """One conversation on such a connection. A subclass says how to interrupt and to answer."""

    def __init__(self, connection: StdioConnection[Outgoing, Frame], driver: Driver[Frame]) -> None:
        self._connection: Final = connection
        self._driver: Final = driver

    async def send(self, message: Outgoing) -> None:
        """Send a message: at once, so that what is sent after it comes after it."""
        self._connection.write_message(message)
        await trio.lowlevel.checkpoint()

    def close(self, *, keep: bool = False) -> None:
        """Push no more frames. The child keeps its session as long as it lives."""
        self._connection.detach(self._driver)

    async def clear_away(self) -> None:
        """Do nothing: what the child's commands leave behind ends with its tree."""
        await trio.lowlevel.checkpoint()


def size_of(lines: Sequence[Line]) -> int:
    """Return how many bytes the lines of a read have; one that was too long counts nothing."""
    try:
        return sum(map(len, cast("Sequence[bytes]", lines)))
    except TypeError:
        return sum(len(line) for line in lines if isinstance(line, bytes))
